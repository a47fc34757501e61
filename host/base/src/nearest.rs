//! Suggestions for unknown names in error messages.

use strsim::osa_distance;

/// The known name with the smallest edit distance to `wanted`, ignoring case. `None` if the distance is more than 1 and more than
/// a third of the length of `wanted`.
pub fn nearest<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = wanted.to_lowercase();
    let length = wanted.chars().count();
    if length > MAX_CHARS {
        return None;
    }
    let most = (length / 3).max(1);
    let distance = |name: &&str| osa_distance(&wanted, &name.to_lowercase());
    known
        .into_iter()
        .map(|name| (distance(&name), name))
        .filter(|(edits, _)| *edits <= most)
        .min()
        .map(|(_, name)| name)
}

/// `; did you mean ...?` for the end of a message. Empty if no known name is similar, or if `wanted` is known.
pub fn suggestion<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(wanted, known)
        .filter(|name| *name != wanted)
        .map(|name| format!("; did you mean '{name}'?"))
        .unwrap_or_default()
}

/// The longest name that gets a suggestion, in characters: the work grows with the product of the lengths.
const MAX_CHARS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_finds_what_is_alike_and_nothing_else() {
        let known = ["chain/1", "mempool/1", "wallet-pay/1", "signer/1"];
        for (wanted, expected) in [
            ("chian/1", Some("chain/1")),
            ("chain/2", Some("chain/1")),
            ("Wallet-pay/1", Some("wallet-pay/1")),
            ("sginer/1", Some("signer/1")),
            ("memppol/1", Some("mempool/1")),
            ("log", None),
            ("", None),
        ] {
            assert_eq!(nearest(wanted, known), expected, "{wanted}");
        }
        assert_eq!(suggestion("chian/1", known), "; did you mean 'chain/1'?");
        assert_eq!(suggestion("something", known), "");
        assert_eq!(nearest(&"x".repeat(100_000), known), None);
    }
}
