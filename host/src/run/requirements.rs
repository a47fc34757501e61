//! Checks the `requires` of plugins' manifests against the node.

use std::sync::Arc;

use bitcoin::Network;
use outrigger_node::{Abilities, Node};
use outrigger_plugins::registry::Requirements;
use outrigger_sdk::manifest::Requires;

/// Returns a function that checks a plugin's requirements against the node, which may be a bitcoind (`in_front`). If the node does not
/// answer, it checks only what [`check_chain`] does, and the plugin's calls may fail later.
pub fn of_node(node: &Arc<dyn Node>, in_front: bool) -> Requirements {
    let node = node.clone();
    Box::new(move |requires| {
        check_chain(requires, node.network(), in_front)?;
        let asks_node =
            requires.release.is_some() || requires.txindex || requires.blockfilterindex || requires.spent_outputs;
        if !asks_node {
            return Ok(());
        }
        match node.abilities() {
            Ok(abilities) => check(requires, &abilities),
            Err(error) => {
                tracing::warn!(%error, "cannot check a plugin's requirements of the node");
                Ok(())
            }
        }
    })
}

/// Checks the kind of the chain and its network. The error follows the plugin's name.
pub fn check_chain(requires: &Requires, network: Network, in_front: bool) -> Result<(), String> {
    if requires.embedded && in_front {
        return Err("is for the embedded chain: in front of a bitcoind, the node answers its methods".into());
    }
    let own = network.to_core_arg();
    match &requires.network {
        Some(wanted) if wanted != own => Err(format!("is for the network {wanted}, and the host's is {own}")),
        _ => Ok(()),
    }
}

pub fn check(requires: &Requires, abilities: &Abilities) -> Result<(), String> {
    // The embedded chain has no release, and counts as the latest.
    if let (Some(least), Some(own)) = (requires.release, abilities.release)
        && least > own
    {
        return Err(format!("needs Bitcoin Core {least} or later, and the node is of release {own}"));
    }
    let needs = [
        (requires.txindex, abilities.transactions, "the node's index of transactions: set txindex=1 in bitcoin.conf"),
        (requires.blockfilterindex, abilities.block_filters, "block filters: set blockfilterindex=1 in bitcoin.conf"),
        (
            requires.spent_outputs,
            abilities.spent_outputs,
            "the outputs that old blocks spend: set prune=0 in bitcoin.conf",
        ),
    ];
    match needs.iter().find(|(needed, has, _)| *needed && !has) {
        Some((_, _, what)) => Err(format!("needs {what}")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_node_lacks_is_told_with_its_setting() {
        let pruned = Abilities { release: Some(27), transactions: false, block_filters: false, spent_outputs: false };
        let refused = |json: &str| check(&serde_json::from_str(json).unwrap(), &pruned).unwrap_err();
        assert_eq!(refused(r#"{"release": 28}"#), "needs Bitcoin Core 28 or later, and the node is of release 27");
        assert!(refused(r#"{"txindex": true}"#).ends_with("set txindex=1 in bitcoin.conf"));
        assert!(refused(r#"{"blockfilterindex": true}"#).ends_with("set blockfilterindex=1 in bitcoin.conf"));
        assert!(refused(r#"{"spent_outputs": true}"#).ends_with("set prune=0 in bitcoin.conf"));
        let all = serde_json::from_str(
            r#"{"release": 99, "txindex": true, "blockfilterindex": true, "spent_outputs": true}"#,
        )
        .unwrap();
        assert_eq!(check(&all, &Abilities::ALL), Ok(()));
        let main = serde_json::from_str(r#"{"network": "main"}"#).unwrap();
        let refused = check_chain(&main, Network::Regtest, true).unwrap_err();
        assert_eq!(refused, "is for the network main, and the host's is regtest");
        assert_eq!(check_chain(&main, Network::Bitcoin, true), Ok(()));
        let embedded = serde_json::from_str(r#"{"embedded": true}"#).unwrap();
        let refused = check_chain(&embedded, Network::Regtest, true).unwrap_err();
        assert_eq!(refused, "is for the embedded chain: in front of a bitcoind, the node answers its methods");
        assert_eq!(check_chain(&embedded, Network::Regtest, false), Ok(()));
    }
}
