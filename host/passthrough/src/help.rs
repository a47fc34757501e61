//! The node's `help`: its methods by category.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock};

use foldhash::fast::RandomState;
use outrigger_sdk::manifest::MethodSpec;
use outrigger_upstream::methods;
use serde_json::json;

#[derive(Clone, Debug)]
pub struct NodeMethod {
    /// For example `Blockchain`.
    pub category: String,
    /// Name and arguments.
    pub usage: String,
    /// The entry in the host's own lists.
    spec: Option<Arc<MethodSpec>>,
}

#[derive(Clone, Default, Debug)]
pub struct NodeHelp(BTreeMap<String, NodeMethod>);

/// The hidden argument of `help` that returns the arguments of all methods and their types, as in bitcoind.
pub const DUMP_CONVERSIONS: &str = "dump_all_command_conversions";

/// The known methods of bitcoind, as entries of the host's lists. Others have no entry: clients must not be able to
/// create labels of metrics.
static KNOWN: LazyLock<HashMap<&str, Arc<MethodSpec>, RandomState>> =
    LazyLock::new(|| methods().filter_map(|(name, _)| Some((name, spec(name, "")?))).collect());

pub(crate) fn known_spec(name: &str) -> Option<Arc<MethodSpec>> {
    KNOWN.get(name).cloned()
}

fn spec(name: &str, category: &str) -> Option<Arc<MethodSpec>> {
    serde_json::from_value(json!({"name": name, "category": category, "help": ""})).ok().map(Arc::new)
}

impl NodeHelp {
    pub fn parse(text: &str) -> Self {
        let mut methods = BTreeMap::new();
        let mut category = "";
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            match line.strip_prefix("== ").and_then(|rest| rest.strip_suffix(" ==")) {
                Some(title) => category = title,
                None => {
                    let name = line.split_whitespace().next().unwrap_or_default();
                    let spec = spec(name, category);
                    let method = NodeMethod { category: category.to_owned(), usage: line.to_owned(), spec };
                    methods.insert(name.to_owned(), method);
                }
            }
        }
        Self(methods)
    }

    pub fn get(&self, method: &str) -> Option<&NodeMethod> {
        self.0.get(method)
    }

    pub fn spec(&self, method: &str) -> Option<Arc<MethodSpec>> {
        self.get(method)?.spec.clone()
    }

    pub fn is_wallet_method(&self, method: &str) -> bool {
        self.get(method).is_some_and(|method| method.category == "Wallet")
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &NodeMethod)> {
        self.0.iter().map(|(name, method)| (name.as_str(), method))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_is_read_by_category() {
        let help = NodeHelp::parse(
            "== Blockchain ==\ngetblock \"blockhash\" ( verbosity )\nping\n\n== Wallet ==\nsend [{}]\n",
        );
        assert_eq!(help.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["getblock", "ping", "send"]);
        assert_eq!(help.get("getblock").unwrap().usage, "getblock \"blockhash\" ( verbosity )");
        assert!(help.is_wallet_method("send") && !help.is_wallet_method("ping") && !help.is_wallet_method("sendall"));
    }
}
