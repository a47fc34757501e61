//! The host in front of a real bitcoind.

mod address_index;
mod answers;
mod chain;
mod descriptor_fields;
mod endings;
mod estimates;
mod failures;
mod false_data;
mod groups;
mod hd_keys;
mod hints;
mod identity;
mod keys;
mod kills;
mod looking_back;
mod lost_answers;
mod mistakes;
mod moving;
mod never_twice;
mod nodes;
mod operators;
mod other_releases;
mod passed;
mod plugins;
mod profiles;
mod psbts;
mod refusals;
mod releases;
mod reorganisations;
mod rescans;
mod returns;
mod rewind;
mod selections;
mod sending;
mod slow;
pub mod twins;
mod users;
mod version_3;
mod waiting;
mod watched;
mod whitelist;

use outrigger_tests::{Bitcoind, Client, Host, HostOptions, NOBODY, Relay, bitcoind, skip};
use serde_json::{Value, json};

const ADDRESS: &str = NOBODY;

/// A host in front of a node with these arguments; `None`, with a message, if no bitcoind is installed.
fn start(arguments: &[&'static str]) -> Option<Host> {
    start_set(arguments, &[])
}

/// Whether the installed bitcoind is of this or a later release; prints a message if not.
fn is_since(release: u64) -> bool {
    let is_since = bitcoind::installed().is_some_and(|program| bitcoind::release_of(&program) >= release);
    if !is_since {
        skip(&format!("no bitcoind of release {release} or later here"));
    }
    is_since
}

/// The same with these settings.
fn start_set(arguments: &[&'static str], set: &[&str]) -> Option<Host> {
    bitcoind::installed()?;
    Some(Host::start_with(HostOptions::in_front_of(arguments).and(set)))
}

/// A host in front of a node with these arguments, with only these plugins; `None`, with a message, if no bitcoind is installed.
fn start_with(arguments: &[&'static str], plugins: &[String], set: &[&str]) -> Option<Host> {
    let plugins = format!("plugins=[{}]", plugins.join(", "));
    start_set(arguments, &[&[&*plugins], set].concat())
}

/// A host behind a relay to a node with these arguments; `None`, with a message, if no bitcoind is installed.
fn start_behind_relay(arguments: &[&str]) -> Option<(Host, Relay)> {
    start_behind_relay_with(arguments, &[])
}

/// The same with these settings.
fn start_behind_relay_with(arguments: &[&str], set: &[&str]) -> Option<(Host, Relay)> {
    let node = Bitcoind::start_with(bitcoind::installed()?, arguments).0;
    let relay = Relay::to(node.address);
    Some((start_before(node, &relay, set), relay))
}

/// A host with these settings behind a relay to a node.
fn start_before(node: Bitcoind, relay: &Relay, set: &[&str]) -> Host {
    before(node, &[&[&*format!("backend.url=http://{}", relay.address)], set].concat())
}

/// A host with these settings in front of a node that runs already.
fn before(node: Bitcoind, set: &[&str]) -> Host {
    Host::start_before(tempfile::tempdir().unwrap(), HostOptions::with(set), Some(node))
}

/// The result of a call, or the code and the message of its refusal.
fn answer(client: &mut Client, method: &str, params: &Value) -> Value {
    match client.try_call(method, params.clone()) {
        Ok(result) => result,
        Err(error) => json!([error.code, error.message]),
    }
}

/// Funds a wallet of the node and makes unconfirmed payments from it at these feerates, in sat/vB; returns the payments.
fn pay(node: &mut Client, feerates: &[u64]) -> Vec<Value> {
    let mut wallet = node.create_wallet("theirs", json!({}));
    wallet.fund(feerates.len() as u32);
    let pay =
        |feerate| wallet.call("sendtoaddress", json!([ADDRESS, 1, "", "", false, true, null, "unset", null, feerate]));
    feerates.iter().map(pay).collect()
}
