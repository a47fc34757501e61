//! `outrigger plugin inspect`: describes a plugin by its manifest, so that an operator can decide what to grant.

use outrigger_abi::ManifestHeader;
use outrigger_plugins::file::{FileError, PluginFile};
use outrigger_plugins::grants::{RPC, STORE};
use outrigger_plugins::linked::LinkedPlugin;
use outrigger_sandbox::Reach;
use outrigger_sdk::manifest::{Manifest, ReachSpec, Requires, TimerSpec, WrapperKind};
use outrigger_service::policy::POLICY;
use outrigger_values::text::printable;
use serde_json::Map;

/// The services, each with what its grant allows.
const SERVICES: [(&str, &str); 15] = [
    (
        "chain/1",
        "read the chain; submit blocks, declare blocks invalid and valid again; have the host write the unspent outputs to a file",
    ),
    (
        "mempool/1",
        "read the mempool; send transactions and change their priority; have the host write and read a file of the mempool",
    ),
    ("wallet-read/1", "read the granted wallets: their transactions, coins, addresses and public descriptors"),
    ("wallet-book/1", "take new addresses of the granted wallets, set labels and texts, lock and unlock coins"),
    ("wallet-pay/1", "store, send, replace and abandon signed transactions of the granted wallets"),
    ("wallet-import/1", "import descriptors, keys and scripts into the granted wallets, and rescan"),
    (
        "wallet-admin/1",
        "make, load, unload, encrypt and unlock the granted wallets; have the host write and read backups, which have their private keys",
    ),
    ("wallet-keys/1", "read the private keys of the granted wallets"),
    ("signer/1", "sign any transaction and message with the private keys of the granted wallets"),
    (RPC, "see the caller, and get the next one's answer"),
    (STORE, "keep keys and values in a file of its own, within `max_store_mib`"),
    ("metrics/1", "show metrics of its own on the host's page of metrics"),
    ("host/1", "ask for its own id, folder and limits, and for the network and the release"),
    ("events/1", "ask how many events it has missed"),
    ("log/1", "write lines to the host's log"),
];

pub fn describe_file(file: &PluginFile) -> String {
    let place = vec![format!("file      {}", file.path.display()), format!("sha256    {}", file.hash)];
    describe(&file.manifest, &file.header, place)
}

pub fn describe_linked(plugin: &LinkedPlugin) -> Result<String, FileError> {
    let place = vec!["form      built into the program, for use without a file".to_owned()];
    Ok(describe(&plugin.manifest()?, &plugin.header(), place))
}

fn describe(manifest: &Manifest, header: &ManifestHeader, place: Vec<String>) -> String {
    let mut lines = vec![format!("{} {}: {}", manifest.id, manifest.version, manifest.summary)];
    lines.extend(place);
    lines.push(format!(
        "abi       {}.{}, runs on {}.{} and later",
        header.abi_major, header.abi_minor_built, header.abi_major, header.abi_minor_needed
    ));
    lines.extend(requires(&manifest.requires));
    lines.extend(services(manifest));
    lines.extend(reach(manifest));
    if !manifest.events.is_empty() {
        lines.push(format!("events    {}", manifest.events.join(" ")));
    }
    if manifest.folder {
        lines.push("folder    it keeps files in a folder of its own below the data directory".to_owned());
    }
    lines.extend(manifest.wrapper.map(|kind| match kind {
        WrapperKind::Observe => {
            "observes  it can be told of ended calls of others: method, user, wallet, outcome and time".to_owned()
        }
        _ => "wraps     it can be put before methods of others, and then sees their arguments".to_owned(),
    }));
    for service in &manifest.provides {
        lines.push(if service == POLICY {
            "provides  judgements of wallets: `[[wallet.policies]]` can name it".to_owned()
        } else {
            "provides  keys of wallets: `signer` in [wallet] can name it".to_owned()
        });
    }
    if !manifest.timers.is_empty() {
        let timers = manifest.timers.iter().map(|TimerSpec { name, every, at }| match (every, at) {
            (Some(every), _) => format!("{name} (every {every} s)"),
            (None, at) => format!("{name} (each day at {} UTC)", at.as_deref().unwrap_or_default()),
        });
        lines.push(format!("timers    {}", timers.collect::<Vec<_>>().join(", ")));
    }
    lines.push("methods".to_owned());
    lines.extend(manifest.methods.iter().map(|method| format!("  {}", method.usage())));
    if !manifest.options.is_empty() {
        lines.push("options".to_owned());
    }
    for option in &manifest.options {
        let help = printable(&option.help);
        let default = option.default.as_ref().map_or("must be set".to_owned(), |default| format!("default {default}"));
        lines.push(format!("  {} ({}, {default}) {help}", option.name, option.kind.name()));
    }
    lines.join("\n")
}

/// What the plugin requires of the node; `None` if nothing.
fn requires(requires: &Requires) -> Option<String> {
    let Requires { embedded, network, release, txindex, blockfilterindex, spent_outputs } = requires;
    let needs = [
        embedded.then(|| "the embedded chain".to_owned()),
        network.as_ref().map(|network| format!("the network {}", printable(network))),
        release.map(|release| format!("Bitcoin Core {release} or later")),
        txindex.then(|| "txindex=1".to_owned()),
        blockfilterindex.then(|| "blockfilterindex=1".to_owned()),
        spent_outputs.then(|| "the outputs that old blocks spend (prune=0)".to_owned()),
    ];
    let needs: Vec<String> = needs.into_iter().flatten().collect();
    (!needs.is_empty()).then(|| format!("requires  of the node: {}", needs.join(", ")))
}

/// The services that the plugin requests, each with what it allows.
fn services(manifest: &Manifest) -> Vec<String> {
    let line = |name: &String, may: &str| {
        let words = SERVICES.iter().find(|(known, _)| known == name).map(|(_, words)| *words);
        let of = match &*manifest.calls {
            calls @ [_, ..] if name == RPC => format!(", and call these methods: {}", calls.join(" ")),
            _ => String::new(),
        };
        let words = words.unwrap_or("a service that this host does not have");
        format!("  {name}{may}: {words}{of}")
    };
    let needed = manifest.services.iter().map(|name| line(name, ""));
    let optional = manifest.optional.iter().map(|name| line(name, " (it does without, too)"));
    let asked: Vec<String> = needed.chain(optional).collect();
    let heading = if asked.is_empty() { "services  none" } else { "services" };
    std::iter::once(heading.to_owned()).chain(asked).collect()
}

/// The resources that the plugin requests for a process of its own.
fn reach(manifest: &Manifest) -> Vec<String> {
    let defaults = manifest.options(&Map::new()).unwrap_or_default();
    let line = |asked: &ReachSpec| {
        let now = asked.with(&defaults).map(|text| match text.parse::<Reach>() {
            Ok(reach) => reach.words(),
            Err(error) => error.to_string(),
        });
        let now = now.unwrap_or_else(|| "nothing by default".to_owned());
        format!("  {}: {now}. {}", printable(&asked.to), printable(&asked.help))
    };
    let asked: Vec<String> = manifest.reach.iter().map(line).collect();
    let heading = if asked.is_empty() { "reach     nothing beyond its services" } else { "reach" };
    std::iter::once(heading.to_owned()).chain(asked).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_service_of_the_host_is_put_in_words() {
        let mut described = SERVICES.map(|(name, _)| name).to_vec();
        let mut known = outrigger_service::SERVICES.map(|service| service.name).to_vec();
        described.sort_unstable();
        known.sort_unstable();
        assert_eq!(described, known);
    }
}
