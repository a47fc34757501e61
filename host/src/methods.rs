//! What is known of methods: of the host's own, and of bitcoind's, which the plugins answer or the node.

use std::sync::Arc;

use outrigger_sdk::manifest::MethodSpec;
use outrigger_upstream::{Method, MethodSet};

/// The host's methods that bitcoind does not have, but for rpc.discover, which every user may call.
const OWN: [(&str, Method); 6] = [
    ("getwalletbackupinfo", Method::of_host(MethodSet::Wallet, false)),
    ("listplugins", Method::of_host(MethodSet::NodeAdmin, false)),
    ("reloadplugin", Method::of_host(MethodSet::NodeAdmin, true)),
    ("setcomment", Method::of_host(MethodSet::Wallet, true)),
    ("startplugin", Method::of_host(MethodSet::NodeAdmin, true)),
    ("stopplugin", Method::of_host(MethodSet::NodeAdmin, true)),
];

/// What is known of a method; none of one that only a third party's plugin or a later node has.
pub fn method(name: &str) -> Option<Method> {
    let own = OWN.iter().find(|(own, _)| *own == name).map(|(_, method)| *method);
    own.or_else(|| outrigger_upstream::method(name))
}

/// Whether the audit log lists calls of a method: as far as it is known, else if its plugin's manifest says that it computes with
/// private keys, or no plugin answers it, so that it is a node's of a later release, which may do anything.
pub fn is_audited(name: &str, spec: impl FnOnce() -> Option<Arc<MethodSpec>>) -> bool {
    match method(name) {
        Some(known) => known.is_audited(),
        None => spec().is_none_or(|spec| spec.private_keys),
    }
}

/// The methods of a set, by the name that users' lists have for it; none where there is no such set.
pub fn members(set: &str) -> Option<impl Iterator<Item = &'static str>> {
    let set = MethodSet::ALL.into_iter().find(|known| known.name() == set)?;
    let all = OWN.into_iter().chain(outrigger_upstream::methods());
    Some(all.filter(move |(_, method)| method.is_of(set)).map(|(name, _)| name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{groups, router::builtins};

    #[test]
    fn every_method_of_the_host_and_its_groups_is_known_and_of_a_set() {
        let mut all = builtins::NAMES.into_iter().chain(groups::methods()).filter(|name| *name != "rpc.discover");
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
            assert!(members(set).unwrap().all(|name| !method(name).unwrap().touches_files()), "{set}");
        }
        assert!(members("@node-admin").unwrap().any(|name| name == "dumptxoutset"));
    }
}
