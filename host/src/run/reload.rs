//! Reloads the configuration while the host runs, at SIGHUP or by the method `reload`: users, allowed networks, trusted proxies, TLS, the
//! log's level and plugins' options. It also reopens the audit log's file. If any part fails, nothing changes.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use outrigger_plugins::linked::Sources;
use outrigger_plugins::registry::Registry;
use outrigger_rpc::{Access, RpcUser, Tls};
use parking_lot::Mutex;
use toml::{Table, Value};

use super::configuration::configuration;
use super::log::{SetLog, log_filter};
use super::users::users;
use super::{RunArgs, RunError};
use crate::audit::AuditLog;
use crate::config::{ConfigError, LoadedConfig, UserConfig};
use crate::quotas::Quotas;

/// The keys that a reload applies, besides plugins' options, which the registry compares.
const APPLIED: [&str; 5] = ["log.level", "rpc.allow_from", "rpc.bitcoin_conf", "rpc.trusted_proxies", "rpc.users"];

/// The prefix of further keys that a reload applies, unless their table was added or removed.
const TLS: &str = "rpc.tls.";

/// Replaces the users, the allowed networks and proxies, and the certificate, if there is one.
pub type Admit = Box<dyn Fn(Vec<RpcUser>, Access, Option<Tls>) + Send + Sync>;

/// Set once the host is up.
pub type Reloading = Arc<OnceLock<Reloader>>;

pub struct Reloader {
    pub args: RunArgs,
    /// Where the host searches for plugins.
    pub sources: Sources,
    pub admit: Admit,
    pub quotas: Arc<Quotas>,
    pub set_log: SetLog,
    pub audit: Option<Arc<AuditLog>>,
    pub registry: Arc<Registry>,
    /// The configuration at the start, which stays in force for all other settings.
    pub started: Table,
    pub applied: Mutex<Applied>,
}

#[derive(Default)]
pub struct Reloaded {
    pub changes: Vec<String>,
    /// The keys of changed settings that only a restart applies.
    pub restart: Vec<String>,
}

/// The settings in force that a reload can replace, for comparison with the new ones.
pub struct Applied {
    /// A fingerprint of each user's entry, by name.
    users: BTreeMap<String, String>,
    /// Other settings, by key, as text.
    others: [(&'static str, String); 4],
}

impl Applied {
    pub fn of(loaded: &LoadedConfig, users: &[RpcUser]) -> Self {
        let limits = |name: &str| {
            let configured = loaded.config.rpc.users.iter().find(|user| user.name() == name);
            configured.map(UserConfig::limits).unwrap_or_default()
        };
        let entry = |user: &RpcUser| (user.name().to_owned(), format!("{user:?} {:?}", limits(user.name())));
        let rpc = &loaded.config.rpc;
        let allowed: Vec<_> = rpc.allow_from.iter().map(|network| network.0.to_string()).collect();
        let others = [
            ("rpc.allow_from", format!("[{}]", allowed.join(", "))),
            ("rpc.trusted_proxies", format!("{:?}", rpc.trusted_proxies)),
            ("rpc.tls", format!("{:?}", rpc.tls)),
            ("log.level", loaded.config.log.level.clone()),
        ];
        Self { users: users.iter().map(entry).collect(), others }
    }

    /// The changes from these settings to `next`, one line each.
    fn changes(&self, next: &Self) -> Vec<String> {
        let mut lines = Vec::new();
        for (name, entry) in &next.users {
            match self.users.get(name) {
                None => lines.push(format!("rpc.users: '{name}' was added")),
                Some(former) if former != entry => lines.push(format!("rpc.users: '{name}' was changed")),
                Some(_) => {}
            }
        }
        let removed = self.users.keys().filter(|name| !next.users.contains_key(*name));
        lines.extend(removed.map(|name| format!("rpc.users: '{name}' was removed")));
        for ((key, former), (_, now)) in self.others.iter().zip(&next.others) {
            if former != now {
                lines.push(format!("{key}: {now} (before: {former})"));
            }
        }
        lines
    }
}

impl Reloader {
    /// Reads the configuration again, and applies all changes that need no restart. `asked_by` names the operator in the log.
    ///
    /// # Errors
    /// The reason; nothing has changed then.
    pub fn reload(&self, asked_by: &str) -> Result<Reloaded, String> {
        let outcome = self.change(asked_by);
        match &outcome {
            Ok(Reloaded { changes, restart }) => {
                for change in changes {
                    tracing::info!(asked_by, "reload: {change}");
                }
                for setting in restart {
                    tracing::warn!(asked_by, setting, "reload: a restart would apply this change");
                }
                if changes.is_empty() {
                    tracing::info!(asked_by, "reload: no changes");
                }
            }
            Err(reason) => tracing::error!(asked_by, reason, "the configuration was not reloaded; nothing has changed"),
        }
        outcome
    }

    fn change(&self, asked_by: &str) -> Result<Reloaded, String> {
        // The lock is held so that only one reload runs at a time.
        let mut applied = self.applied.lock();
        let failed = |error: ConfigError| error.to_string();
        let loaded = configuration(&self.args).map_err(failed)?;
        let users = users(&loaded, &self.sources).map_err(failed)?;
        let filter = log_filter(&loaded).map_err(failed)?;
        let (table, tls) = (loaded.table().map_err(failed)?, loaded.tls().map_err(failed)?);
        let audit = self.audit.as_ref().map(|audit| audit.reopened()).transpose();
        let audit = audit.map_err(|error| format!("audit.file: {error}"))?;
        let next = Applied::of(&loaded, &users);
        let former = (self.set_log)(filter).map_err(|error| format!("log.level: {error}"))?;
        // This is the last step that can fail. The registry then restores the former options itself.
        let reloaded = self.registry.reload_options(&loaded.config.plugins, asked_by).map_err(|error| {
            let _ = (self.set_log)(former);
            error.to_string()
        })?;
        self.quotas.replace(&loaded.config.rpc.users);
        (self.admit)(users, loaded.config.rpc.access(), tls);
        let mut changes = applied.changes(&next);
        changes.extend(reloaded.into_iter().map(|id| format!("plugins.options: the plugin '{id}' was reloaded")));
        if let Some(swap) = audit {
            swap();
            changes.push("audit.file: opened again".to_owned());
        }
        *applied = next;
        let restart = differences(&self.started, &table);
        Ok(Reloaded { changes, restart })
    }
}

/// The keys of settings that differ and need a restart.
fn differences(former: &Table, now: &Table) -> Vec<String> {
    let mut found = Vec::new();
    compare("", former, now, &mut found);
    let has_tls = |table: &Table| table.get("rpc").and_then(|rpc| rpc.get("tls")).is_some();
    let applies_tls = has_tls(former) == has_tls(now);
    found.retain(|key| !(APPLIED.contains(&key.as_str()) || applies_tls && key.starts_with(TLS)));
    found
}

fn compare(prefix: &str, former: &Table, now: &Table, found: &mut Vec<String>) {
    let added = now.keys().filter(|key| !former.contains_key(*key));
    for key in former.keys().chain(added) {
        let name = format!("{prefix}{key}");
        match (former.get(key), now.get(key)) {
            (Some(Value::Table(former)), Some(Value::Table(now))) => compare(&format!("{name}."), former, now, found),
            (None, Some(Value::Table(now))) => compare(&format!("{name}."), &Table::new(), now, found),
            (Some(Value::Table(former)), None) => compare(&format!("{name}."), former, &Table::new(), found),
            (Some(Value::Array(former)), Some(Value::Array(now))) if name == "plugins" => plugins(former, now, found),
            (former, now) if former != now => found.push(name),
            _ => {}
        }
    }
}

/// Adds the keys of plugins' settings that differ, except options. Plugins are matched by file.
fn plugins(former: &[Value], now: &[Value], found: &mut Vec<String>) {
    let by_file = |all: &[Value]| -> BTreeMap<String, Table> {
        let named = |plugin: &Value| Some((plugin.get("file")?.as_str()?.to_owned(), plugin.as_table()?.clone()));
        all.iter().filter_map(named).collect()
    };
    let (former, now) = (by_file(former), by_file(now));
    for file in former.keys().chain(now.keys().filter(|file| !former.contains_key(*file))) {
        let without_options = |plugins: &BTreeMap<String, Table>| {
            let mut table = plugins.get(file).cloned();
            if let Some(table) = &mut table {
                table.remove("options");
            }
            table
        };
        match (without_options(&former), without_options(&now)) {
            (Some(former), Some(now)) => compare(&format!("plugins.{file}."), &former, &now, found),
            _ => found.push(format!("plugins.{file}")),
        }
    }
}

/// The arguments for a reload. They fix the network, so that a reload need not ask the node for it.
pub fn arguments(args: &RunArgs, network: &str) -> RunArgs {
    RunArgs { network: Some(network.to_owned()), ..args.clone() }
}

/// Reloads at each SIGHUP.
pub fn at_hangup(reloading: Reloading) -> Result<(), RunError> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut hangup = signal(SignalKind::hangup())
        .map_err(|error| RunError::Failed(format!("cannot listen for signals: {error}")))?;
    tokio::spawn(async move {
        while hangup.recv().await.is_some() {
            let reloading = reloading.clone();
            // `reload` logs its outcome.
            let reload = move || match reloading.get() {
                Some(reloader) => drop(reloader.reload("SIGHUP")),
                None => tracing::warn!("SIGHUP: the host is starting, and nothing was reloaded"),
            };
            let _ = tokio::task::spawn_blocking(reload).await;
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_need_a_restart_are_named_and_others_are_not() {
        let of = |text: &str| text.parse::<Table>().unwrap();
        let former = of(
            "[rpc]\nthreads = 8\nallow_from = []\n[[plugins]]\nfile = 'a'\noptions = { x = 1 }\n[[plugins]]\nfile = 'b'\n",
        );
        let now = of(
            "network = 'main'\n[rpc]\nthreads = 4\nallow_from = ['10.0.0.0/8']\n[log]\nlevel = 'debug'\n[audit]\nkeep = 2\n\
             [[plugins]]\nfile = 'a'\ntrusted = true\noptions = { x = 2 }\n[[plugins]]\nfile = 'c'\n",
        );
        let mut found = differences(&former, &now);
        found.sort_unstable();
        assert_eq!(found, ["audit.keep", "network", "plugins.a.trusted", "plugins.b", "plugins.c", "rpc.threads"]);
        assert_eq!(differences(&former, &former), [""; 0]);
    }
}
