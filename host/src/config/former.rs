//! Settings of earlier versions: their refusal with advice, and the migration of a file.

use std::ops::Range;

use outrigger_plugins::grants::{OF_WALLETS, RPC, SIGNER, WALLET_KEYS};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{ConfigError, parse};

/// The former services.
const WALLET: &str = "wallet/1";
const NODE_RPC: &str = "node-rpc/1";

/// Each former setting, and the advice.
const FORMER: [(&str, &str); 3] = [
    ("plugin_defaults.transport", "isolated plugins always use sockets; delete the line"),
    ("plugins.core", "a plugin with sandbox = \"none\" keeps the host's core limit; delete the line"),
    ("wallet.map_gib", "a wallet's map grows with its file; delete the line"),
];

/// The replacement of a part of a text.
type Edit = (Range<usize>, String);

pub(super) fn refusal(key: &str) -> Option<String> {
    let advice = FORMER.into_iter().find(|(former, _)| *former == key).map(|(_, advice)| advice);
    advice.map(|advice| format!("this setting was removed: {advice}"))
}

pub(super) fn setting_at(text: &str, position: usize) -> Option<&'static str> {
    let table = DeTable::parse(text).ok()?;
    settings(table.get_ref()).into_iter().find(|(_, _, place)| place.contains(&position)).map(|(key, ..)| key)
}

/// Replaces each former setting in a configuration by a comment with the advice, and each grant of a former service by its successors.
pub fn migrate(name: &str, text: &str) -> Result<String, ConfigError> {
    let mut migrated = text.to_owned();
    // `parse` tells the errors of a text that is not TOML.
    if let Ok(table) = DeTable::parse(text) {
        let settings = settings(table.get_ref()).into_iter();
        let mut edits: Vec<Edit> =
            settings.flat_map(|(key, advice, place)| without(text, place, &format!("# {key}: {advice}"))).collect();
        for plugin in tables(table.get_ref().get("plugins")) {
            let grants = plugin.get("grants").and_then(|grants| grants.get_ref().as_array());
            edits.extend(grants.into_iter().flat_map(|grants| with_successors(text, grants)));
        }
        edits.sort_by_key(|(place, _)| place.start);
        edits.into_iter().rev().for_each(|(place, replacement)| migrated.replace_range(place, &replacement));
    }
    parse(name, &migrated).map(|_| migrated)
}

/// The former settings of a configuration, each with its advice and the place of its key and value.
fn settings(table: &DeTable<'_>) -> Vec<(&'static str, &'static str, Range<usize>)> {
    let found = FORMER.iter().flat_map(|&(path, advice)| {
        let (section, key) = path.split_once('.').unwrap_or_default();
        let found = tables(table.get(section)).into_iter().filter_map(move |table| table.get_key_value(key));
        found.map(move |(key, value)| (path, advice, key.span().start..value.span().end))
    });
    found.collect()
}

fn tables<'a, 'i>(value: Option<&'a Spanned<DeValue<'i>>>) -> Vec<&'a DeTable<'i>> {
    match value.map(Spanned::get_ref) {
        Some(DeValue::Table(table)) => vec![table],
        Some(DeValue::Array(array)) => array.iter().filter_map(|value| value.get_ref().as_table()).collect(),
        _ => Vec::new(),
    }
}

/// Replaces a setting by a comment. If its line has other settings, the comment stands on the line above, and the comma goes too.
fn without(text: &str, place: Range<usize>, comment: &str) -> Vec<Edit> {
    let (before, after) = (&text[..place.start], &text[place.end..]);
    let line = before.rfind('\n').map_or(0, |end| end + 1);
    let behind = after.lines().next().unwrap_or_default().trim();
    if !before[line..].contains(['=', '{', ',']) && (["", ","].contains(&behind) || behind.starts_with('#')) {
        let indent = before[line..].len() - before[line..].trim_start().len();
        return vec![(line + indent..place.end, comment.to_owned())];
    }
    let place = match (after.trim_start().strip_prefix(','), before.trim_end().strip_suffix(',')) {
        (Some(rest), _) => place.start..text.len() - rest.trim_start().len(),
        (None, Some(rest)) => rest.len()..place.end,
        (None, None) => place,
    };
    let line_end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    vec![(line..line, format!("{comment}{line_end}")), (place, String::new())]
}

/// Replaces the grants of former services. `signer/1` used to bound the private keys, so the wallets of that grant also bound
/// `wallet-keys/1`. A former grant with a list of wallets gets no `wallet-keys/1`.
fn with_successors(text: &str, grants: &[Spanned<DeValue<'_>>]) -> Vec<Edit> {
    // A grant is a string, or a table.
    let named = |grant: &Spanned<DeValue<'_>>| {
        let service = grant.get_ref().get("service").unwrap_or(grant);
        Some((service.get_ref().as_str()?.to_owned(), service.span()))
    };
    // A grant's text, with another service.
    let of = |grant: &Spanned<DeValue<'_>>, service: &str| {
        let (whole, name) = (grant.span(), named(grant).map_or(grant.span(), |(_, place)| place));
        format!("{}\"{service}\"{}", &text[whole.start..name.start], &text[name.end..whole.end])
    };
    let is_of = |grant: &Spanned<DeValue<'_>>, service: &str| named(grant).is_some_and(|(name, _)| name == service);
    let signer = grants.iter().find(|grant| is_of(grant, SIGNER));
    let edits = grants.iter().filter_map(|grant| {
        if is_of(grant, NODE_RPC) {
            return Some((grant.span(), of(grant, RPC)));
        }
        let successors = OF_WALLETS.iter().filter(|service| ![SIGNER, WALLET_KEYS].contains(service));
        let keys = signer.filter(|_| grant.get_ref().is_str()).map(|signer| of(signer, WALLET_KEYS));
        let successors: Vec<String> = successors.map(|service| of(grant, service)).chain(keys).collect();
        is_of(grant, WALLET).then(|| (grant.span(), successors.join(", ")))
    });
    edits.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grants_of_the_former_service_of_wallets_are_migrated() {
        let migrated =
            |grants: &str| migrate("FILE", &format!("[[plugins]]\nfile = \"a.so\"\ngrants = {grants}")).unwrap();
        let five = r#""wallet-read/1", "wallet-book/1", "wallet-pay/1", "wallet-import/1", "wallet-admin/1""#;
        let plain = migrated("[\"chain/1\", \"wallet/1\", \"log/1\"]");
        assert!(plain.ends_with(&format!("[\"chain/1\", {five}, \"log/1\"]")), "{plain}");
        let keys = migrated("[\"wallet/1\", \"signer/1\"]");
        assert!(keys.ends_with(&format!("[{five}, \"wallet-keys/1\", \"signer/1\"]")), "{keys}");
        let hot = migrated("[\"wallet/1\", { service = \"signer/1\", wallets = [\"hot\"] }]");
        let listed =
            "{ service = \"wallet-keys/1\", wallets = [\"hot\"] }, { service = \"signer/1\", wallets = [\"hot\"] }]";
        assert!(hot.ends_with(&format!("[{five}, {listed}")), "{hot}");
        // Other spellings, and comments, which stay.
        let spelled = migrated(
            "[\r\n  # \"wallet/1\" and \"signer/1\"\r\n  \
             { wallets = ['hot'], service = 'wallet/1' }, 'node-rpc/1']\r\n",
        );
        let comment =
            "[\r\n  # \"wallet/1\" and \"signer/1\"\r\n  { wallets = ['hot'], service = \"wallet-read/1\" }, {";
        assert!(spelled.contains(comment) && spelled.ends_with(" }, \"rpc/1\"]\r\n"), "{spelled}");
        let after = migrated("[ # \"wallet/1\"\n \"wallet/1\"]\n[[plugins]]\nfile = \"b.so\"\ngrants = [\"signer/1\"]");
        assert!(!after.contains("wallet-keys"), "{after}");
        let calls = migrated("[{ service = \"node-rpc/1\", methods = [\"getblock\"] }]");
        assert!(calls.ends_with("[{ service = \"rpc/1\", methods = [\"getblock\"] }]"), "{calls}");
        let both =
            migrated("[{ service = \"wallet/1\", wallets = [\"a\"] }, { service = \"signer/1\", wallets = [\"b\"] }]");
        assert!(!both.contains("wallet-keys"), "{both}");
        let some = migrated("[{ service = \"wallet/1\", wallets = [\"hot\"] },\n  \"log/1\"]");
        assert!(
            some.contains("[{ service = \"wallet-read/1\", wallets = [\"hot\"] }, { service = \"wallet-book/1\""),
            "{some}"
        );
        assert!(some.ends_with("{ service = \"wallet-admin/1\", wallets = [\"hot\"] },\n  \"log/1\"]"), "{some}");
    }

    #[test]
    fn former_settings_are_refused_with_advice_and_migrated() {
        let text = "[plugin_defaults]\ntransport = \"socket\"\nisolated = \"all\"\n";
        let migrated = migrate("FILE", text).unwrap();
        assert!(
            migrated.starts_with("[plugin_defaults]\n# plugin_defaults.transport: ")
                && migrated.ends_with("isolated = \"all\"\n")
        );
        assert!(parse("FILE", &migrated).is_ok());
        let migrated = migrate("FILE", "[[plugins]]\nfile = \"a.so\"\ncore = true\n").unwrap();
        assert!(migrated.starts_with("[[plugins]]\nfile = \"a.so\"\n# plugins.core: "), "{migrated}");
        assert!(migrate("FILE", "[plugin_defaults]\nisolate = 1\n").is_err());
        let inline = "plugin_defaults = { transport = \"socket\", isolated = \"all\" }\r\n\
                      wallet = { keypool = 5, map_gib = 4 }\r\n";
        let error = parse("FILE", inline).unwrap_err().to_string();
        assert!(error.starts_with("FILE:1: plugin_defaults.transport: this setting was removed: "), "{error}");
        let migrated = migrate("FILE", inline).unwrap();
        let lines: Vec<&str> = migrated.split("\r\n").collect();
        assert_eq!((lines[1], lines[3]), ("plugin_defaults = { isolated = \"all\" }", "wallet = { keypool = 5 }"));
        assert!(lines[0].starts_with("# plugin_defaults.transport: ") && lines[2].starts_with("# wallet.map_gib: "));
        for (several, left) in [
            ("wallet = {\n  keypool = 5, map_gib = 4\n}\n", "wallet = {\n  keypool = 5\n}\n"),
            ("wallet = {\n  map_gib = 4, keypool = 5\n}\n", "wallet = {\n  keypool = 5\n}\n"),
            ("wallet = {\n  map_gib = 4,\n  keypool = 5\n}\n", "wallet = {\n  keypool = 5\n}\n"),
        ] {
            let migrated = migrate("FILE", several).unwrap();
            let kept: String = migrated.split_inclusive('\n').filter(|line| !line.contains('#')).collect();
            assert_eq!(kept, left, "{migrated}");
        }
        let dotted = migrate("FILE", "wallet.map_gib = 4 # large\nwallet.keypool = 5\n").unwrap();
        assert!(dotted.ends_with("; delete the line # large\nwallet.keypool = 5\n"), "{dotted}");
    }
}
