//! The order of addresses in bitcoind's maps (`CTxDestination`).

use bitcoin::Script;
use outrigger_sdk::standard::{ScriptKind, classify};

/// The sort key of an address: kind, version of an unknown witness program (0 for others), then hash, key or program.
pub type Order = (u8, u8, Vec<u8>);

/// The sort key of a script's address, if it has one.
pub fn order(script: &Script) -> Option<Order> {
    let (kind, version, program): (u8, u8, &[u8]) = match classify(script) {
        ScriptKind::PubKeyHash { hash } => (0, 0, hash),
        ScriptKind::ScriptHash { hash } => (1, 0, hash),
        ScriptKind::WitnessV0ScriptHash { hash } => (2, 0, hash),
        ScriptKind::WitnessV0KeyHash { hash } => (3, 0, hash),
        ScriptKind::Taproot { key } => (4, 0, key),
        ScriptKind::Anchor => (5, 0, &[]),
        ScriptKind::WitnessUnknown { version, program } => (6, version, program),
        ScriptKind::NonStandard | ScriptKind::PubKey { .. } | ScriptKind::Multisig { .. } | ScriptKind::NullData => {
            return None;
        }
    };
    Some((kind, version, program.to_vec()))
}
