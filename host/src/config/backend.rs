//! The settings of a running bitcoind behind the host.

use bitcoin::{BlockHash, Network, ScriptBuf};
use outrigger_base::paths::AbsolutePath;
use outrigger_bitcoind::{RewindLimit, ZmqSetting};
use outrigger_node::ChainIdentity;
use outrigger_zmq::BadZmqEndpoint;
use serde::Deserialize;

#[derive(Clone, Default, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BackendConfig {
    /// Its RPC server: `http://host:port`.
    pub url: String,
    /// The cookie file that it writes at each start; by default bitcoind's default path, if `user` is not set either.
    pub cookie: Option<AbsolutePath>,
    pub user: Option<String>,
    /// The file whose first line is that user's password.
    pub password_file: Option<AbsolutePath>,
    pub wallets: Wallets,
    /// Methods that are never forwarded.
    pub deny: Vec<String>,
    /// Whether GET requests of the node's REST interface are forwarded.
    pub rest_passthrough: bool,
    /// Whether REST requests need no credentials.
    pub rest_anonymous: bool,
    /// Connections to the node, each with one request at a time.
    pub connections: usize,
    /// How long a thread spins for the node's reply to a forwarded call, in microseconds; 0: not at all.
    pub busy_poll_microseconds: u64,
    /// The source of the node's notifications (`sequence`): `auto`, an endpoint, or `off`.
    pub zmq: String,
    /// Additional connections for long polls of the host; it uses one while there are no notifications.
    pub long_connections: usize,
    /// The disk cache of the node's block filters, filled by rescans, in MiB; 0: none.
    pub filter_cache_mib: u64,
    /// Whether rescans search the node's block filters, which the host cannot verify, instead of reading every block.
    pub filters: bool,
    /// The highest feerate estimate accepted from the node, in satoshi per virtual byte.
    pub max_estimate: u64,
    /// How long wallets serve cached data while the node is away, in seconds; 0: always.
    pub patience_seconds: u64,
    /// The challenge of a custom signet in hex, as bitcoind's `signetchallenge`; by default the public signet's.
    pub signet_challenge: Option<String>,
    /// How long the node may be behind, or lack blocks of known headers, before the host counts as not ready, in
    /// seconds.
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
