//! Types that descriptors, standard scripts and service messages share.

use bitcoin::consensus::Encodable;
use bitcoin::{OutPoint, ScriptBuf, TxOut};
use serde::de::{Deserialize, Deserializer, Error};

/// A byte string.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Blob(pub Vec<u8>);

impl From<Vec<u8>> for Blob {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl std::ops::Deref for Blob {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

/// Secret text, such as a passphrase or a private key. It is wiped on drop and never printed.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secret(zeroize::Zeroizing<String>);

impl Secret {
    /// Takes ownership of `text`.
    pub fn new(text: String) -> Self {
        Self(zeroize::Zeroizing::new(text))
    }

    /// The text. Do not copy it into memory that is not wiped.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

/// The error does not show the value.
impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::new).map_err(|_| D::Error::custom("expected a text"))
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// The type of an address.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum AddressType {
    /// P2PKH.
    Legacy,
    /// P2WPKH in P2SH.
    P2shSegwit,
    /// P2WPKH.
    #[default]
    Bech32,
    /// P2TR.
    Bech32m,
}

impl AddressType {
    /// All types with bitcoind's names.
    pub const NAMED: [(&'static str, Self); 4] = [
        ("legacy", Self::Legacy),
        ("p2sh-segwit", Self::P2shSegwit),
        ("bech32", Self::Bech32),
        ("bech32m", Self::Bech32m),
    ];

    /// bitcoind's name.
    pub fn name(self) -> &'static str {
        Self::NAMED.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }

    /// The type with bitcoind's name `name`.
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMED.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)
    }
}

/// A leaf of a script tree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TapLeaf {
    /// The leaf script.
    pub script: ScriptBuf,
    /// The control block.
    pub control_block: Blob,
}

/// The solving data of a taproot output.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TaprootData {
    /// The internal key, x-only.
    pub internal_key: [u8; 32],
    /// The Merkle root of the script tree; `None` without one.
    pub merkle_root: Option<[u8; 32]>,
    /// The known leaves.
    pub leaves: Vec<TapLeaf>,
}

/// The solving data of an output: everything that spending it needs beside private keys.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct SolvingData {
    /// Redeem scripts and witness scripts.
    pub scripts: Vec<ScriptBuf>,
    /// The public keys of 33 or 65 bytes; x-only (32 bytes) if tapscripts contain their hashes.
    pub public_keys: Vec<Blob>,
    /// The data of a taproot output.
    pub taproot: Option<TaprootData>,
}

/// The origin of a public key (BIP 32).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyOrigin {
    /// The public key.
    pub public_key: Blob,
    /// The fingerprint of the master key.
    pub fingerprint: [u8; 4],
    /// The path from the master key, such as `m/84h/1h/0h/0/5`.
    pub path: String,
}

/// An unspent output.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Coin {
    /// The output's value and script.
    pub output: TxOut,
    /// The height of its block; `u32::MAX` if its transaction is in the mempool.
    pub height: u32,
    /// Whether its transaction is a coinbase.
    pub coinbase: bool,
}

impl Coin {
    /// The serialisation that hashes of the UTXO set use, as in bitcoind (`TxOutSer`).
    pub fn hashed_as(&self, outpoint: &OutPoint) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mark = (self.height << 1) | u32::from(self.coinbase);
        // Writing to a vector does not fail.
        let _ = outpoint.consensus_encode(&mut bytes);
        bytes.extend(mark.to_le_bytes());
        let _ = self.output.consensus_encode(&mut bytes);
        bytes
    }
}
