//! Suggestions for unknown names in error messages.

/// The known name with the smallest edit distance to `wanted`, ignoring case. `None` if the distance is more than 1 and more than
/// a third of the length of `wanted`.
pub fn nearest<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted: Vec<char> = wanted.to_lowercase().chars().take(MAX_CHARS + 1).collect();
    if wanted.len() > MAX_CHARS {
        return None;
    }
    let most = (wanted.len() / 3).max(1);
    let distance = |name: &&str| edits(&wanted, &name.to_lowercase().chars().collect::<Vec<_>>());
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

/// How many letters must be inserted, removed, replaced or swapped with their neighbour (optimal string alignment
/// distance).
fn edits(a: &[char], b: &[char]) -> usize {
    let width = b.len() + 1;
    let mut before = vec![0; width];
    let mut last: Vec<usize> = (0..width).collect();
    for (row, from) in a.iter().enumerate() {
        let mut next = vec![row + 1; width];
        for (column, to) in b.iter().enumerate() {
            let replaced = last[column] + usize::from(from != to);
            let mut least = replaced.min(last[column + 1] + 1).min(next[column] + 1);
            if row > 0 && column > 0 && *from == b[column - 1] && a[row - 1] == *to {
                least = least.min(before[column - 1] + 1);
            }
            next[column + 1] = least;
        }
        before = std::mem::replace(&mut last, next);
    }
    last[b.len()]
}

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
