//! The settings of a running bitcoind behind the host.

use bitcoin::{BlockHash, Network, ScriptBuf};
use outrigger_bitcoind::{RewindLimit, ZmqSetting};
use outrigger_node::ChainIdentity;
use outrigger_zmq::BadZmqEndpoint;
use serde::Deserialize;

use super::paths::AbsolutePath;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackendConfig {
    /// Its RPC server: `http://host:port`.
    pub url: String,
    /// The cookie file that it writes at each start; by default bitcoind's default path, if `user` is not set either.
    pub cookie: Option<AbsolutePath>,
    pub user: Option<String>,
    /// The file whose first line is that user's password.
    pub password_file: Option<AbsolutePath>,
    #[serde(default)]
    pub wallets: Wallets,
    /// Methods that are never forwarded.
    #[serde(default)]
    pub deny: Vec<String>,
    /// Whether GET requests of the node's REST interface are forwarded.
    #[serde(default)]
    pub rest_passthrough: bool,
    /// Whether REST requests need no credentials.
    #[serde(default)]
    pub rest_anonymous: bool,
    /// Connections to the node, each with one request at a time.
    #[serde(default = "default_connections")]
    pub connections: usize,
    /// How long a thread spins for the node's reply to a forwarded call, in microseconds; 0: not at all.
    #[serde(default = "default_busy_poll_microseconds")]
    pub busy_poll_microseconds: u64,
    /// The source of the node's notifications (`sequence`): `auto`, an endpoint, or `off`.
    #[serde(default = "default_zmq")]
    pub zmq: String,
    /// Additional connections for long polls of the host; it uses one while there are no notifications.
    #[serde(default = "default_long_connections")]
    pub long_connections: usize,
    /// The disk cache of the node's block filters, filled by rescans, in MiB; 0: none.
    #[serde(default = "default_filter_cache_mib")]
    pub filter_cache_mib: u64,
    /// Whether rescans search the node's block filters, which the host cannot verify, instead of reading every block.
    #[serde(default = "default_filters")]
    pub filters: bool,
    /// The highest feerate estimate accepted from the node, in satoshi per virtual byte.
    #[serde(default = "default_max_estimate")]
    pub max_estimate: u64,
    /// How long wallets serve cached data while the node is away, in seconds; 0: always.
    #[serde(default)]
    pub patience_seconds: u64,
    /// The challenge of a custom signet in hex, as bitcoind's `signetchallenge`; by default the public signet's.
    pub signet_challenge: Option<String>,
    /// How long the node may be behind, or lack blocks of known headers, before the host counts as not ready, in
    /// seconds.
    #[serde(default = "default_behind_seconds")]
    pub behind_seconds: u64,
    /// The most blocks that the node may go back from the host's best block, to an ancestor or to a branch with less work,
    /// or a wallet at loading to the fork of its chain and the node's. Default: 144, and any number on regtest.
    pub max_rewind: Option<u32>,
    /// The hash of a block to which the node and wallets may always rewind.
    pub allow_rewind_to: Option<BlockHash>,
}

/// The default of `max_rewind`: a day. On regtest, any number.
const MAX_REWIND: u32 = 144;

impl BackendConfig {
    /// How far node and wallets may go back.
    pub fn rewind(&self, network: Network) -> RewindLimit {
        let limit = self.max_rewind.or_else(|| (network != Network::Regtest).then_some(MAX_REWIND));
        RewindLimit { limit, allowed: self.allow_rewind_to }
    }

    /// The identity of the chain; `None` if the signet challenge is not hex.
    pub fn chain(&self, network: Network) -> Option<ChainIdentity> {
        match &self.signet_challenge {
            None => Some(ChainIdentity::of(network)),
            Some(challenge) => ScriptBuf::from_hex(challenge).ok().map(ChainIdentity::signet),
        }
    }

    /// The source of the node's notifications.
    ///
    /// # Errors
    /// Neither a keyword nor an endpoint.
    pub fn zmq(&self) -> Result<ZmqSetting, BadZmqEndpoint> {
        match self.zmq.as_str() {
            "auto" => Ok(ZmqSetting::Auto),
            "off" => Ok(ZmqSetting::Off),
            endpoint => Ok(ZmqSetting::At(endpoint.parse()?)),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Wallets {
    /// The host's wallets, which plugins serve.
    #[default]
    Own,
    Node,
}

/// Half of the 16 threads that bitcoind has by default since release 29.
fn default_connections() -> usize {
    8
}

/// A little longer than a node with sleeping threads needs for a short call.
fn default_busy_poll_microseconds() -> u64 {
    250
}

/// The endpoint that the node reports.
fn default_zmq() -> String {
    "auto".to_owned()
}

fn default_long_connections() -> usize {
    1
}

fn default_filters() -> bool {
    true
}

/// Limits the cost of the node's wrong estimates; an operator who wants to pay more raises it.
fn default_max_estimate() -> u64 {
    1_000
}

/// Longer than a block takes to arrive after its header.
fn default_behind_seconds() -> u64 {
    60
}

fn default_filter_cache_mib() -> u64 {
    1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn max_rewind_is_a_day_by_default_and_unlimited_on_regtest_alone() {
        let limit = |text: &str, network| toml::from_str::<BackendConfig>(text).unwrap().rewind(network).limit;
        for network in [Network::Bitcoin, Network::Testnet, Network::Testnet4, Network::Signet] {
            assert_eq!(limit("url = ''", network), Some(144), "{network}");
        }
        assert_eq!(limit("url = ''", Network::Regtest), None);
        assert_eq!(limit("url = ''\nmax_rewind = 3", Network::Regtest), Some(3));
    }
}
