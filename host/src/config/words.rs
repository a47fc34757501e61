//! Messages about unknown names.

use outrigger_base::nearest::nearest;
use outrigger_values::params::toml_words;

/// Rewords a message of the TOML reader. In an error about an unknown name, the most similar known name replaces the list of all known
/// names.
pub fn in_words(message: &str) -> String {
    let message = toml_words(message);
    unknown(&message).map_or_else(|| message.clone(), |(refusal, name)| format!("{refusal}; did you mean '{name}'?"))
}

/// Splits an error about an unknown name into the error without the list of known names, and the most similar known name.
fn unknown(message: &str) -> Option<(&str, &str)> {
    let (refusal, known) = message.split_once(", expected ")?;
    let name = refusal.strip_prefix("unknown field `").or_else(|| refusal.strip_prefix("unknown variant `"))?;
    let name = name.strip_suffix('`')?;
    // The known names are the quoted parts.
    Some((refusal, nearest(name, known.split('`').skip(1).step_by(2))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_names_are_answered_with_the_nearest_or_all_known_ones() {
        let among = "unknown field `thread`, expected one of `listen`, `threads`";
        assert_eq!(in_words(among), "unknown field `thread`; did you mean 'threads'?");
        let two = "unknown variant `jsn`, expected `text` or `json`";
        assert_eq!(in_words(two), "unknown variant `jsn`; did you mean 'json'?");
        let unlike = "unknown field `colour`, expected one of `listen`, `threads`";
        assert_eq!(in_words(unlike), unlike);
        let other = "invalid type: map, expected a sequence";
        assert_eq!(in_words(other), "invalid type: table, expected an array");
    }
}
