//! Warns of wallets of the node that share a descriptor with ours: both would select the same coins.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use outrigger_upstream::{Outcome, Upstream, read_reply, request};
use outrigger_wallet_engine::WalletManager;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use tokio::sync::watch;

/// How often the lists of loaded wallets are compared.
const LOOK_EVERY: Duration = Duration::from_secs(60);

const MAX_ANSWER: usize = 16 << 20;

/// Checks until the host stops, and warns of each pair of wallets once.
pub async fn watch(upstream: Arc<Upstream>, manager: Arc<WalletManager>, mut stop: watch::Receiver<bool>) {
    let (mut compared, mut warned) = (None, BTreeSet::new());
    loop {
        let theirs = ask(&upstream, "/", "listwallets").await.unwrap_or_default();
        let names = (manager.list(), theirs);
        // Loaded wallets are compared once: a descriptor imported later is found at the next start.
        if compared.as_ref() != Some(&names) {
            for pair in shared(&upstream, &manager, &names.1).await {
                if !warned.contains(&pair) {
                    let (ours, theirs) = &pair;
                    tracing::warn!(
                        wallet = ours,
                        wallet_of_node = theirs,
                        "a wallet of the node has a descriptor of one of ours: both would choose the same coins, so unload one"
                    );
                    warned.insert(pair);
                }
            }
            compared = Some(names);
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK_EVERY) => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
    }
}

/// The wallets, ours and the node's, with a common descriptor.
async fn shared(upstream: &Upstream, manager: &Arc<WalletManager>, theirs: &Value) -> Vec<(String, String)> {
    if theirs.as_array().is_none_or(Vec::is_empty) {
        return Vec::new();
    }
    let manager = manager.clone();
    let ours = tokio::task::spawn_blocking(move || own(&manager)).await.unwrap_or_default();
    let mut pairs = Vec::new();
    for name in theirs.as_array().into_iter().flatten().filter_map(Value::as_str) {
        let path = format!("/wallet/{}", utf8_percent_encode(name, NON_ALPHANUMERIC));
        // A legacy wallet has none.
        let Some(listed) = ask(upstream, &path, "listdescriptors").await else { continue };
        let listed = listed["descriptors"].as_array().into_iter().flatten();
        let found: BTreeSet<&String> =
            listed.filter_map(|one| ours.get(&comparable(one["desc"].as_str()?))).flatten().collect();
        pairs.extend(found.into_iter().map(|ours| (ours.clone(), name.to_owned())));
    }
    pairs
}

/// Our loaded wallets by their public descriptors.
fn own(manager: &WalletManager) -> BTreeMap<String, Vec<String>> {
    let mut wallets: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for name in manager.list() {
        // A wallet that was unloaded meanwhile has none.
        let descriptors = manager.select_as_it_stands(Some(&name)).and_then(|wallet| wallet.descriptors(false));
        for descriptor in descriptors.unwrap_or_default() {
            wallets.entry(comparable(descriptor.text.expose())).or_default().push(name.clone());
        }
    }
    wallets
}

/// A descriptor without its checksum, and with one sign for hardened steps.
fn comparable(descriptor: &str) -> String {
    descriptor.split('#').next().unwrap_or_default().replace('\'', "h")
}

/// The node's answer to a call without parameters and effects.
async fn ask(upstream: &Upstream, path: &str, method: &str) -> Option<Value> {
    let (status, body) =
        upstream.post(path, request(method, b"[]"), true).await.ok()?.collect(MAX_ANSWER).await.ok()?;
    match read_reply(status, &body) {
        Outcome::Result(result) => serde_json::from_slice(&result).ok(),
        Outcome::Error(_) | Outcome::Strange => None,
    }
}
