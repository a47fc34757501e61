//! The settings of a running bitcoind that the host stands in front of.

use std::path::PathBuf;

use bitcoin::{BlockHash, Network, ScriptBuf};
use outrigger_bitcoind::{RewindLimit, ZmqSetting};
use outrigger_node::ChainIdentity;
use outrigger_zmq::BadZmqEndpoint;
use serde::Deserialize;

/// The running bitcoind that the host stands in front of.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackendConfig {
    /// Where its RPC server listens: `http://host:port`.
    pub url: String,
    /// The cookie file that it writes at each start; bitcoind's default place where neither this nor `user` is given.
    #[serde(default)]
    pub cookie: Option<PathBuf>,
    /// A user of the node, instead of the cookie.
    #[serde(default)]
    pub user: Option<String>,
    /// The file whose first line is that user's password.
    #[serde(default)]
    pub password_file: Option<PathBuf>,
    /// Whose wallets answer wallet methods.
    #[serde(default)]
    pub wallets: Wallets,
    /// Methods that are never passed on.
    #[serde(default)]
    pub deny: Vec<String>,
    /// Whether GET requests of the node's REST interface are passed on.
    #[serde(default)]
    pub rest_passthrough: bool,
    /// Connections to the node, each with one request at a time.
    #[serde(default = "default_connections")]
    pub connections: usize,
    /// How long a thread looks for the node's reply to a passed call before it goes to sleep, in microseconds; 0: not at all.
    #[serde(default = "default_busy_poll_microseconds")]
    pub busy_poll_microseconds: u64,
    /// Where the node's notifications (`sequence`) come from: `auto`, an endpoint, or `off`.
    #[serde(default = "default_zmq")]
    pub zmq: String,
    /// Connections beside them on which calls of the host may wait for a block; it uses one, while there are no notifications.
    #[serde(default = "default_long_connections")]
    pub long_connections: usize,
    /// Disk for the node's block filters, kept as rescans fetch them, in MiB; 0: none are kept.
    #[serde(default = "default_filter_cache_mib")]
    pub filter_cache_mib: u64,
    /// Whether rescans search the node's block filters, which cannot be proven, instead of reading every block.
    #[serde(default = "default_filters")]
    pub filters: bool,
    /// The greatest estimate of a feerate that is taken from the node, in satoshi per virtual byte.
    #[serde(default = "default_max_estimate")]
    pub max_estimate: u64,
    /// How long wallets tell what they know while the node is away, in seconds; 0: always.
    #[serde(default)]
    pub patience_seconds: u64,
    /// The challenge of a custom signet, hexadecimal, as bitcoind's `signetchallenge`; without it signet is the public one.
    #[serde(default)]
    pub signet_challenge: Option<String>,
    /// How long the node may be behind, or lack blocks of which it has the headers, before the host counts as not ready, in seconds.
    #[serde(default = "default_behind_seconds")]
    pub behind_seconds: u64,
    /// By how many blocks the node may go back from our best block, to an ancestor of it or to a branch with less work, and a wallet that
    /// is loaded to where its blocks and the node's part; by default 144, and any number on regtest.
    #[serde(default)]
    pub max_rewind: Option<u32>,
    /// The hash of a block that both may go back to all the same.
    #[serde(default)]
    pub allow_rewind_to: Option<BlockHash>,
}

/// By how many blocks the node may go back where nothing is configured: a day. On regtest, any number.
const MAX_REWIND: u32 = 144;

impl BackendConfig {
    /// How far node and wallets may go back.
    pub fn rewind(&self, network: Network) -> RewindLimit {
        let limit = self.max_rewind.or_else(|| (network != Network::Regtest).then_some(MAX_REWIND));
        RewindLimit { limit, allowed: self.allow_rewind_to }
    }

    /// The chain that the node has to be on; none where the challenge is not hexadecimal.
    pub fn chain(&self, network: Network) -> Option<ChainIdentity> {
        match &self.signet_challenge {
            None => Some(ChainIdentity::of(network)),
            Some(challenge) => ScriptBuf::from_hex(challenge).ok().map(ChainIdentity::signet),
        }
    }
}

/// Whose wallets answer wallet methods.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Wallets {
    /// The host's: those of plugins.
    #[default]
    Own,
    /// The node's.
    Node,
}

/// What is left free of bitcoind's 16 threads.
fn default_connections() -> usize {
    8
}

/// A little longer than a node takes for a short call.
fn default_busy_poll_microseconds() -> u64 {
    100
}

/// Wherever the node says.
fn default_zmq() -> String {
    "auto".to_owned()
}

fn default_long_connections() -> usize {
    1
}

fn default_filters() -> bool {
    true
}

/// A wrong estimate of the node costs no more than this; an operator who wants to pay more raises the setting.
fn default_max_estimate() -> u64 {
    1_000
}

/// More than a block takes to come after its header.
fn default_behind_seconds() -> u64 {
    60
}

fn default_filter_cache_mib() -> u64 {
    1024
}

impl BackendConfig {
    /// Where the node's notifications come from.
    ///
    /// # Errors
    /// When it is none of the words and no endpoint.
    pub fn zmq(&self) -> Result<ZmqSetting, BadZmqEndpoint> {
        match self.zmq.as_str() {
            "auto" => Ok(ZmqSetting::Auto),
            "off" => Ok(ZmqSetting::Off),
            endpoint => Ok(ZmqSetting::At(endpoint.parse()?)),
        }
    }
}
