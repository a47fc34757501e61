//! Rules of the settings that types cannot express.

use outrigger_services::MAX_STORE_MIB;
use outrigger_standard::release::{self, Deprecated};
use outrigger_standard::work;
use outrigger_upstream::Endpoint;

use super::{BackendConfig, ConfigError, LoadedConfig, NotifyConfig, PluginConfig};

/// The most address space that a database may reserve, in GiB.
const MAX_MAP_GIB: u64 = 65_536;

/// The most disk space for block filters, in MiB: many times the size of the main chain's filters.
const MAX_FILTER_CACHE_MIB: u64 = 1 << 20;

/// The highest limit of fee estimates, in satoshi per virtual byte: two million virtual bytes would cost all bitcoins.
const MAX_ESTIMATE: u64 = 1 << 30;

/// The highest minimum relay feerate, in satoshi per 1000 virtual bytes: 0.1 BTC.
const MAX_RELAY_FEERATE: u64 = 10_000_000;

/// Spinning longer would cost others more CPU time than it saves.
const MAX_BUSY_POLL_MICROSECONDS: u64 = 1000;
const MAX_HIGH_WATER_MARK: u64 = 1_000_000;

/// The most addresses that are derived ahead.
const MAX_KEYPOOL: u64 = 100_000;
/// The highest `wallet.txconfirmtarget`, in blocks: that of the node's estimator.
const MAX_CONFIRMATION_TARGET: u64 = 1008;

/// The longest time between two backups: a year.
const MAX_BACKUP_SECONDS: u64 = 366 * 86_400;
/// The most backups of a wallet that are kept.
const MAX_BACKUPS: u64 = 100_000;

/// The longest deadline of a call: a day.
const MAX_DEADLINE_SECONDS: u64 = 86_400;

/// The least memory, in MiB, and the least number of threads of an isolated plugin's process: it has one thread for each
/// thread of the host that calls it.
const MIN_PLUGIN_MEMORY_MIB: u64 = 64;
const MIN_PLUGIN_THREADS: u64 = 64;

/// The least limit of a plugin's answers, in bytes.
const MIN_ANSWER_BYTES: u64 = 1024;

/// The highest limit of a plugin's answers, in bytes.
const MAX_ANSWER_BYTES: u64 = 1 << 32;

/// The deepest nesting of a body that may be configured, as in bitcoind.
const MAX_NESTING: u64 = 512;

impl LoadedConfig {
    pub fn check(&self) -> Result<(), ConfigError> {
        let config = &self.config;
        if config.backend.is_none() && config.network != "regtest" {
            let reason = format!("the embedded chain is regtest; '{}' is not supported", config.network);
            return Err(self.error("network", &config.network, reason));
        }
        if let Some(backend) = &config.backend {
            self.check_backend(backend)?;
        }
        if let Some(unknown) = config.deprecatedrpc.iter().find(|name| !Deprecated::NAMES.contains(&name.as_str())) {
            let known = Deprecated::NAMES.join(", ");
            let reason = format!("'{unknown}' is no deprecated feature; there are: {known}");
            return Err(self.error("deprecatedrpc", unknown, reason));
        }
        self.check_notify(&config.notify)?;
        self.check_socket_mode()?;
        self.check_proxies()?;
        self.check_ranges()?;
        if let Err(reason) = config.backup.recipient() {
            return Err(self.error("backup.recipient", "", reason));
        }
        self.check_wallets()?;
        for (position, plugin) in config.plugins.iter().enumerate() {
            self.check_plugin(position, plugin)?;
        }
        Ok(())
    }

    fn check_ranges(&self) -> Result<(), ConfigError> {
        let config = &self.config;
        let ranges = [
            ("rpc.threads", config.rpc.threads as u64, 1, 1024),
            ("rpc.queue_depth", config.rpc.queue_depth as u64, 1, 1 << 20),
            ("rpc.call_deadline_seconds", config.rpc.call_deadline_seconds, 0, MAX_DEADLINE_SECONDS),
            ("rpc.max_body_bytes", config.rpc.max_body_bytes as u64, 1024, 1 << 32),
            ("rpc.max_header_bytes", config.rpc.max_header_bytes as u64, 8192, 1 << 24),
            ("rpc.max_batch", config.rpc.max_batch as u64, 1, 1 << 32),
            ("rpc.max_nesting", config.rpc.max_nesting as u64, 16, MAX_NESTING),
            ("rpc.max_connections", config.rpc.max_connections as u64, 1, 1 << 20),
            ("rpc.max_long_calls", config.rpc.max_long_calls() as u64, 0, 1 << 20),
            ("rpc.header_timeout_seconds", config.rpc.header_timeout_seconds, 1, MAX_DEADLINE_SECONDS),
            ("rpc.body_timeout_seconds", config.rpc.body_timeout_seconds, 1, MAX_DEADLINE_SECONDS),
            ("rpc.idle_timeout_seconds", config.rpc.idle_timeout_seconds, 1, MAX_DEADLINE_SECONDS),
            (
                "rpc.unauthenticated_timeout_seconds",
                config.rpc.unauthenticated_timeout_seconds,
                1,
                MAX_DEADLINE_SECONDS,
            ),
            ("rpc.max_unread_bytes", config.rpc.max_unread_bytes, 1 << 20, 1 << 40),
            ("rpc.shutdown_grace_seconds", config.rpc.shutdown_grace_seconds, 0, MAX_DEADLINE_SECONDS),
            ("rpc.busy_poll_microseconds", config.rpc.busy_poll_microseconds, 0, MAX_BUSY_POLL_MICROSECONDS),
            (
                "release",
                u64::from(config.release.unwrap_or(release::PRESENT)),
                u64::from(release::FIRST),
                u64::from(release::LAST),
            ),
            ("chain.map_gib", config.chain.map_gib as u64, 1, MAX_MAP_GIB),
            ("chain.mempool_mb", config.chain.mempool_mb, 5, 1 << 20),
            ("chain.min_relay_feerate", config.chain.min_relay_feerate.unwrap_or(0), 0, MAX_RELAY_FEERATE),
            ("audit.max_bytes", config.audit.max_bytes, 4096, 1 << 40),
            ("audit.keep", u64::from(config.audit.keep), 1, 1000),
            ("backup.every", config.backup.every, 1, MAX_BACKUP_SECONDS),
            ("backup.keep", u64::from(config.backup.keep), 1, MAX_BACKUPS),
            ("wallet.keypool", u64::from(config.wallet.keypool), 1, MAX_KEYPOOL),
            ("wallet.txconfirmtarget", u64::from(config.wallet.txconfirmtarget), 1, MAX_CONFIRMATION_TARGET),
        ];
        let of_backend = config.backend.iter().flat_map(|backend| {
            [
                ("backend.filter_cache_mib", backend.filter_cache_mib, 0, MAX_FILTER_CACHE_MIB),
                ("backend.busy_poll_microseconds", backend.busy_poll_microseconds, 0, MAX_BUSY_POLL_MICROSECONDS),
                ("backend.max_estimate", backend.max_estimate, 1, MAX_ESTIMATE),
                ("backend.connections", backend.connections as u64, 1, 1024),
            ]
        });
        let marks = config.notify.high_water_marks().map(|(key, mark)| (key, mark, 1, MAX_HIGH_WATER_MARK));
        let ranges = ranges.into_iter().chain(of_backend);
        let ranges = ranges.map(|(key, value, least, most)| (key.to_owned(), value, least, most));
        for (key, value, least, most) in ranges.chain(marks) {
            if !(least..=most).contains(&value) {
                let reason = format!("must be from {least} to {most}, not {value}");
                return Err(self.error(&key, &value.to_string(), reason));
            }
        }
        Ok(())
    }

    fn check_wallets(&self) -> Result<(), ConfigError> {
        let config = &self.config;
        let relayed = config.mempool_limits().relay_feerate;
        if let Some(reason) = config.wallet.max_fee_fault(relayed) {
            return Err(self.error("wallet.maxtxfee", "", reason));
        }
        // The empty name is that of the default wallet.
        let is_wrong = |name: &&String| name.strip_suffix('*').unwrap_or(name).contains('*');
        for rule in &config.wallet.policies {
            let wrong = rule.wallets.iter().find(is_wrong);
            if wrong.is_some() || rule.wallets.is_empty() {
                let wrong = wrong.map_or("[]", String::as_str);
                let reason = format!(
                    "'{wrong}' names no wallets: give names of wallets, beginnings of names with a '*' at the end, or '*' for all wallets"
                );
                return Err(self.error("wallet.policies.wallets", wrong, reason));
            }
        }
        match config.wallet.unit_fault() {
            Some((key, reason)) => Err(self.error(key, "", reason)),
            None => Ok(()),
        }
    }

    fn check_backend(&self, backend: &BackendConfig) -> Result<(), ConfigError> {
        let network = &self.config.network;
        if work::network(network).is_err() {
            let reason = format!("must be main, test, testnet4, signet or regtest, not '{network}'");
            return Err(self.error("network", network, reason));
        }
        if let Some(challenge) = &backend.signet_challenge {
            let error = |reason: &str| Err(self.error("backend.signet_challenge", challenge, reason.to_owned()));
            if network != "signet" {
                return error("allowed only with network = \"signet\"");
            }
            if challenge.is_empty() || backend.chain(bitcoin::Network::Signet).is_none() {
                return error("must be a script in hexadecimal");
            }
        }
        if let Err(error) = backend.url.parse::<Endpoint>() {
            return Err(self.error("backend.url", &backend.url, error.to_string()));
        }
        let wraps_all = self
            .config
            .routes
            .wrap
            .iter()
            .any(|wrap| wrap.methods.is_empty() || wrap.methods.iter().any(|name| name == "*"));
        if backend.rest_passthrough && wraps_all {
            let reason = "REST requests would bypass the plugin that wraps every method (routes.wrap)".to_owned();
            return Err(self.error("backend.rest_passthrough", "true", reason));
        }
        if backend.rest_anonymous && !backend.rest_passthrough {
            let reason = "needs backend.rest_passthrough: without it there is no REST interface".to_owned();
            return Err(self.error("backend.rest_anonymous", "true", reason));
        }
        if let Err(error) = backend.zmq() {
            return Err(self.error("backend.zmq", &backend.zmq, format!("must be auto, off, or an endpoint: {error}")));
        }
        match (&backend.cookie, &backend.user, &backend.password_file) {
            (Some(_), Some(user), _) => {
                Err(self.error("backend.user", user, "cannot be combined with backend.cookie".to_owned()))
            }
            (_, Some(user), None) => Err(self.error("backend.user", user, "needs backend.password_file".to_owned())),
            (_, None, Some(_)) => Err(self.error("backend.password_file", "", "needs backend.user".to_owned())),
            _ => Ok(()),
        }
    }

    fn check_notify(&self, notify: &NotifyConfig) -> Result<(), ConfigError> {
        let publications = notify.publications();
        let publications =
            publications.map_err(|(key, error)| self.error(&format!("notify.{key}"), "", error.to_string()))?;
        if let Some((key, reason)) = notify.program_fault() {
            return Err(self.error(&format!("notify.{key}"), "", reason));
        }
        match publications.first() {
            Some(first) if self.config.backend.is_some() => {
                let reason = "not supported in front of a bitcoind, which publishes by itself".to_owned();
                Err(self.error(&format!("notify.zmqpub{}", first.topic.name()), "", reason))
            }
            _ => Ok(()),
        }
    }

    fn check_plugin(&self, position: usize, plugin: &PluginConfig) -> Result<(), ConfigError> {
        let digits = |pin: &String| pin.len() == 64 && pin.bytes().all(|byte| byte.is_ascii_hexdigit());
        if plugin.sha256.as_ref().is_some_and(|pin| !digits(pin)) {
            let reason = "must be the 64 hexadecimal digits of a SHA-256".to_owned();
            return Err(self.plugin_error(Some(position), "sha256", reason));
        }
        let ranges = [
            ("max_answer_bytes", Some(plugin.max_answer_bytes() as u64), MIN_ANSWER_BYTES, MAX_ANSWER_BYTES),
            ("max_memory_mib", plugin.max_memory_mib.map(u64::from), MIN_PLUGIN_MEMORY_MIB, u32::MAX.into()),
            ("max_threads", plugin.max_threads.map(u64::from), MIN_PLUGIN_THREADS, u32::MAX.into()),
            ("max_store_mib", plugin.max_store_mib.map(u64::from), 1, MAX_STORE_MIB.into()),
            ("deadline_seconds", plugin.deadline_seconds, 0, MAX_DEADLINE_SECONDS),
        ];
        for (key, value, least, most) in ranges {
            if let Some(value) = value.filter(|value| !(least..=most).contains(value)) {
                let reason = format!("must be from {least} to {most}, not {value}");
                return Err(self.plugin_error(Some(position), key, reason));
            }
        }
        Ok(())
    }
}
