//! Settings of earlier versions: the refusal that names the successor, and the migration of a file.

use super::{ConfigError, parse};

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

#[cfg(test)]
mod tests {
    use super::*;

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
