//! Properties of the host's own methods and of bitcoind's methods, which plugins or the node answer.

use std::sync::Arc;

use outrigger_rpc::SUBSCRIBE;
use outrigger_sdk::manifest::MethodSpec;
use outrigger_upstream::{Method, MethodSet};

/// The host's methods that bitcoind does not have, except rpc.discover, which every user may call. The right to subscribe includes the
/// right to unsubscribe.
const OWN: [(&str, Method); 11] = [
    ("gethostinfo", Method::of_host(MethodSet::NodeAdmin, false)),
    ("getwalletbackupinfo", Method::of_host(MethodSet::Wallet, false)),
    ("listplugins", Method::of_host(MethodSet::NodeAdmin, false)),
    ("listwebhooks", Method::of_host(MethodSet::NodeAdmin, false)),
    ("reload", Method::of_host(MethodSet::NodeAdmin, true)),
    ("reloadplugin", Method::of_host(MethodSet::NodeAdmin, true)),
    ("setcomment", Method::of_host(MethodSet::Wallet, true)),
    ("startplugin", Method::of_host(MethodSet::NodeAdmin, true)),
    ("stopplugin", Method::of_host(MethodSet::NodeAdmin, true)),
    (SUBSCRIBE, Method::of_host(MethodSet::Wallet, false)),
    ("waitevents", Method::of_host(MethodSet::Wallet, false)),
];

/// The properties of a method; `None` if only a third party's plugin or a later node has it.
pub fn method(name: &str) -> Option<Method> {
    let own = OWN.iter().find(|(own, _)| *own == name).map(|(_, method)| *method);
    own.or_else(|| outrigger_upstream::method(name))
}

/// Whether the audit log lists calls of a method. An unknown method is listed if the plugin's manifest says that it uses
/// private keys, or if no plugin answers it: a method of a later node may do anything.
pub fn is_audited(name: &str, spec: impl FnOnce() -> Option<Arc<MethodSpec>>) -> bool {
    match method(name) {
        Some(known) => known.is_audited(),
        None => spec().is_none_or(|spec| spec.private_keys),
    }
}

/// The methods of a set such as `@read`; `None` for an unknown set.
pub fn members(set: &str) -> Option<impl Iterator<Item = &'static str>> {
    let set = MethodSet::ALL.into_iter().find(|known| known.name() == set)?;
    let all = OWN.into_iter().chain(outrigger_upstream::methods());
    Some(all.filter(move |(_, method)| method.is_of(set)).map(|(name, _)| name))
}

#[cfg(test)]
mod tests {
    use outrigger_upstream::traits::FILES;

    use super::*;
    use crate::{groups, router::builtins};

    #[test]
    fn every_method_of_the_host_and_its_groups_is_known_and_of_a_set() {
        let mut all = builtins::names().chain(groups::methods()).filter(|name| *name != "rpc.discover");
        assert_eq!(all.find(|name| method(name).is_none()), None);
        assert!(members("@read").unwrap().any(|name| name == "getblocktemplate"));
        assert!(members("@nothing").is_none());
    }

    #[test]
    fn methods_that_only_a_later_node_can_have_are_audited() {
        assert!(is_audited("a_method_of_tomorrow", || None));
        assert!(!is_audited("getblockcount", || None));
    }

    #[test]
    fn files_are_touched_by_the_set_node_admin_alone() {
        for set in ["@read", "@send", "@mining", "@wallet"] {
            assert!(members(set).unwrap().all(|name| !method(name).unwrap().is(FILES)), "{set}");
        }
        assert!(members("@node-admin").unwrap().any(|name| name == "dumptxoutset"));
    }
}
