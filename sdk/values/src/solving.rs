//! What descriptors, standard scripts and the messages of services have in common.

use bitcoin::consensus::Encodable;
use bitcoin::{OutPoint, ScriptBuf, TxOut};

/// Bytes.
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

/// Text that is wiped from memory when it is dropped, and never printed: a passphrase, or a private key.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secret(zeroize::Zeroizing<String>);

impl Secret {
    /// Takes `text` over.
    pub fn new(text: String) -> Self {
        Self(zeroize::Zeroizing::new(text))
    }

    /// The text itself. Do not copy it into anything that is not wiped.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// The kind of an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AddressType {
    /// P2PKH.
    Legacy,
    /// P2WPKH in P2SH.
    P2shSegwit,
    /// P2WPKH.
    Bech32,
    /// P2TR.
    Bech32m,
}

impl AddressType {
    /// All, with bitcoind's names.
    pub const NAMED: [(&'static str, Self); 4] = [
        ("legacy", Self::Legacy),
        ("p2sh-segwit", Self::P2shSegwit),
        ("bech32", Self::Bech32),
        ("bech32m", Self::Bech32m),
    ];

    /// bitcoind's name of it.
    pub fn name(self) -> &'static str {
        Self::NAMED.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }

    /// The type of a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMED.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)
    }
}

/// A leaf of a taproot output's script tree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TapLeaf {
    /// Its script.
    pub script: ScriptBuf,
    /// Its control block.
    pub control_block: Blob,
}

/// What spending a taproot output takes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TaprootData {
    /// The internal key, x only.
    pub internal_key: [u8; 32],
    /// The root of the script tree, where there is one.
    pub merkle_root: Option<[u8; 32]>,
    /// The leaves.
    pub leaves: Vec<TapLeaf>,
}

/// What is known for spending an output, short of the keys themselves.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct SolvingData {
    /// Redeem scripts and witness scripts.
    pub scripts: Vec<ScriptBuf>,
    /// The public keys by their hashes, 33 or 65 bytes each; those that tapscripts hash, x only (32 bytes).
    pub public_keys: Vec<Blob>,
    /// For a taproot output.
    pub taproot: Option<TaprootData>,
}

/// Where a public key comes from (BIP 32).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyOrigin {
    /// The public key.
    pub public_key: Blob,
    /// The master key's fingerprint.
    pub fingerprint: [u8; 4],
    /// The path from there, as `m/84h/1h/0h/0/5`.
    pub path: String,
}

/// An unspent output.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Coin {
    /// Value and script.
    pub output: TxOut,
    /// The height of its block; `u32::MAX` when its transaction is in the mempool.
    pub height: u32,
    /// Whether its transaction is a coinbase.
    pub coinbase: bool,
}

impl Coin {
    /// The bytes that stand for the unspent output in hashes over all of them, as bitcoind makes these.
    pub fn hashed_as(&self, outpoint: &OutPoint) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mark = (self.height << 1) | u32::from(self.coinbase);
        // Writing to memory cannot fail.
        let _ = outpoint.consensus_encode(&mut bytes);
        bytes.extend(mark.to_le_bytes());
        let _ = self.output.consensus_encode(&mut bytes);
        bytes
    }
}
