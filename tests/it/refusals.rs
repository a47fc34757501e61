//! Each text with which a plugin refuses stands in a test or a recording.

use std::path::Path;

/// Texts that no test brings about: they take damage, a race or a node with another history.
const UNASSERTED: [&str; 25] = [
    "Block not available (not fully downloaded)",
    "Can only import the mempool after the block download and sync is done",
    "Can't rescan beyond pruned data. Use RPC call getblockchaininfo to determine your pruned height",
    "Can't sign transaction",
    "Could not roll back to requested height",
    "CreateNewBlock: the host selects no transactions",
    "CreateNewBlock: the tip changed while the template was made",
    "Failed to make block",
    "Filter not found. Block was not connected to active chain",
    "No addresses in wallet correspond to included transaction",
    "Peer does not exist",
    "ProcessNewBlock, block not accepted",
    r#"Scan already in progress, use action \"abort\" or \"status"#,
    "Signing transaction failed",
    "The wallet gave no outcome for a request",
    "The wallet's copy of transaction",
    "Transaction outputs already in utxo set",
    "Unable to dump mempool to disk",
    "Undo data not available",
    "specified with rollback option",
    r#"specified. Please specify \"rollback\" or \"latest"#,
    "cannot be read from the chain",
    "mallocinfo mode not available",
    "mockscheduler is for regression testing (-regtest mode) only",
    "setmocktime is for regression testing (-regtest mode) only",
];

/// All files below a folder with one of these endings, each with its path.
fn files(folder: &Path, endings: &[&str], found: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, endings, found);
        } else if path.extension().is_some_and(|ending| endings.iter().any(|wanted| ending == *wanted)) {
            found.push((path.display().to_string(), std::fs::read_to_string(&path).unwrap()));
        }
    }
}

/// Of each text of an error in a source file, the longest part between its arguments.
fn texts(source: &str) -> impl Iterator<Item = &str> {
    source.split("#[error(").skip(1).filter_map(|rest| {
        let text = rest.trim_start().strip_prefix('"')?;
        let (end, _) = text.match_indices('"').find(|(at, _)| !text[..*at].ends_with('\\'))?;
        let line = text[..end].lines().next()?.trim_end_matches('\\');
        let longest = line.split(['{', '}']).step_by(2).max_by_key(|part| part.len())?;
        Some(longest.trim_matches([' ', '.', '"', '\\'])).filter(|text| text.len() > 3)
    })
}

#[test]
fn refusals_of_plugins_stand_in_a_test_or_a_recording() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let (mut sources, mut asserted) = (Vec::new(), String::new());
    files(&root.join("plugins"), &["rs"], &mut sources);
    let mut tests = Vec::new();
    files(&root.join("tests/it"), &["rs"], &mut tests);
    files(&root.join("tests/data"), &["json", "txt"], &mut tests);
    sources.retain_mut(|(path, source)| {
        let of_tests =
            if path.contains("/tests") { 0 } else { source.find("#[cfg(test)]\nmod tests {").unwrap_or(source.len()) };
        asserted.push_str(&source.split_off(of_tests));
        !source.is_empty()
    });
    tests.iter().filter(|(path, _)| !path.ends_with("it/refusals.rs")).for_each(|(_, text)| asserted.push_str(text));
    let all = sources.iter().flat_map(|(_, source)| texts(source));
    let missing: Vec<&str> = all.filter(|text| !asserted.contains(text) && !UNASSERTED.contains(text)).collect();
    assert_eq!(missing, [""; 0]);
}
