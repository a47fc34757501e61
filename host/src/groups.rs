//! The bundled groups, which the program links. The host knows their methods even if a group is off.

use std::sync::LazyLock;

use outrigger_plugins::linked::LinkedPlugin;
use outrigger_sdk::manifest::Manifest;

/// The groups, each with its library's file name.
pub static GROUPS: [LinkedPlugin; 8] = [
    LinkedPlugin::of::<outrigger_chain::ChainPlugin>("chain"),
    LinkedPlugin::of::<outrigger_history::HistoryPlugin>("history"),
    LinkedPlugin::of::<outrigger_import::ImportPlugin>("import"),
    LinkedPlugin::of::<outrigger_mining::MiningPlugin>("mining"),
    LinkedPlugin::of::<outrigger_psbt::PsbtPlugin>("psbt"),
    LinkedPlugin::of::<outrigger_signing::SigningPlugin>("signing"),
    LinkedPlugin::of::<outrigger_wallet::WalletPlugin>("wallet"),
    LinkedPlugin::of::<outrigger_webhooks::WebhooksPlugin>("webhooks"),
];

static METHODS: LazyLock<Vec<(String, &str)>> = LazyLock::new(|| {
    let manifests = GROUPS.iter().filter_map(|group| Some((group.name, group.manifest().ok()?)));
    let of_group =
        |(group, manifest): (_, Manifest)| manifest.methods.into_iter().map(move |method| (method.name, group));
    manifests.flat_map(of_group).collect()
});

/// Whether this plugin id, or file name without a folder, is a bundled group's.
pub fn is_bundled(name: &str) -> bool {
    names().any(|group| group == name)
}

pub fn names() -> impl Iterator<Item = &'static str> {
    GROUPS.iter().map(|group| group.name)
}

pub fn group_of(method: &str) -> Option<&'static str> {
    METHODS.iter().find(|(known, _)| known == method).map(|(_, group)| *group)
}

pub fn methods() -> impl Iterator<Item = &'static str> {
    METHODS.iter().map(|(method, _)| method.as_str())
}
