//! Settings of earlier versions: their refusal with advice, and the migration of a file.

use outrigger_plugins::grants::{OF_WALLETS, SIGNER, WALLET_KEYS};

use super::{ConfigError, parse};

/// The former service of wallets, as a configuration writes it.
const WALLET: &str = "\"wallet/1\"";

/// Each former setting, and the advice.
const FORMER: [(&str, &str); 2] = [
    ("plugin_defaults.transport", "isolated plugins always use sockets; delete the line"),
    ("plugins.core", "a plugin with sandbox = \"none\" keeps the host's core limit; delete the line"),
];

/// The refusal of a former setting.
pub(super) fn refusal(key: &str) -> Option<String> {
    advice(key).map(|advice| format!("this setting was removed: {advice}"))
}

fn advice(key: &str) -> Option<&'static str> {
    FORMER.into_iter().find(|(former, _)| *former == key).map(|(_, advice)| advice)
}

/// Replaces each former setting in a configuration by a comment with the advice.
///
/// # Errors
/// The text has other errors.
pub fn migrate(name: &str, text: &str) -> Result<String, ConfigError> {
    let text = with_wallet_services(text).replace("\"node-rpc/1\"", "\"rpc/1\"");
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    loop {
        let error = match parse(name, &lines.join("\n")) {
            Ok(_) => return Ok(lines.join("\n")),
            Err(error) => error,
        };
        let line = error.line.and_then(|line| lines.get_mut(line - 1));
        match (error.key.as_deref().and_then(|key| Some((key, advice(key)?))), line) {
            (Some((key, advice)), Some(line)) => *line = format!("# {key}: {advice}"),
            _ => return Err(error),
        }
    }
}

/// Replaces each grant of the former service of wallets by grants of its successors. The grant is a string, or a table with `service`
/// as its first key; the host refuses any other spelling. `signer/1` used to bound the private keys, so the wallets of that grant also
/// bound `wallet-keys/1`. A former grant with a list of wallets gets no `wallet-keys/1`.
fn with_wallet_services(text: &str) -> String {
    let mut done = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(WALLET) {
        let before = rest[..at].trim_end();
        let is_comment = rest[..at].rsplit('\n').next().is_some_and(|line| line.contains('#'));
        let is_table = before.ends_with('=');
        let (from, to) = match (rest[..at].rfind('{'), rest[at..].find('}')) {
            (Some(open), Some(close)) if is_table => (open, at + close + 1),
            _ => (at, at + WALLET.len()),
        };
        let grant = &rest[from..to];
        if is_comment || is_table && !grant.starts_with("{ service = ") {
            done += &rest[..to];
            rest = &rest[to..];
            continue;
        }
        let array = rest[..at].rfind("grants").map(|begin| &rest[begin..]);
        let keys = array.filter(|_| !is_table).and_then(grant_of_keys);
        let services = OF_WALLETS.iter().filter(|service| ![SIGNER, WALLET_KEYS].contains(service));
        let grants = services.map(|service| grant.replace(WALLET, &format!("\"{service}\""))).chain(keys);
        done += &rest[..from];
        done += &grants.collect::<Vec<_>>().join(", ");
        rest = &rest[to..];
    }
    done + rest
}

/// A grant of `wallet-keys/1` for the wallets of the `signer/1` grant in this array; `None` if the array has no such grant.
fn grant_of_keys(array: &str) -> Option<String> {
    let signer = format!("\"{SIGNER}\"");
    let end = end_of_array(array)?;
    let (before, after) = array.get(..end)?.split_once(&signer)?;
    if before.rsplit('\n').next().is_some_and(|line| line.contains('#')) {
        return None;
    }
    if !before.trim_end().ends_with('=') {
        return Some(format!("\"{WALLET_KEYS}\""));
    }
    let wallets = after.split('}').next()?.split_once("wallets = ")?.1.trim();
    Some(format!("{{ service = \"{WALLET_KEYS}\", wallets = {wallets} }}"))
}

/// The length of a text up to the end of its first array.
fn end_of_array(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'[' => depth += 1,
            b']' if depth == 1 => return Some(at + 1),
            b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
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
        // Left to the operator: other spellings, and comments.
        let left =
            "[\n  # \"wallet/1\" and \"signer/1\"\n  { wallets = [\"hot\"], service = \"wallet/1\" }, \"log/1\"]";
        assert!(migrated(left).ends_with(left), "{}", migrated(left));
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
                && migrated.ends_with("isolated = \"all\"")
        );
        assert!(parse("FILE", &migrated).is_ok());
        let migrated = migrate("FILE", "[[plugins]]\nfile = \"a.so\"\ncore = true\n").unwrap();
        assert!(migrated.starts_with("[[plugins]]\nfile = \"a.so\"\n# plugins.core: "), "{migrated}");
        assert!(migrate("FILE", "[plugin_defaults]\nisolate = 1\n").is_err());
    }
}
