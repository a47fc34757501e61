//! Grants: the services that a plugin may use, the wallets for which it may use each, and the methods that it may call.
//!
//! Everything is checked before the plugin's code runs. A service that was not granted is unreachable, since the plugin
//! gets no table for it.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use outrigger_abi::ExportedService;
use outrigger_sandbox::Reach;
use outrigger_sdk::manifest::{Manifest, OptionType};
use serde::Deserialize;

use outrigger_base::nearest::suggestion;

pub const SIGNER: &str = "signer/1";

pub const WALLET_READ: &str = "wallet-read/1";

pub const WALLET_IMPORT: &str = "wallet-import/1";

pub const WALLET_ADMIN: &str = "wallet-admin/1";

pub const WALLET_KEYS: &str = "wallet-keys/1";

/// The services that can be granted for some wallets only.
pub const OF_WALLETS: [&str; 7] =
    [WALLET_READ, "wallet-book/1", "wallet-pay/1", WALLET_IMPORT, WALLET_ADMIN, WALLET_KEYS, SIGNER];

/// The services with functions that a wallet's policies may refuse.
pub const GUARDED: [&str; 5] = {
    let [_, _, pay, import, admin, keys, signer] = OF_WALLETS;
    [pay, import, admin, keys, signer]
};

/// The services that all instances share. Each instance has its own `events/1`, `log/1` and `metrics/1`.
pub const SERVICES: [&str; 11] = {
    let [read, book, pay, import, admin, keys, signer] = OF_WALLETS;
    ["chain/1", "mempool/1", read, book, pay, import, admin, keys, signer, RPC, STORE]
};

/// Services of former versions, and their successors.
const FORMER: [(&str, &str); 2] = [
    ("wallet/1", "wallet-read/1, wallet-book/1, wallet-pay/1, wallet-import/1, wallet-admin/1 and wallet-keys/1"),
    ("node-rpc/1", "rpc/1"),
];

pub const RPC: &str = "rpc/1";

pub const STORE: &str = "store/1";

/// The service that each plugin has without a grant.
pub(super) const HOST: &str = "host/1";

/// Whether a plugin with these grants may hold private keys or passphrases in memory: one of its services handles secrets, or its
/// manifest has a method with private keys, a secret option, or methods of others that it wraps.
pub(super) fn may_hold_secrets(grants: &[Grant], manifest: &Manifest) -> bool {
    grants.iter().any(|grant| [SIGNER, WALLET_IMPORT, WALLET_ADMIN, WALLET_KEYS, RPC].contains(&grant.service.as_str()))
        || manifest.methods.iter().any(|method| method.private_keys)
        || manifest.options.iter().any(|option| option.kind == OptionType::Secret)
        || manifest.wrapper.is_some()
}

/// The wallets that a plugin with these grants may know; `None` for all. A plugin that may not read wallets knows those of its
/// other grants.
pub fn known_wallets(grants: &[Grant]) -> Option<Vec<String>> {
    let of_wallets = || grants.iter().filter(|grant| OF_WALLETS.contains(&grant.service.as_str()));
    match of_wallets().find(|grant| grant.service == WALLET_READ) {
        Some(read) => read.wallets.clone(),
        None => {
            let lists: Option<Vec<_>> = of_wallets().map(|grant| grant.wallets.clone()).collect();
            let names: Option<BTreeSet<String>> = lists.map(|lists| lists.into_iter().flatten().collect());
            names.map(|names| names.into_iter().collect())
        }
    }
}

/// The services that each instance has its own copy of.
pub(super) const OWN_SERVICES: [&str; 3] = ["events/1", "log/1", "metrics/1"];

#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(from = "GrantForm")]
pub struct Grant {
    /// Name and revision, for example `chain/1`.
    pub service: String,
    /// The only wallets for which the plugin may use the service; `None` for all.
    pub wallets: Option<Vec<String>>,
    /// The methods that the plugin may call.
    pub methods: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "a grant is a service's name, { service = \"signer/1\", wallets = [\"...\"] } or { service = \"rpc/1\", methods = [\"...\"] }"
)]
enum GrantForm {
    Service(String),
    Wallets { service: String, wallets: Vec<String> },
    Methods { service: String, methods: Vec<String> },
}

impl From<GrantForm> for Grant {
    fn from(written: GrantForm) -> Self {
        match written {
            GrantForm::Service(service) => Self::all(service),
            GrantForm::Wallets { service, wallets } => Self { wallets: Some(wallets), ..Self::all(service) },
            GrantForm::Methods { service, methods } => Self { methods: Some(methods), ..Self::all(service) },
        }
    }
}

impl Grant {
    pub fn all(service: impl Into<String>) -> Self {
        Self { service: service.into(), wallets: None, methods: None }
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.service)?;
        let limits = [("wallets", &self.wallets), ("methods", &self.methods)];
        limits.iter().try_for_each(|(of, names)| match names {
            Some(names) => write!(f, " ({of}: {})", names.join(", ")),
            None => Ok(()),
        })
    }
}

pub struct Holder<'a> {
    pub plugin: &'a str,
    pub instance: u64,
    pub grants: &'a [Grant],
    /// Its `reach` setting, if that bounds the files that the host reads and writes for it.
    pub reach: Option<&'a [Reach]>,
    /// The bound of its store, in bytes.
    pub max_store: u64,
    /// Whether the instance has been told to end.
    pub is_ending: Arc<dyn Fn() -> bool + Send + Sync>,
}

pub trait ServiceSource: Send + Sync {
    /// The table of a service for one instance; `None` if there is no such service.
    fn export(&self, service: &str, holder: &Holder<'_>) -> Option<Arc<ExportedService>>;

    /// Receives the instances that answer calls from now on, each with its plugin's id.
    fn serving(&self, _running: &[(&str, u64)]) {}
}

/// Why a plugin's grants are refused, for the operator.
#[derive(Debug, thiserror::Error)]
#[error("plugin '{plugin}'{reason}")]
pub struct GrantError {
    plugin: String,
    /// The rest of the message.
    reason: String,
}

impl GrantError {
    /// The error for an unknown service; the message suggests a similar name.
    pub(super) fn no_service(plugin: &str, service: &str) -> Self {
        let suggestion = match FORMER.iter().find(|(former, _)| *former == service) {
            Some((_, successors)) => format!(
                ": its functions are those of {successors}; `outrigger config migrate FILE` writes them in its place"
            ),
            None => suggestion(service, OWN_SERVICES.into_iter().chain(SERVICES)),
        };
        Self { plugin: plugin.to_owned(), reason: format!(": this host has no service {service}{suggestion}") }
    }
}

pub fn check(manifest: &Manifest, grants: &[Grant]) -> Result<(), GrantError> {
    let refused = |reason: String| Err(GrantError { plugin: manifest.id.clone(), reason });
    let is_known = |service: &str| OWN_SERVICES.into_iter().chain(SERVICES).any(|name| name == service);
    if let Some(service) = manifest.services.iter().find(|service| *service != HOST && !is_known(service)) {
        let former = FORMER.iter().find(|(former, _)| former == service);
        let remedy = former.map(|(_, now)| format!("; a later build of the plugin may use {now}")).unwrap_or_default();
        return refused(format!(" needs the service {service}, which this host does not have{remedy}"));
    }
    for (index, grant) in grants.iter().enumerate() {
        let service = grant.service.as_str();
        if !is_known(service) {
            return Err(GrantError::no_service(&manifest.id, service));
        }
        if grants.iter().skip(index + 1).any(|later| later.service == service) {
            return refused(format!(": {service} is granted twice"));
        }
        let limits: [(_, _, &[&str], _); 2] = [
            ("wallets", &grant.wallets, &OF_WALLETS, "signer/1 and the services of wallets"),
            ("methods", &grant.methods, &[RPC], RPC),
        ];
        for (of, names, known, words) in limits {
            if names.is_some() && !known.contains(&service) {
                return refused(format!(": {service} cannot be granted for some {of}; {words} can"));
            }
        }
        let granted = grant.methods.as_deref().unwrap_or_default();
        let is_missing = |method: &&String| !granted.contains(method);
        if service == RPC
            && let Some(method) = manifest.calls.iter().find(is_missing)
        {
            let reason = format!(" calls the method {method}, which 'methods' of its grant {grant} does not list");
            return refused(reason);
        }
    }
    let is_missing = |service: &&String| *service != HOST && !grants.iter().any(|grant| grant.service == **service);
    match manifest.services.iter().find(is_missing) {
        Some(service) => refused(format!(" needs the service {service}, which its 'grants' do not list")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[derive(Deserialize)]
    struct Section {
        grants: Vec<Grant>,
    }

    #[track_caller]
    fn refused(grants: &str) -> String {
        let manifest = br#"{"id": "p", "version": "1", "summary": "s", "methods": [], "services": ["signer/1"],
            "optional": ["rpc/1"], "calls": ["getblock", "getblockhash"]}"#;
        let grants: Section = toml::from_str(&format!("grants = {grants}")).unwrap();
        check(&Manifest::parse(manifest).unwrap(), &grants.grants).map_err(|error| error.to_string()).unwrap_err()
    }

    #[test]
    fn mismatched_grants_are_named() {
        assert_eq!(refused("[\"chain/1\"]"), "plugin 'p' needs the service signer/1, which its 'grants' do not list");
        assert_eq!(refused("[\"other/2\"]"), "plugin 'p': this host has no service other/2");
        let former = refused("[\"wallet/1\"]");
        assert!(
            former.starts_with(
                "plugin 'p': this host has no service wallet/1: its functions are those of wallet-read/1, "
            ),
            "{former}"
        );
        assert_eq!(refused("[\"signer/1\", \"signer/1\"]"), "plugin 'p': signer/1 is granted twice");
        let calls =
            refused("[\"signer/1\", \"rpc/1\", { service = \"rpc/1\", methods = [\"getblock\", \"getblockhash\"] }]");
        assert_eq!(calls, "plugin 'p': rpc/1 is granted twice");
        let limited = refused("[\"signer/1\", { service = \"chain/1\", wallets = [] }]");
        assert_eq!(
            limited,
            "plugin 'p': chain/1 cannot be granted for some wallets; signer/1 and the services of wallets can"
        );
        let limited = refused("[{ service = \"signer/1\", methods = [\"stop\"] }]");
        assert_eq!(limited, "plugin 'p': signer/1 cannot be granted for some methods; rpc/1 can");
    }

    #[test]
    fn a_service_of_former_hosts_is_named_with_its_successors_granted_or_not() {
        let manifest = br#"{"id": "p", "version": "1", "summary": "s", "methods": [], "services": ["wallet/1"]}"#;
        let manifest = Manifest::parse(manifest).unwrap();
        for grants in [vec![], vec![Grant::all("wallet/1")]] {
            let refused = check(&manifest, &grants).unwrap_err().to_string();
            let expected = "plugin 'p' needs the service wallet/1, which this host does not have; \
                            a later build of the plugin may use wallet-read/1, ";
            assert!(refused.starts_with(expected), "{refused}");
        }
    }

    #[test]
    fn methods_are_granted_by_name() {
        for none in ["\"rpc/1\"", "{ service = \"rpc/1\", methods = [] }"] {
            let refused = refused(&format!("[\"signer/1\", {none}]"));
            let expected = "plugin 'p' calls the method getblock, which 'methods' of its grant rpc/1";
            assert!(refused.starts_with(expected), "{refused}");
        }
        let missing = refused("[\"signer/1\", { service = \"rpc/1\", methods = [\"getblock\", \"stop\"] }]");
        let expected = "plugin 'p' calls the method getblockhash, which 'methods' of its grant \
                        rpc/1 (methods: getblock, stop) does not list";
        assert_eq!(missing, expected);
        let former = refused("[\"signer/1\", { service = \"node-rpc/1\", methods = [\"getblock\"] }]");
        assert!(former.contains("this host has no service node-rpc/1: its functions are those of rpc/1; "), "{former}");
    }

    #[test]
    fn misspelt_grants_name_the_nearest_service() {
        for (written, meant) in
            [("chian/1", "chain/1"), ("chain/2", "chain/1"), ("Log/1", "log/1"), ("events", "events/1")]
        {
            let expected = format!("plugin 'p': this host has no service {written}; did you mean '{meant}'?");
            assert_eq!(refused(&format!("[\"{written}\"]")), expected);
        }
    }

    #[test]
    fn a_plugin_that_handles_keys_or_calls_of_others_may_hold_secrets() {
        let may_hold = |service: &str, name: &str, value: Value| {
            let mut manifest = json!({"id": "p", "version": "1", "summary": "s", "methods": []});
            manifest[name] = value;
            let manifest = Manifest::parse(manifest.to_string().as_bytes()).unwrap();
            may_hold_secrets(&[Grant::all("chain/1"), Grant::all(service)], &manifest)
        };
        let with_secrets = ["signer/1", "wallet-import/1", "wallet-admin/1", "wallet-keys/1", "rpc/1"];
        for service in OWN_SERVICES.into_iter().chain(SERVICES) {
            assert_eq!(may_hold(service, "services", json!([])), with_secrets.contains(&service), "{service}");
        }
        for secret in [false, true] {
            let method = json!({"name": "m", "category": "c", "help": "h", "private_keys": secret});
            assert_eq!(may_hold("log/1", "methods", json!([method])), secret);
            let option = json!({"name": "o", "type": if secret { "secret" } else { "string" }, "help": "h"});
            assert_eq!(may_hold("log/1", "options", json!([option])), secret);
        }
        assert!(may_hold("log/1", "wrapper", json!("observe")));
    }

    #[test]
    fn a_plugin_knows_the_wallets_that_it_may_read_or_else_those_of_its_other_grants() {
        let known =
            |grants: &str| known_wallets(&toml::from_str::<Section>(&format!("grants = {grants}")).unwrap().grants);
        assert_eq!(known("[\"chain/1\"]"), Some(Vec::new()));
        assert_eq!(known("[\"wallet-read/1\", { service = \"signer/1\", wallets = [\"hot\"] }]"), None);
        assert_eq!(known("[\"wallet-pay/1\", { service = \"signer/1\", wallets = [\"hot\"] }]"), None);
        let union = "{ service = \"wallet-pay/1\", wallets = [\"hot\"] }, { service = \"signer/1\", wallets = [\"hot\", \"cold\"] }";
        assert_eq!(known(&format!("[{union}]")), Some(vec!["cold".to_owned(), "hot".to_owned()]));
        let hot = "{ service = \"wallet-read/1\", wallets = [\"hot\"] }";
        assert_eq!(known(&format!("[{hot}, \"signer/1\"]")), Some(vec!["hot".to_owned()]));
    }

    #[test]
    fn a_grant_is_a_name_or_a_table() {
        let text = "grants = [\"chain/1\", { service = \"signer/1\", wallets = [\"hot\", \"cold\"] }]";
        let grants = toml::from_str::<Section>(text).unwrap().grants;
        assert_eq!(grants[1].to_string(), "signer/1 (wallets: hot, cold)");
        for wrong in ["wallet = \"hot\"", "wallets = [\"hot\"], methods = []", "methods = [], deny = []"] {
            let error = toml::from_str::<Section>(&format!("grants = [{{ service = \"signer/1\", {wrong} }}]"));
            let error = error.err().unwrap();
            assert!(error.message().contains("a grant is a service's name, {"), "{error}");
        }
    }
}
