//! The settings. Their defaults are the values in the reference, `config/regtest.toml`, and in `config/bitcoind.toml`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use super::notify::NotifyConfig;
use outrigger_base::paths::AbsolutePath;
use outrigger_embedded::MempoolLimits;
use outrigger_plugins::{Isolation, Routes};
pub use outrigger_plugins::{PluginConfig, seconds};
use outrigger_rpc::{Access, Limits, ListenAddress, TlsSettings};

use outrigger_standard::release;
use outrigger_values::FeeRate;

pub use super::backend::{BackendConfig, Wallets};
pub use super::backup::BackupConfig;
use super::reach::{IpNetwork, Proxy, one_or_several};
pub use super::wallet::WalletConfig;

#[derive(Clone, Default, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The network: `main`, `test`, `testnet4`, `signet` or `regtest`. The embedded chain is for development, and
    /// supports only `regtest`.
    pub network: String,
    /// The folder of all data; `~` is the home directory. `run` makes it absolute, since the command line may replace a
    /// default whose home directory is unknown.
    pub datadir: PathBuf,
    /// The major release of Bitcoin Core whose answers clients get, 24 to 32. Default: the node's, and 29 on the
    /// embedded chain.
    pub release: Option<u32>,
    /// The deprecated features of the release that clients still get, by bitcoind's names: `removeprunedfunds`, `bip125`,
    /// `fullrbf`.
    pub deprecatedrpc: Vec<String>,
    pub rpc: RpcConfig,
    pub chain: ChainConfig,
    /// The running bitcoind; by default the embedded chain.
    pub backend: Option<BackendConfig>,
    pub wallet: WalletConfig,
    pub log: LogConfig,
    pub metrics: MetricsConfig,
    pub audit: AuditConfig,
    pub backup: BackupConfig,
    pub notify: NotifyConfig,
    pub plugin_defaults: PluginDefaults,
    /// The plugins, in the order in which they start.
    pub plugins: Vec<PluginConfig>,
    pub routes: Routes,
}

impl Config {
    pub fn mempool_limits(&self) -> MempoolLimits {
        let limits = MempoolLimits::of(&release::rules(self.release));
        MempoolLimits {
            max_usage: self.chain.mempool_mb * 1_000_000,
            relay_feerate: self.chain.min_relay_feerate.map_or(limits.relay_feerate, FeeRate::from_sat_per_kvb),
            ..limits
        }
    }
}

#[derive(Clone, Default, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PluginDefaults {
    /// Which plugins run in their own processes.
    pub isolated: Isolation,
}

#[derive(Clone, Default, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RpcConfig {
    /// The addresses to listen on, or a single one. Port 0 lets the system choose. By default a port of this machine:
    /// 18443 on the embedded chain, else the network's default RPC port plus 5, over IPv4 and IPv6. `unix:` and a path is a
    /// Unix socket.
    #[serde(deserialize_with = "one_or_several")]
    pub listen: Vec<ListenAddress>,
    pub socket_mode: u32,
    /// Threads that run plugins' code.
    pub threads: usize,
    /// The maximum number of calls that wait for a thread. Further calls get HTTP 503.
    pub queue_depth: usize,
    /// The deadline of a plugin's call, in seconds, unless the method is long-running; 0 for none.
    pub call_deadline_seconds: u64,
    pub max_body_bytes: usize,
    /// The maximum size of a request's first line and headers, in bytes. At most 100 headers are accepted.
    pub max_header_bytes: usize,
    pub max_batch: usize,
    /// The maximum nesting of arrays and objects in a body.
    pub max_nesting: usize,
    pub max_connections: usize,
    /// Concurrent long polls; by default half of the connections.
    pub max_long_calls: Option<usize>,
    /// How long a request's headers may take to arrive, in seconds.
    pub header_timeout_seconds: u64,
    /// How long the next part of a body may take to arrive, in seconds.
    pub body_timeout_seconds: u64,
    /// How long a connection may idle, in seconds. Waiting for an answer is not idling.
    pub idle_timeout_seconds: u64,
    /// How long a connection may take to show credentials, in seconds.
    pub unauthenticated_timeout_seconds: u64,
    /// The maximum size of unread answers over all connections, in bytes. Above it, the host resets the connections whose
    /// clients have read nothing for the longest time.
    pub max_unread_bytes: u64,
    /// The origins of web pages that may open a WebSocket or use a client certificate: `https://wallet.example`.
    pub websocket_origins: Vec<String>,
    /// Whether the host serves the page `/console`. Default: only if no other machine and no proxy can connect.
    pub console: Option<bool>,
    /// How long stopping waits for calls in flight, in seconds.
    pub shutdown_grace_seconds: u64,
    /// How long a thread spins for the connection's next request after an answer, in microseconds; 0: not at all.
    pub busy_poll_microseconds: u64,
    /// Networks whose clients are accepted, besides this machine's own: `10.0.0.0/8`, `10.0.0.0/255.0.0.0`, `fd00::/8`
    /// or single addresses.
    pub allow_from: Vec<IpNetwork>,
    /// Networks of proxies that the host trusts to report the client's address; `unix` for a proxy on a Unix socket.
    pub trusted_proxies: Vec<Proxy>,
    /// A bitcoin.conf whose `rpcauth`, `rpcwhitelist` and `rpcwhitelistdefault` apply here too.
    pub bitcoin_conf: Option<AbsolutePath>,
    /// TLS at all addresses; default: plain HTTP.
    pub tls: Option<TlsSettings>,
    /// The users besides the cookie's user.
    pub users: Vec<UserConfig>,
}

impl RpcConfig {
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

    pub fn max_long_calls(&self) -> usize {
        self.max_long_calls.unwrap_or(self.max_connections / 2)
    }

    pub fn access(&self) -> Access {
        let allowed = self.allow_from.iter().map(|network| network.0).collect();
        let network = |proxy: &Proxy| match proxy {
            Proxy::Network(network) => Some(network.0),
            Proxy::Unix => None,
        };
        let trusted: Vec<_> = self.trusted_proxies.iter().filter_map(network).collect();
        let trusts_unix = trusted.len() < self.trusted_proxies.len();
        Access { allowed, trusted, trusts_unix }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserConfig {
    /// `NAME:SALT$HMAC`, as made by `outrigger auth NAME`.
    pub rpcauth: Option<String>,
    /// The name of a user without a password, in place of `rpcauth`.
    pub name: Option<String>,
    /// The system user ID whose processes act as this user on a Unix socket, without credentials.
    pub uid: Option<u32>,
    /// The methods that the user may call, besides `rpc.discover`, which lists them. Default: all methods.
    pub methods: Option<Vec<String>>,
    /// The only wallet that the user may use, which is also the default of the user's calls. Default: all wallets.
    pub wallet: Option<String>,
    /// The folders in which the user may name files (backupwallet, restorewallet); default: anywhere outside the data
    /// directory. A relative path is refused: a right must not depend on the folder in which the host starts.
    pub folders: Option<Vec<PathBuf>>,
    /// Whether the user may call methods that the host does not know and `methods` does not list.
    #[serde(default)]
    pub unknown_methods: UnknownMethods,
    /// The maximum number of calls per second, also in one burst. Each element of a batch counts. Default: no limit.
    pub max_calls_per_second: Option<u32>,
    /// The maximum number of concurrent calls. Default: no limit.
    pub max_concurrent_calls: Option<u32>,
    /// The maximum number of existing wallets that the user has created. Default: no limit.
    pub max_wallets: Option<u32>,
}

impl UserConfig {
    pub fn name(&self) -> &str {
        let of_entry = self.rpcauth.as_deref().and_then(|entry| entry.split(':').next());
        self.name.as_deref().or(of_entry).unwrap_or_default()
    }

    pub fn limits(&self) -> [Option<u32>; 3] {
        [self.max_calls_per_second, self.max_concurrent_calls, self.max_wallets]
    }
}

/// Whether a user may call methods that only the node knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UnknownMethods {
    /// The default, because such a method may read or write files, or reach other wallets.
    #[default]
    Refuse,
    Allow,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MetricsConfig {
    /// The address that serves metrics, without credentials. Default: no metrics.
    pub listen: Option<SocketAddr>,
}

#[derive(Clone, Default, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ChainConfig {
    /// The address space reserved for the chain's database, in GiB. The file grows as needed.
    pub map_gib: usize,
    /// The memory limit of the mempool, in megabytes of 10^6 bytes, as in bitcoind's `maxmempool`.
    pub mempool_mb: u64,
    /// The minimum relay feerate, in satoshi per 1000 virtual bytes. Default: that of the release.
    pub min_relay_feerate: Option<u64>,
}

#[derive(Clone, Default, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LogConfig {
    /// The level: `error`, `warn`, `info`, `debug`, or a list of `target=level`.
    pub level: String,
    pub format: LogFormat,
}

#[derive(Clone, Default, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AuditConfig {
    /// The file of the audit log. Default: no audit log.
    pub file: Option<AbsolutePath>,
    /// The size at which the file is rotated, in bytes.
    pub max_bytes: u64,
    /// How many rotated files are kept.
    pub keep: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    #[default]
    Text,
    Json,
}
