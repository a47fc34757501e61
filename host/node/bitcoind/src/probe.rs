//! Finding out what a node is: its network, by asking, and its cookie, where bitcoind puts it.

use std::path::{Path, PathBuf};

use bitcoin::{BlockHash, Network};
use serde_json::json;

use super::answers::ChainAnswer;
use super::error::AskError;
use super::rpc::Rpc;

/// What a node is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// Its network.
    pub network: Network,
    /// Its genesis block.
    pub genesis: BlockHash,
    /// The challenge of its signet, hexadecimal: two custom signets have the same genesis block.
    pub signet_challenge: Option<String>,
    /// Whether it has dropped old blocks.
    pub pruned: bool,
}

impl std::fmt::Display for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} with genesis block {}", self.network.to_core_arg(), self.genesis)?;
        self.signet_challenge.as_ref().map_or(Ok(()), |challenge| write!(f, " and challenge {challenge}"))
    }
}

impl Identity {
    /// Asks a node.
    ///
    /// # Errors
    /// Its absence; a network that is not known.
    pub fn ask(rpc: &Rpc) -> Result<Self, AskError> {
        let info: ChainAnswer = rpc.ask("getblockchaininfo", &json!([]))?;
        let network =
            Network::from_core_arg(&info.chain).map_err(|error| AskError::form("getblockchaininfo", &error))?;
        let genesis = rpc.ask("getblockhash", &json!([0]))?;
        Ok(Self { network, genesis, signet_challenge: info.signet_challenge, pruned: info.pruned })
    }
}

/// The networks with bitcoind's default RPC port and the folder of the cookie within its data directory.
const PLACES: [(Network, u16, &str); 5] = [
    (Network::Bitcoin, 8332, ""),
    (Network::Testnet, 18332, "testnet3"),
    (Network::Testnet4, 48332, "testnet4"),
    (Network::Signet, 38332, "signet"),
    (Network::Regtest, 18443, "regtest"),
];

/// The default RPC ports of the networks.
pub fn default_ports() -> impl Iterator<Item = (Network, u16)> {
    PLACES.into_iter().map(|(network, port, _)| (network, port))
}

/// The cookie file of a node in bitcoind's data directory `folder`: that of the network whose default port it listens on, else the
/// only one that is there, else the newest.
pub fn cookie_of(folder: &Path, port: u16) -> Option<PathBuf> {
    let file = |place: &str| folder.join(place).join(".cookie");
    if let Some((_, _, place)) = PLACES.iter().find(|(_, default, _)| *default == port)
        && file(place).exists()
    {
        return Some(file(place));
    }
    let written = |path: &PathBuf| std::fs::metadata(path).and_then(|data| data.modified()).ok();
    PLACES.iter().map(|(_, _, place)| file(place)).filter(|path| path.exists()).max_by_key(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookie_is_found_by_the_port_or_by_its_age() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(cookie_of(folder.path(), 8332), None);
        let regtest = folder.path().join("regtest/.cookie");
        std::fs::create_dir(folder.path().join("regtest")).unwrap();
        std::fs::write(&regtest, "x").unwrap();
        assert_eq!(cookie_of(folder.path(), 18443), Some(regtest.clone()));
        assert_eq!(cookie_of(folder.path(), 4711), Some(regtest.clone()));
        let main = folder.path().join(".cookie");
        std::fs::write(&main, "x").unwrap();
        assert_eq!(cookie_of(folder.path(), 8332), Some(main));
        assert_eq!(cookie_of(folder.path(), 18443), Some(regtest));
    }
}
