//! Grants: which services a plugin may use, and for which wallets it may sign.
//!
//! Everything here is checked before any code of the plugin runs, and what was not granted is not in its reach: it has no
//! table of that service.

use std::fmt;
use std::sync::Arc;

use outrigger_abi::ExportedService;
use outrigger_sdk::manifest::Manifest;
use serde::Deserialize;

use outrigger_base::nearest::suggestion;

/// The service that signs, and can be granted for some wallets.
pub const SIGNER: &str = "signer/1";

/// The services of which each instance has its own.
pub(super) const OWN_SERVICES: [&str; 2] = ["events/1", "log/1"];

/// A service that a plugin may use.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(from = "Written")]
pub struct Grant {
    /// Name and revision, as `chain/1`.
    pub service: String,
    /// The only wallets it may be used for; all where there is no list.
    pub wallets: Option<Vec<String>>,
}

/// A grant as the configuration has it.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a grant is a service's name, or { service = \"signer/1\", wallets = [\"...\"] }")]
enum Written {
    Service(String),
    #[serde(rename_all = "lowercase")]
    Limited {
        service: String,
        wallets: Vec<String>,
    },
}

impl From<Written> for Grant {
    fn from(written: Written) -> Self {
        match written {
            Written::Service(service) => Self { service, wallets: None },
            Written::Limited { service, wallets } => Self { service, wallets: Some(wallets) },
        }
    }
}

impl Grant {
    /// A service without limits.
    pub fn all(service: impl Into<String>) -> Self {
        Self { service: service.into(), wallets: None }
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.wallets {
            None => f.write_str(&self.service),
            Some(wallets) => write!(f, "{} (wallets: {})", self.service, wallets.join(", ")),
        }
    }
}

/// Where the services of the host come from.
pub trait ServiceSource: Send + Sync {
    /// The names of the services.
    fn names(&self) -> &'static [&'static str];

    /// The table of a service for one instance that has these grants; none when there is no such service.
    fn export(&self, service: &str, grants: &[Grant], instance: u64) -> Option<Arc<ExportedService>>;
}

/// Why grants and a plugin's needs do not fit.
#[derive(Debug, thiserror::Error)]
pub enum GrantError {
    /// It needs a service that its configuration does not grant.
    #[error("plugin '{plugin}' needs the service {service}, which its 'grants' do not list")]
    Missing {
        /// The plugin.
        plugin: String,
        /// The service.
        service: String,
    },
    /// It is granted a service that this host does not have.
    #[error("plugin '{plugin}': this host has no service {service}{suggestion}")]
    NoService {
        /// The plugin.
        plugin: String,
        /// The service.
        service: String,
        /// The service that was probably meant, as the message's end; empty when none is alike.
        suggestion: String,
    },
    /// It is granted a service for some wallets that knows no such limit.
    #[error("plugin '{plugin}': {service} cannot be granted for some wallets; {SIGNER} can")]
    NoLimit {
        /// The plugin.
        plugin: String,
        /// The service.
        service: String,
    },
    /// It is granted a service twice.
    #[error("plugin '{plugin}': {service} is granted twice")]
    Twice {
        /// The plugin.
        plugin: String,
        /// The service.
        service: String,
    },
}

impl GrantError {
    /// A service that this host does not have; the message names the one that is most like it.
    pub(super) fn no_service(plugin: String, service: String, source: &dyn ServiceSource) -> Self {
        let suggestion = suggestion(&service, OWN_SERVICES.iter().chain(source.names()).copied());
        Self::NoService { plugin, service, suggestion }
    }
}

/// Checks what a plugin needs and what it is granted.
///
/// # Errors
/// The first grant or need that does not fit.
pub fn check(manifest: &Manifest, grants: &[Grant], source: &dyn ServiceSource) -> Result<(), GrantError> {
    let plugin = || manifest.id.clone();
    for (index, grant) in grants.iter().enumerate() {
        let service = grant.service.clone();
        if !OWN_SERVICES.iter().chain(source.names()).any(|name| *name == service) {
            return Err(GrantError::no_service(plugin(), service, source));
        }
        if grant.wallets.is_some() && service != SIGNER {
            return Err(GrantError::NoLimit { plugin: plugin(), service });
        }
        if grants.iter().take(index).any(|earlier| earlier.service == service) {
            return Err(GrantError::Twice { plugin: plugin(), service });
        }
    }
    match manifest.services.iter().find(|service| !grants.iter().any(|grant| grant.service == **service)) {
        Some(service) => Err(GrantError::Missing { plugin: plugin(), service: service.clone() }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Two;
    impl ServiceSource for Two {
        fn names(&self) -> &'static [&'static str] {
            &["chain/1", "signer/1"]
        }
        fn export(&self, _: &str, _: &[Grant], _: u64) -> Option<Arc<ExportedService>> {
            None
        }
    }

    #[derive(Deserialize)]
    struct Holder {
        grants: Vec<Grant>,
    }

    #[track_caller]
    fn refused(grants: &str) -> String {
        let manifest = br#"{"id": "p", "version": "1", "summary": "s", "methods": [], "services": ["signer/1"]}"#;
        let grants: Holder = toml::from_str(&format!("grants = {grants}")).unwrap();
        check(&Manifest::parse(manifest).unwrap(), &grants.grants, &Two).map_err(|error| error.to_string()).unwrap_err()
    }

    #[test]
    fn grants_that_do_not_fit_are_named() {
        assert_eq!(refused("[\"chain/1\"]"), "plugin 'p' needs the service signer/1, which its 'grants' do not list");
        assert_eq!(refused("[\"other/2\"]"), "plugin 'p': this host has no service other/2");
        assert_eq!(refused("[\"signer/1\", \"signer/1\"]"), "plugin 'p': signer/1 is granted twice");
        let limited = refused("[\"signer/1\", { service = \"chain/1\", wallets = [] }]");
        assert_eq!(limited, "plugin 'p': chain/1 cannot be granted for some wallets; signer/1 can");
    }

    #[test]
    fn grants_with_typing_errors_name_the_nearest_service() {
        for (written, meant) in
            [("chian/1", "chain/1"), ("chain/2", "chain/1"), ("Log/1", "log/1"), ("events", "events/1")]
        {
            let expected = format!("plugin 'p': this host has no service {written}; did you mean '{meant}'?");
            assert_eq!(refused(&format!("[\"{written}\"]")), expected);
        }
    }

    #[test]
    fn a_grant_is_a_name_or_a_table() {
        let text = "grants = [\"chain/1\", { service = \"signer/1\", wallets = [\"hot\", \"cold\"] }]";
        let grants = toml::from_str::<Holder>(text).unwrap().grants;
        assert_eq!(grants[1].to_string(), "signer/1 (wallets: hot, cold)");
        let error = toml::from_str::<Holder>("grants = [{ service = \"signer/1\", wallet = \"hot\" }]").err().unwrap();
        assert!(error.message().contains("a grant is a service's name, or {"), "{error}");
    }
}
