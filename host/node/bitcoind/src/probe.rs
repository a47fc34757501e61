//! Determines a node's chain, and finds bitcoind's cookie file.

use std::path::{Path, PathBuf};

use bitcoin::Network;
use outrigger_node::ChainIdentity;
use outrigger_upstream::{Greeting, request};
use serde_json::{Value, json};

use super::answers::{ChainAnswer, ChallengeAnswer};
use super::error::AskError;
use super::rpc::Rpc;

pub fn chain_of(rpc: &Rpc) -> Result<ChainIdentity, AskError> {
    let info: ChainAnswer = rpc.ask("getblockchaininfo", &json!([]))?;
    let form = |error: &dyn std::fmt::Display| AskError::form("getblockchaininfo", error);
    let network = Network::from_core_arg(&info.chain).map_err(|error| form(&error))?;
    if network != Network::Signet {
        return Ok(ChainIdentity::of(network));
    }
    let challenge = match info.signet_challenge {
        Some(challenge) => Some(challenge),
        None => rpc.ask::<ChallengeAnswer>("getblocktemplate", &signet_rules())?.signet_challenge,
    };
    Ok(ChainIdentity::signet(challenge.ok_or_else(|| form(&"no signet_challenge"))?.0.into()))
}

/// The requests that verify that a node is on this chain, by the genesis block's hash and, on a signet, by the challenge.
/// getblockchaininfo has the challenge since Bitcoin Core 29, getblocktemplate in all releases.
pub fn greeting(expected: ChainIdentity) -> Greeting {
    let question = |method: &str, params: Value| request(method, params.to_string().as_bytes());
    let mut requests = vec![question("getblockhash", json!([0]))];
    if expected.signet_challenge.is_some() {
        requests.push(question("getblockchaininfo", json!([])));
        requests.push(question("getblocktemplate", signet_rules()));
    }
    Greeting::new(requests, move |number, result| {
        let found = found(&expected, number, result);
        let Some(found) = found else { return Ok(false) };
        if found == expected { Ok(true) } else { Err(foreign(&found, &expected)) }
    })
}

pub fn foreign(found: &ChainIdentity, expected: &ChainIdentity) -> String {
    format!("the node is on {found}, but the host is configured for {expected}")
}

/// The node's chain according to result `number` of the greeting; `None` if the result does not determine the chain.
fn found(expected: &ChainIdentity, number: usize, result: &[u8]) -> Option<ChainIdentity> {
    if number == 0 {
        let genesis = serde_json::from_slice(result).ok()?;
        // For a signet the challenge decides, since all signets share the genesis block.
        return (genesis != expected.genesis || expected.signet_challenge.is_none())
            .then_some(ChainIdentity { genesis, signet_challenge: None });
    }
    let answer: ChallengeAnswer = serde_json::from_slice(result).ok()?;
    Some(ChainIdentity::signet(answer.signet_challenge?.0.into()))
}

fn signet_rules() -> Value {
    json!([{"rules": ["segwit", "signet"]}])
}

/// The networks, with bitcoind's default RPC port and the cookie's folder within its data directory.
const PLACES: [(Network, u16, &str); 5] = [
    (Network::Bitcoin, 8332, ""),
    (Network::Testnet, 18332, "testnet3"),
    (Network::Testnet4, 48332, "testnet4"),
    (Network::Signet, 38332, "signet"),
    (Network::Regtest, 18443, "regtest"),
];

pub fn default_ports() -> impl Iterator<Item = (Network, u16)> {
    PLACES.into_iter().map(|(network, port, _)| (network, port))
}

/// The cookie file in bitcoind's data directory `folder`, of the network with the default RPC port `port`, else the newest.
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

    #[test]
    fn node_of_another_chain_is_recognised_by_its_answers() {
        let hash = |network| json!(ChainIdentity::of(network).genesis).to_string();
        let custom = ChainIdentity::signet(vec![0x51].into());
        let regtest = ChainIdentity::of(Network::Regtest);
        let answer = |expected: &ChainIdentity, number, text: &str| found(expected, number, text.as_bytes());
        assert_eq!(answer(&regtest, 0, &hash(Network::Regtest)), Some(regtest.clone()));
        assert_eq!(answer(&regtest, 0, &hash(Network::Bitcoin)), Some(ChainIdentity::of(Network::Bitcoin)));
        assert_eq!(answer(&regtest, 0, "null"), None);
        // Signets share a genesis block.
        assert_eq!(answer(&custom, 0, &hash(Network::Signet)), None);
        assert_eq!(answer(&custom, 0, &hash(Network::Regtest)), Some(regtest));
        assert_eq!(answer(&custom, 1, r#"{"chain":"signet"}"#), None);
        assert_eq!(answer(&custom, 2, r#"{"signet_challenge":"51","bits":"1e0377ae"}"#), Some(custom));
    }
}
