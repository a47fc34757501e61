//! The users of the RPC interface in the configuration.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::bitcoin_conf;
use crate::config::{ConfigError, LoadedConfig, UnknownMethods, UserConfig, Wallets};
use crate::router::builtins;
use crate::{groups, methods};
use outrigger_base::nearest::suggestion;
use outrigger_plugins::linked::Sources;
use outrigger_rpc::{REST_ENTRY, RpcUser, SUBSCRIBE};
use outrigger_upstream::MethodSet;
use zeroize::Zeroizing;

/// The configured users, including those of `rpc.bitcoin_conf`. `sources` is where the plugins are.
///
/// # Errors
/// An entry is invalid, a name is a duplicate, or a user's list or `routes.wrap` names an unknown method.
pub fn users(loaded: &LoadedConfig, sources: &Sources) -> Result<Vec<RpcUser>, ConfigError> {
    let known = KnownMethods { loaded, sources, of_plugins: OnceCell::new() };
    // A wrapper that guards a misspelled method guards nothing.
    for name in loaded.config.routes.wrap.iter().flat_map(|wrap| &wrap.methods) {
        if !name.ends_with('*') && !known.has(name) {
            let reason = format!("there is no method '{name}'{}", known.suggestion(name));
            return Err(loaded.error("routes.wrap", name, reason));
        }
    }
    let configured = loaded.config.rpc.users.iter().enumerate();
    let mut all: Vec<RpcUser> = configured.map(|entry| user(loaded, &known, entry)).collect::<Result<_, _>>()?;
    all.extend(of_bitcoin_conf(loaded, &all)?);
    Ok(all)
}

fn user(
    loaded: &LoadedConfig,
    known: &KnownMethods<'_>,
    (position, configured): (usize, &UserConfig),
) -> Result<RpcUser, ConfigError> {
    let (earlier, _) = loaded.config.rpc.users.split_at(position);
    let (key, user) = match (&configured.rpcauth, &configured.name) {
        (Some(entry), None) => ("rpcauth", RpcUser::from_rpcauth(entry)),
        (None, Some(name)) => ("name", RpcUser::new(name, None)),
        _ => {
            let reason = "a user has either rpcauth or, without a password, name".to_owned();
            return Err(loaded.user_error(position, "rpcauth", reason));
        }
    };
    let refuse = |reason| loaded.user_error(position, key, reason);
    let mut user = user.map_err(|error| refuse(error.to_string()))?;
    if configured.rpcauth.is_none() && !is_identified(loaded, configured) {
        return Err(refuse(
            "nothing identifies a user without a password: set uid, or rpc.tls.client_users".to_owned(),
        ));
    }
    // With duplicate names, a client with one entry's password would escape the other entry's restrictions.
    if earlier.iter().any(|earlier| earlier.name() == configured.name()) {
        return Err(refuse(format!("an earlier user has the name {:?}", configured.name())));
    }
    let is_taken = |uid: &u32| earlier.iter().any(|earlier| earlier.uid == Some(*uid));
    if let Some(uid) = configured.uid.filter(is_taken) {
        return Err(loaded.user_error(position, "uid", format!("an earlier user has the uid {uid}")));
    }
    let methods = configured.methods.as_ref().map(|entries| known.expand(entries)).transpose();
    let methods = methods.map_err(|reason| loaded.user_error(position, "methods", reason))?;
    let limits = [
        ("max_calls_per_second", configured.max_calls_per_second),
        ("max_concurrent_calls", configured.max_concurrent_calls),
    ];
    if let Some((key, _)) = limits.into_iter().find(|(_, most)| *most == Some(0)) {
        return Err(loaded.user_error(position, key, "must be at least 1".to_owned()));
    }
    let is_of_node = loaded.config.backend.as_ref().is_some_and(|backend| backend.wallets == Wallets::Node);
    if configured.max_wallets.is_some() && is_of_node {
        let reason = "the node's wallets are not counted: remove it, or backend.wallets = \"node\"".to_owned();
        return Err(loaded.user_error(position, "max_wallets", reason));
    }
    if let Some(folder) = configured.folders.iter().flatten().find(|folder| !folder.is_absolute()) {
        let resolved = std::path::absolute(folder).unwrap_or_default();
        let reason = format!("'{}' must be an absolute path, such as {}", folder.display(), resolved.display());
        return Err(loaded.user_error(position, "folders", reason));
    }
    user.process_user = configured.uid;
    user.origin.allowed = methods.map(Arc::new);
    user.origin.folders = configured.folders.as_deref().map(Arc::from);
    user.origin.unknown_methods = configured.unknown_methods == UnknownMethods::Allow;
    user.origin.only_wallet = configured.wallet.as_deref().map(Arc::from);
    Ok(user)
}

/// Whether the host can identify a user without a password by the connection: by uid or certificate.
fn is_identified(loaded: &LoadedConfig, user: &UserConfig) -> bool {
    user.uid.is_some() || loaded.config.rpc.tls.as_ref().is_some_and(|tls| tls.client_users)
}

/// The users of the configured bitcoin.conf. A name of `others` is an error.
fn of_bitcoin_conf(loaded: &LoadedConfig, others: &[RpcUser]) -> Result<Vec<RpcUser>, ConfigError> {
    let Some(file) = &loaded.config.rpc.bitcoin_conf else { return Ok(Vec::new()) };
    let shown = file.display().to_string();
    let refuse = |reason: String| loaded.error("rpc.bitcoin_conf", "", format!("{shown}: {reason}"));
    // The file may contain a password.
    let text = std::fs::read_to_string(&**file).map(Zeroizing::new).map_err(|error| refuse(error.to_string()))?;
    let users = bitcoin_conf::users(&text, &loaded.config.network).map_err(refuse)?;
    match users.iter().find(|user| others.iter().any(|other| other.name() == user.name())) {
        Some(user) => Err(refuse(format!("{:?} is one of rpc.users too", user.name()))),
        None => Ok(users),
    }
}

/// The methods that a user's list may name: those of the host, the bundled groups, the node, and configured plugins, enabled
/// or not.
struct KnownMethods<'a> {
    loaded: &'a LoadedConfig,
    sources: &'a Sources,
    /// The plugins' methods; their files are read on demand.
    of_plugins: OnceCell<OfPlugins>,
}

/// The methods of plugins with readable files, and whether other files are unreadable.
#[derive(Default)]
struct OfPlugins {
    methods: Vec<String>,
    incomplete: bool,
}

impl KnownMethods<'_> {
    /// Expands the sets in a user's list of methods and sets.
    fn expand(&self, entries: &[String]) -> Result<BTreeSet<String>, String> {
        let mut expanded = BTreeSet::new();
        for entry in entries {
            if entry == REST_ENTRY {
                expanded.insert(entry.clone());
            } else if entry.starts_with('@') {
                let members = methods::members(entry).ok_or_else(|| {
                    let sets = MethodSet::ALL.map(MethodSet::name).join(", ");
                    format!("there is no set of methods '{entry}': there are {sets} and {REST_ENTRY}")
                })?;
                expanded.extend(members.map(str::to_owned));
            } else if entry == SUBSCRIBE || self.has(entry) {
                expanded.insert(entry.clone());
            } else {
                return Err(format!("there is no method '{entry}'{}", self.suggestion(entry)));
            }
        }
        Ok(expanded)
    }

    fn has(&self, method: &str) -> bool {
        let passed = self.loaded.config.backend.is_some() && outrigger_upstream::method(method).is_some();
        let is_own = builtins::names().any(|own| own == method) || groups::group_of(method).is_some() || passed;
        if is_own || self.of_plugins().methods.iter().any(|known| known == method) {
            return true;
        }
        // An unreadable plugin may have this method, unless the name looks like a misspelling of a known one.
        self.of_plugins().incomplete && self.suggestion(method).is_empty()
    }

    fn of_plugins(&self) -> &OfPlugins {
        self.of_plugins.get_or_init(|| {
            let mut found = OfPlugins::default();
            for plugin in &self.loaded.config.plugins {
                match self.sources.read(plugin) {
                    Ok(plugin) => {
                        found.methods.extend(plugin.manifest().methods.iter().map(|method| method.name.clone()));
                    }
                    Err(error) => {
                        tracing::warn!(%error, "cannot read a plugin to check users' lists of methods");
                        found.incomplete = true;
                    }
                }
            }
            found
        })
    }

    fn suggestion(&self, method: &str) -> String {
        let mut known: Vec<&str> = builtins::names().chain(groups::methods()).collect();
        known.extend(self.of_plugins().methods.iter().map(String::as_str));
        suggestion(method, known)
    }
}
