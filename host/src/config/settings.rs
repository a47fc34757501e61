//! The settings, with their defaults.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;
use serde::de::Error;
use serde::{Deserialize, Deserializer};

use super::notify::NotifyConfig;
use outrigger_plugins::Isolation;
pub use outrigger_plugins::{PluginConfig, seconds};
use outrigger_rpc::{Limits, Peers};

pub use super::backend::{BackendConfig, Wallets};
pub use super::wallet::WalletConfig;

/// All settings.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The network: `main`, `test`, `testnet4`, `signet` or `regtest`. The embedded chain is for development only, and is `regtest`.
    #[serde(default = "default_network")]
    pub network: String,
    /// Where everything is kept; `~` is the home directory.
    #[serde(default = "default_datadir")]
    pub datadir: PathBuf,
    /// The network edge.
    #[serde(default)]
    pub rpc: RpcConfig,
    /// The embedded chain.
    #[serde(default)]
    pub chain: ChainConfig,
    /// The running bitcoind; without it, the embedded chain.
    #[serde(default)]
    pub backend: Option<BackendConfig>,
    /// The wallets.
    #[serde(default)]
    pub wallet: WalletConfig,
    /// The log.
    #[serde(default)]
    pub log: LogConfig,
    /// The metrics.
    #[serde(default)]
    pub metrics: MetricsConfig,
    /// The audit log.
    #[serde(default)]
    pub audit: AuditConfig,
    /// What is told to others.
    #[serde(default)]
    pub notify: NotifyConfig,
    /// What holds for plugins whose entries do not say otherwise.
    #[serde(default)]
    pub plugin_defaults: PluginDefaults,
    /// The plugins, in the order in which they start.
    #[serde(default)]
    pub plugins: Vec<PluginConfig>,
    /// Which plugin has a method that several claim.
    #[serde(default)]
    pub routes: BTreeMap<String, String>,
}

/// What holds for plugins whose entries do not say otherwise.
#[derive(Clone, Default, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PluginDefaults {
    /// Which of them run in processes of their own.
    pub isolated: Isolation,
}

/// The network edge.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RpcConfig {
    /// The addresses to listen on, or a single one. Port 0 lets the system choose. By default a port of this machine: 18443 on the
    /// embedded chain, else the network's default RPC port plus 5, over IPv4 and IPv6.
    #[serde(deserialize_with = "one_or_several")]
    pub listen: Vec<SocketAddr>,
    /// Threads that run plugins' code.
    pub threads: usize,
    /// Calls that may wait for a thread; more are answered 503.
    pub queue_depth: usize,
    /// How long a call of a plugin may take, in seconds, unless its manifest calls the method long-running; 0 for as long as
    /// it likes.
    pub call_deadline_seconds: u64,
    /// The largest request body, in bytes.
    pub max_body_bytes: usize,
    /// The longest line and headers of a request, in bytes; they may be 100 lines.
    pub max_header_bytes: usize,
    /// Requests in a batch.
    pub max_batch: usize,
    /// Arrays and objects that a body may nest.
    pub max_nesting: usize,
    /// Connections at a time.
    pub max_connections: usize,
    /// Long polls at a time; half of the connections where it is left out.
    pub max_long_calls: Option<usize>,
    /// How long a request's headers may take to arrive, in seconds.
    pub header_timeout_seconds: u64,
    /// How long the next part of a body may take to arrive, in seconds.
    pub body_timeout_seconds: u64,
    /// How long a connection may idle, in seconds. Waiting for an answer is not idling.
    pub idle_timeout_seconds: u64,
    /// How long a connection may take to show credentials, in seconds.
    pub unauthenticated_timeout_seconds: u64,
    /// Bytes of answers that may wait for their clients to read, on all connections. Beyond, the connections are reset whose
    /// clients have taken nothing for the longest time.
    pub max_unread_bytes: u64,
    /// The origins of web pages that may open a WebSocket: `https://wallet.example`.
    pub websocket_origins: Vec<String>,
    /// How long stopping waits for calls in flight, in seconds.
    pub shutdown_grace_seconds: u64,
    /// How long a thread that has answered looks for the connection's next request before it goes to sleep, in
    /// microseconds; 0: not at all.
    pub busy_poll_microseconds: u64,
    /// Networks whose clients are accepted, beside this machine's own: `10.0.0.0/8`, `10.0.0.0/255.0.0.0`, `fd00::/8` or single
    /// addresses.
    pub allow_from: Vec<IpNetwork>,
    /// A bitcoin.conf whose `rpcauth`, `rpcwhitelist` and `rpcwhitelistdefault` hold here too.
    pub bitcoin_conf: Option<PathBuf>,
    /// Users beside the cookie's.
    pub users: Vec<UserConfig>,
}

impl RpcConfig {
    /// The bounds of the network edge.
    pub fn limits(&self) -> Limits {
        Limits {
            max_body_bytes: self.max_body_bytes,
            max_header_bytes: self.max_header_bytes,
            header_read_timeout: Duration::from_secs(self.header_timeout_seconds),
            body_stall_timeout: Duration::from_secs(self.body_timeout_seconds),
            idle_timeout: Duration::from_secs(self.idle_timeout_seconds),
            unauthenticated_timeout: Duration::from_secs(self.unauthenticated_timeout_seconds),
            max_unread_bytes: self.max_unread_bytes,
            websocket_origins: self.websocket_origins.clone(),
            max_connections: self.max_connections,
            max_batch: self.max_batch,
            max_nesting: self.max_nesting,
            shutdown_grace: Duration::from_secs(self.shutdown_grace_seconds),
            busy_poll: Duration::from_micros(self.busy_poll_microseconds),
            ..Limits::default()
        }
    }

    /// How many long polls may wait at a time.
    pub fn max_long_calls(&self) -> usize {
        self.max_long_calls.unwrap_or(self.max_connections / 2)
    }

    /// Which clients are accepted.
    pub fn peers(&self) -> Peers {
        Peers::of(self.allow_from.iter().map(|network| network.0).collect())
    }
}

/// Reads an address, or a list of them.
fn one_or_several<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<SocketAddr>, D::Error> {
    #[derive(Deserialize)]
    #[serde(
        untagged,
        expecting = "expected an address and port as \"127.0.0.1:8337\" or \"[::1]:8337\", or a list of these"
    )]
    enum Listen {
        One(SocketAddr),
        Several(Vec<SocketAddr>),
    }
    Ok(match Listen::deserialize(deserializer)? {
        Listen::One(address) => vec![address],
        Listen::Several(addresses) => addresses,
    })
}

/// A network, or a single address.
#[derive(Clone, Copy, Debug)]
pub struct IpNetwork(pub IpNet);

impl<'de> Deserialize<'de> for IpNetwork {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let single = || text.parse::<IpAddr>().ok().map(IpNet::from);
        let masked = || {
            let (address, mask) = text.split_once('/')?;
            let (address, mask): (IpAddr, IpAddr) = (address.parse().ok()?, mask.parse().ok()?);
            (address.is_ipv4() == mask.is_ipv4()).then(|| IpNet::with_netmask(address, mask).ok())?
        };
        text.parse().ok().or_else(single).or_else(masked).map(Self).ok_or_else(|| {
            D::Error::custom(format!(
                "'{text}' is no network: write an address, or one and its prefix or mask as in 10.0.0.0/8"
            ))
        })
    }
}

/// A user of the RPC interface.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserConfig {
    /// `NAME:SALT$HMAC`, as `outrigger auth NAME` makes it.
    pub rpcauth: String,
    /// The methods the user may call, beside `rpc.discover`, which shows these; all where it is left out.
    #[serde(default)]
    pub methods: Option<Vec<String>>,
    /// The only wallet the user may use, which calls go to that name none; all where it is left out.
    #[serde(default)]
    pub wallet: Option<String>,
    /// The folders that files which the user names may lie in (backupwallet, restorewallet); anywhere outside the data
    /// directory where it is left out.
    #[serde(default)]
    pub folders: Option<Vec<PathBuf>>,
    /// What becomes of methods of the node that the host does not know, where `methods` does not name them.
    #[serde(default)]
    pub unknown_methods: UnknownMethods,
}

/// What becomes of a user's calls of methods that only the node knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UnknownMethods {
    /// They are refused: such a method may read or write files, or reach other wallets.
    #[default]
    Refuse,
    /// They are passed on.
    Allow,
}

/// The metrics' own port.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MetricsConfig {
    /// The address to listen on; without one there are no metrics. They need no credentials.
    pub listen: Option<SocketAddr>,
}

impl Default for RpcConfig {
    fn default() -> Self {
        Self {
            listen: Vec::new(),
            threads: 8,
            queue_depth: 256,
            call_deadline_seconds: 120,
            max_body_bytes: 32 << 20,
            max_header_bytes: 16 << 10,
            max_batch: 65_536,
            max_nesting: 512,
            max_connections: 16_384,
            max_long_calls: None,
            header_timeout_seconds: 30,
            body_timeout_seconds: 30,
            idle_timeout_seconds: 120,
            unauthenticated_timeout_seconds: 10,
            max_unread_bytes: 256 << 20,
            websocket_origins: Vec::new(),
            shutdown_grace_seconds: 10,
            busy_poll_microseconds: 50,
            allow_from: Vec::new(),
            bitcoin_conf: None,
            users: Vec::new(),
        }
    }
}

/// The embedded chain.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ChainConfig {
    /// Address space reserved for its database, in GiB; disk is taken as needed.
    pub map_gib: usize,
    /// The memory the mempool may take, in megabytes of 10^6 bytes, as bitcoind counts `maxmempool`.
    pub mempool_mb: u64,
    /// The least feerate that is accepted, in satoshi per 1000 virtual bytes.
    pub min_relay_feerate: u64,
}

impl Default for ChainConfig {
    fn default() -> Self {
        Self { map_gib: 1024, mempool_mb: 300, min_relay_feerate: 1000 }
    }
}

/// The log.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LogConfig {
    /// What is written: `error`, `warn`, `info`, `debug`, or a list of `target=level`.
    pub level: String,
    /// `text` or `json`.
    pub format: LogFormat,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self { level: "info".to_owned(), format: LogFormat::Text }
    }
}

/// The audit log.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AuditConfig {
    /// Its file; without one there is no audit log.
    pub file: Option<PathBuf>,
    /// How large the file may become before another is begun, in bytes.
    pub max_bytes: u64,
    /// How many former files are kept.
    pub keep: u32,
}

impl Default for AuditConfig {
    fn default() -> Self {
        Self { file: None, max_bytes: 64 << 20, keep: 4 }
    }
}

/// How log lines are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    Text,
    /// For programs.
    Json,
}

fn default_network() -> String {
    "regtest".to_owned()
}

fn default_datadir() -> PathBuf {
    PathBuf::from("~/.outrigger")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_written_with_a_prefix_a_mask_or_neither() {
        let read = |text: &str| {
            serde_json::from_value::<IpNetwork>(serde_json::Value::from(text)).map(|network| network.0.to_string())
        };
        let cases = [
            ("10.0.0.0/8", "10.0.0.0/8"),
            ("10.0.0.0/255.0.0.0", "10.0.0.0/8"),
            ("192.168.1.7/255.255.255.255", "192.168.1.7/32"),
            ("0.0.0.0/0.0.0.0", "0.0.0.0/0"),
            ("fd00::/ff00::", "fd00::/8"),
            ("192.168.1.7", "192.168.1.7/32"),
        ];
        for (written, network) in cases {
            assert_eq!(read(written).unwrap(), network, "{written}");
        }
        for wrong in ["", "10.0.0.0/", "10.0.0.0/255.0.255.0", "10.0.0.0/ff00::", "10.0.0.0/33", "ten"] {
            assert!(read(wrong).unwrap_err().to_string().contains("is no network"), "{wrong}");
        }
    }
}
