//! The bundled groups and their methods, so that the host knows methods of groups that are off.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

const MANIFESTS: [&str; 7] = [
    include_str!("../../plugins/chain/manifest.json"),
    include_str!("../../plugins/history/manifest.json"),
    include_str!("../../plugins/import/manifest.json"),
    include_str!("../../plugins/mining/manifest.json"),
    include_str!("../../plugins/psbt/manifest.json"),
    include_str!("../../plugins/signing/manifest.json"),
    include_str!("../../plugins/wallet/manifest.json"),
];

#[derive(Deserialize)]
struct Group {
    id: String,
    methods: Vec<Method>,
}

#[derive(Deserialize)]
struct Method {
    name: String,
}

static GROUPS: LazyLock<BTreeMap<String, String>> = LazyLock::new(|| {
    // A test and the groups' builds ensure that the manifests parse.
    let groups = MANIFESTS.iter().filter_map(|manifest| serde_json::from_str::<Group>(manifest).ok());
    groups.flat_map(|group| group.methods.into_iter().map(move |method| (method.name, group.id.clone()))).collect()
});

/// The group and the method of this name.
pub fn group_of(method: &str) -> Option<(&'static str, &'static str)> {
    GROUPS.get_key_value(method).map(|(method, group)| (method.as_str(), group.as_str()))
}

pub fn methods() -> impl Iterator<Item = &'static str> {
    GROUPS.keys().map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_group_is_known_with_its_methods() {
        let mut groups: Vec<_> = GROUPS.values().map(String::as_str).collect();
        groups.sort_unstable();
        groups.dedup();
        assert_eq!(groups, ["chain", "history", "import", "mining", "psbt", "signing", "wallet"]);
        assert_eq!(group_of("submitblock"), Some(("submitblock", "mining")));
        assert_eq!(group_of("stop"), None);
    }
}
