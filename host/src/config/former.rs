//! Settings of earlier versions: the refusal that names the successor, and the migration of a file.

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
    let text = with_wallet_services(text);
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

/// Replaces each grant of the former service of wallets by grants of the services that took its place. Private keys were given
/// only to plugins with a signer.
fn with_wallet_services(text: &str) -> String {
    let mut done = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(WALLET) {
        let begin = rest[..at].rfind("grants").unwrap_or(at);
        let end = end_of_array(&rest[begin..]).map_or(rest.len(), |len| begin + len);
        let array = &rest[begin..end];
        let services = OF_WALLETS.iter().filter(|service| **service != SIGNER);
        let services = services.filter(|service| **service != WALLET_KEYS || array.contains(SIGNER));
        // A grant is the name, or a table around it.
        let before = rest[begin..at].rfind(['{', '[', ',']).map_or(begin, |open| begin + open + 1);
        let is_table = rest[..before].ends_with('{');
        let (from, to) = match rest[at..].find('}') {
            Some(close) if is_table => (before - 1, at + close + 1),
            _ => (at, at + WALLET.len()),
        };
        let grant = &rest[from..to];
        let grants: Vec<String> = services.map(|service| grant.replace(WALLET, &format!("\"{service}\""))).collect();
        done += &rest[..from];
        done += &grants.join(", ");
        rest = &rest[to..];
    }
    done + rest
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
        let refused = parse("FILE", text).unwrap_err().to_string();
        assert_eq!(
            refused,
            "FILE:2: plugin_defaults.transport: this setting was removed: isolated plugins always use sockets; delete the line"
        );
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
