//! The report of `outrigger run --check` about the node: one line per feature that the host can use, with the node's
//! setting that would enable it. A node that the host cannot use is a configuration error.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use outrigger_bitcoind::{AskError, NetworkAnswer, OpenError, Rpc, abilities, chain_of, foreign};
use outrigger_node::{Abilities, ChainIdentity};
use outrigger_passthrough::NodeHelp;
use outrigger_sdk::manifest::Manifest;
use outrigger_standard::{release, work};
use outrigger_upstream::{Endpoint, Upstream, UpstreamError};
use serde::Deserialize;
use serde_json::{Value, json};

use super::backend::{OWN_CONNECTIONS, open_error, too_many_connections};
use super::configuration::known_login;
use super::rights::{refuse_lacking, refused};
use super::{RunError, requirements};
use crate::config::{BackendConfig, LoadedConfig, Wallets};

/// The first release with 16 RPC threads by default.
const RELEASE_OF_THREADS: u32 = 29;

/// The features that older nodes lack, each with the first release that has it.
const LACKING: [(u32, &str); 3] = [
    (26, "getprioritisedtransactions, so the mining group cannot report which fees were changed"),
    (26, "getchainstates, so the host cannot detect a background validation (assumeutxo)"),
    (29, "the challenge of a signet in getblockchaininfo, which the host reads from getblocktemplate instead"),
];

/// Queries the node, and returns the lines of the report. `plugins` are the enabled ones, with their positions in the configuration.
///
/// # Errors
/// The node is on another chain, too old, refuses the credentials or a method that the host needs, does not meet a plugin's
/// requirement, or would keep connections waiting.
pub fn report(
    loaded: &LoadedConfig,
    backend: &BackendConfig,
    plugins: &[(usize, &Manifest)],
) -> Result<Vec<String>, RunError> {
    let login = known_login(loaded, backend)?;
    let endpoint: Endpoint = backend.url.parse().map_err(|error| RunError::Failed(format!("backend.url: {error}")))?;
    let upstream = Upstream::new(endpoint.clone(), login.clone(), 1);
    let rpc = Rpc::start(Arc::new(upstream)).map_err(super::no_threads)?;
    let cannot = |error: AskError| Ok(vec![format!("Cannot query the node at {}: {error}", backend.url)]);
    let found = match chain_of(&rpc).map_err(|error| OpenError::of_first_question(&endpoint, error)) {
        Ok(found) => Some(found),
        Err(Err(error)) => return Err(open_error(loaded, error)),
        Err(Ok(AskError::Forbidden(_))) => None,
        Err(Ok(error)) => return cannot(error),
    };
    let network = work::network(&loaded.config.network).ok();
    let expected = network.map(|network| backend.chain(network).unwrap_or_else(|| ChainIdentity::of(network)));
    if let Some((found, expected)) = found.zip(expected).filter(|(found, expected)| found != expected) {
        return Err(open_error(loaded, OpenError::Foreign(foreign(&found, &expected))));
    }
    refuse_lacking(loaded, &rpc, &login)?;
    let refused = match refused(&rpc, &login) {
        Ok(refused) => Some(refused).filter(|text| !text.is_empty()),
        Err(error) => return cannot(error),
    };
    match rpc.ask("getblockchaininfo", &json!([])) {
        Err(error) => cannot(error),
        Ok(chain) => {
            let network: Value = rpc.ask("getnetworkinfo", &json!([])).unwrap_or_default();
            let answer = NetworkAnswer::deserialize(&network).ok();
            let node = Node { release: answer.map(|answer| answer.release()), rpc, chain };
            check_release(&node, loaded, backend)?;
            if let Ok(abilities) = abilities(&node.rpc, node.release) {
                check_requirements(loaded, plugins, &abilities)?;
            }
            Ok(node.lines(&network, backend).into_iter().chain(refused).collect())
        }
    }
}

/// Refuses a node that does not meet a requirement of a plugin.
fn check_requirements(
    loaded: &LoadedConfig,
    plugins: &[(usize, &Manifest)],
    abilities: &Abilities,
) -> Result<(), RunError> {
    for (position, manifest) in plugins {
        if let Err(reason) = requirements::check(&manifest.requires, abilities) {
            let reason = format!("plugin '{}' {reason}", manifest.id);
            return Err(loaded.plugin_error(Some(*position), "file", reason).into());
        }
    }
    Ok(())
}

/// Refuses a node that is too old, and a number of connections that it would not serve.
fn check_release(node: &Node, loaded: &LoadedConfig, backend: &BackendConfig) -> Result<(), RunError> {
    let Some(release) = node.release else { return Ok(()) };
    if release < release::FIRST {
        return Err(open_error(loaded, OpenError::TooOld { release }));
    }
    match too_many_connections(backend, release) {
        Some(reason) => Err(loaded.error("backend.connections", "", reason).into()),
        None => Ok(()),
    }
}

struct Node {
    /// `None` if the node does not answer getnetworkinfo.
    release: Option<u32>,
    rpc: Rpc,
    chain: Value,
}

impl Node {
    fn lines(&self, network: &Value, backend: &BackendConfig) -> Vec<String> {
        let mut lines = vec![self.identity(&network["subversion"], backend)];
        lines.extend(self.endings());
        lines.push(self.pruned());
        lines.extend(self.download());
        lines.extend(self.ask("getchainstates").and_then(|states| background(&states)));
        let is_older = |release: u32| self.release.is_some_and(|own| own < release);
        let lacking = LACKING.iter().filter(|(release, _)| is_older(*release));
        lines.extend(
            lacking.map(|(release, what)| format!("release: the node lacks, until Bitcoin Core {release}, {what}")),
        );
        let index = self.ask("getindexinfo").unwrap_or_default();
        let without = ["rescans read every block", "blockfilterindex=1 makes them fast"];
        lines.push(format!("blockfilterindex: {}", built(&index["basic block filter index"], without)));
        let without = [
            "getrawtransaction finds confirmed transactions only if the call names the block",
            "with txindex=1 it finds all",
        ];
        lines.push(format!("txindex: {}", built(&index["txindex"], without)));
        lines.push(self.rest());
        lines.push(self.zmq());
        let threads = match is_older(RELEASE_OF_THREADS) {
            true => "; 4 threads by default before release 29: set rpcthreads=16",
            false => "",
        };
        let most = backend.connections + backend.long_connections + OWN_CONNECTIONS;
        lines.push(format!(
            "rpcthreads, rpcworkqueue: the node does not tell; it gets at most {most} connections, each with one request \
             at a time (backend.connections, backend.long_connections, and one){threads}"
        ));
        lines.push(self.wallets(backend.wallets));
        lines.extend(self.unknown_methods());
        lines
    }

    fn ask(&self, method: &str) -> Option<Value> {
        self.rpc.ask(method, &json!([])).ok()
    }

    fn identity(&self, release: &Value, backend: &BackendConfig) -> String {
        let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
        let (chain, blocks, headers) = (&self.chain["chain"], &self.chain["blocks"], &self.chain["headers"]);
        let behind = match self.chain["initialblockdownload"] == true {
            true => ", in initial block download",
            false => "",
        };
        let (url, release, chain) = (&backend.url, text(release), text(chain));
        format!("The node at {url} answers: {release}, {chain}, block {blocks} of {headers}{behind}")
    }

    /// A line if the node has closed each connection after one answer.
    fn endings(&self) -> Option<String> {
        let (upstream, read) = (self.rpc.upstream(), |counter: &AtomicU64| counter.load(Ordering::Relaxed));
        let figures = upstream.figures();
        (read(&figures.connections) == read(&figures.replies))
            .then(|| format!("connections: {}", UpstreamError::Ended(upstream.endpoint().clone())))
    }

    /// A line if the node lacks blocks of known headers.
    fn download(&self) -> Option<String> {
        let [blocks, headers] = ["blocks", "headers"].map(|key| self.chain[key].as_u64().unwrap_or_default());
        (blocks < headers).then(|| {
            format!(
                "download: the node knows headers up to {headers} and lacks the blocks after {blocks}, which it downloads; until it has \
                 them, wallets that need them wait, and rescans that need them fail"
            )
        })
    }

    fn pruned(&self) -> String {
        match (self.chain["pruned"] == true, &self.chain["pruneheight"]) {
            (false, _) => "prune: no".to_owned(),
            (true, height) => {
                format!(
                    "prune: blocks below {height} are pruned, and rescans that need them fail; to keep all blocks, set prune=0 and \
                     restart once with -reindex"
                )
            }
        }
    }

    /// A line about the node's methods that the host does not know, and therefore refuses to most users.
    fn unknown_methods(&self) -> Option<String> {
        let help = NodeHelp::parse(self.ask("help")?.as_str()?);
        let names = help.iter().map(|(name, _)| name).filter(|name| outrigger_upstream::method(name).is_none());
        let names = names.collect::<Vec<_>>().join(", ");
        let refused = "users without a list of methods get 403, unless they have unknown_methods = \"allow\"";
        (!names.is_empty()).then(|| format!("methods of the node that the host does not know: {names}; {refused}"))
    }

    fn rest(&self) -> String {
        match self.rpc.rest("/rest/chaininfo.json") {
            Ok(Some(_)) => "rest: on".to_owned(),
            _ => "rest: off; headers and blocks cost more over JSON-RPC; rest=1 switches it on".to_owned(),
        }
    }

    fn zmq(&self) -> String {
        let all = self.ask("getzmqnotifications").unwrap_or_default();
        let sequence = all.as_array().into_iter().flatten().find(|one| one["type"] == "pubsequence");
        match sequence.and_then(|one| one["address"].as_str()) {
            Some(address) => format!("zmqpubsequence: {address}"),
            None => "zmqpubsequence: not published; the host polls for changes; zmqpubsequence=tcp://127.0.0.1:28332 \
                     reports them at once"
                .to_owned(),
        }
    }

    fn wallets(&self, owner: Wallets) -> String {
        let loaded = self.ask("listwallets").map(|names| names.as_array().map_or(0, Vec::len));
        match (loaded, owner) {
            (None, Wallets::Own) => "wallets of the node: disabled; the host's wallets do not need them".to_owned(),
            (None, Wallets::Node) => {
                "wallets of the node: disabled, but backend.wallets = \"node\" needs them; set disablewallet=0"
                    .to_owned()
            }
            (Some(0), _) => "wallets of the node: none loaded".to_owned(),
            (Some(count), Wallets::Node) => format!("wallets of the node: {count} loaded"),
            (Some(count), Wallets::Own) => format!(
                "wallets of the node: {count} loaded; unload those that have a descriptor of ours, since both would choose \
                 the same coins"
            ),
        }
    }
}

/// A line about the progress of the node's background validation (assumeutxo), if there is one.
fn background(states: &Value) -> Option<String> {
    let all = states["chainstates"].as_array()?;
    let snapshot = all.iter().find(|state| state["validated"] == false && state["snapshot_blockhash"].is_string())?;
    let behind = all.iter().find(|state| state["validated"] == true);
    let at = behind.map_or(&Value::Null, |state| &state["blocks"]);
    Some(format!(
        "assumeutxo: the node validates the blocks before {} in the background and is at block {at}; until it has them, wallets and \
         rescans that need them fail (getchainstates shows the progress)",
        snapshot["snapshot_blockhash"].as_str()?
    ))
}

fn built(index: &Value, [without, remedy]: [&str; 2]) -> String {
    match (&index["synced"], &index["best_block_height"]) {
        (Value::Bool(true), _) => "built".to_owned(),
        (Value::Bool(false), height) => format!("being built, at block {height}; until it is complete, {without}"),
        _ => format!("none; {without}; {remedy}"),
    }
}

#[cfg(test)]
mod tests {
    use outrigger_bitcoind::NEEDS;

    use super::*;

    #[test]
    fn page_lists_the_methods_that_the_host_calls() {
        let page = include_str!("../../config/bitcoind.md");
        for need in &NEEDS {
            let told = if need.is_vital { "the check fails" } else { "the check says so" };
            let row = format!("| {} | {told} | {} |\n", need.purpose, need.methods.join(", "));
            assert!(page.contains(&row), "{row}");
        }
    }

    #[test]
    fn check_names_the_background_validation_of_a_node_that_began_with_a_snapshot() {
        let validated = json!({"blocks": 120, "validated": true});
        assert_eq!(background(&json!({"chainstates": [validated]})), None);
        assert_eq!(background(&Value::Null), None);
        let snapshot = json!({"blocks": 800, "snapshot_blockhash": "aa", "validated": false});
        let told = background(&json!({"chainstates": [validated, snapshot]})).unwrap_or_default();
        assert!(
            told.starts_with(
                "assumeutxo: the node validates the blocks before aa in the background and is at block 120;"
            )
        );
        let done = json!({"blocks": 800, "snapshot_blockhash": "aa", "validated": true});
        assert_eq!(background(&json!({"chainstates": [done]})), None);
    }
}
