//! The identity of a node's chain.

use bitcoin::constants::genesis_block;
use bitcoin::hashes::{Hash, sha256d};
use bitcoin::hex::DisplayHex;
use bitcoin::{BlockHash, Network, ScriptBuf, VarInt};

/// The challenge of the public signet (BIP 325): 1 of 2 keys.
const PUBLIC_SIGNET: &str = "512103ad5e0edad18cb1f0fc0d28a3d4f1f3e445640337489abb10404f2d1e086be430210359ef5021964fe22d6f8e05b2463c9540ce96883fe3b278760f048f5189f2e6c452ae";

/// Identifies a chain. All signets share a genesis block, so a signet also needs its challenge.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChainIdentity {
    pub genesis: BlockHash,
    pub signet_challenge: Option<ScriptBuf>,
}

impl ChainIdentity {
    /// The chain of a network; for signet the public one.
    pub fn of(network: Network) -> Self {
        let public = || ScriptBuf::from_hex(PUBLIC_SIGNET).expect("it is hexadecimal");
        let signet_challenge = (network == Network::Signet).then(public);
        Self { genesis: genesis_block(network).block_hash(), signet_challenge }
    }

    pub fn signet(challenge: ScriptBuf) -> Self {
        Self { signet_challenge: Some(challenge), ..Self::of(Network::Signet) }
    }

    pub fn network(&self) -> Option<Network> {
        let networks = [Network::Bitcoin, Network::Testnet, Network::Testnet4, Network::Signet, Network::Regtest];
        networks.into_iter().find(|network| genesis_block(*network).block_hash() == self.genesis)
    }

    /// The message start of a custom signet: the first bytes of the challenge's double SHA-256. `None` for other
    /// chains.
    pub fn custom_signet_magic(&self) -> Option<[u8; 4]> {
        let challenge = self.signet_challenge.as_ref().filter(|_| *self != Self::of(Network::Signet))?;
        let length = bitcoin::consensus::serialize(&VarInt::from(challenge.len()));
        let hash = sha256d::Hash::hash(&[length.as_slice(), challenge.as_bytes()].concat());
        hash.as_byte_array().first_chunk().copied()
    }

    /// The stored form: the genesis block's hash, then a signet's challenge.
    pub fn to_bytes(&self) -> Vec<u8> {
        let challenge = self.signet_challenge.as_ref().map_or(&[][..], |challenge| challenge.as_bytes());
        [self.genesis.as_byte_array(), challenge].concat()
    }

    /// The inverse of [`Self::to_bytes`]; `None` for fewer than 32 bytes.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (genesis, challenge) = bytes.split_first_chunk()?;
        let signet_challenge = (!challenge.is_empty()).then(|| ScriptBuf::from_bytes(challenge.to_vec()));
        Some(Self { genesis: BlockHash::from_byte_array(*genesis), signet_challenge })
    }
}

impl std::fmt::Display for ChainIdentity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.network() {
            Some(network) => f.write_str(network.to_core_arg())?,
            None => write!(f, "the chain with genesis block {}", self.genesis)?,
        }
        let challenge = self.signet_challenge.as_ref().map(|challenge| challenge.as_bytes().to_lower_hex_string());
        challenge.map_or(Ok(()), |challenge| write!(f, " with challenge {challenge}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signets_differ_by_their_challenge() {
        let custom = ChainIdentity::signet(ScriptBuf::from_bytes(vec![0x51]));
        let public = ChainIdentity::of(Network::Signet);
        assert!(custom != public && custom.genesis == public.genesis);
        assert_eq!(custom.to_string(), "signet with challenge 51");
        // bitcoind logs this for -signetchallenge=51.
        assert_eq!(custom.custom_signet_magic(), Some([0x54, 0xd2, 0x6f, 0xbd]));
        assert_eq!((public.custom_signet_magic(), public.network()), (None, Some(Network::Signet)));
        for chain in [custom, public, ChainIdentity::of(Network::Bitcoin)] {
            assert_eq!(ChainIdentity::from_bytes(&chain.to_bytes()), Some(chain));
        }
        assert_eq!(ChainIdentity::from_bytes(&[0; 31]), None);
    }
}
