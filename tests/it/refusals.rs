//! Each refusal text of a plugin appears in a test or a recording.

use std::path::Path;

use outrigger_tests::files_below;

/// Texts that no test triggers: they need damage, a race, or a node with another history.
const UNASSERTED: [&str; 24] = [
    "Block not available (not fully downloaded)",
    "Can't rescan beyond pruned data. Use RPC call getblockchaininfo to determine your pruned height",
    "Can't sign transaction",
    "CreateNewBlock: the host selects no transactions",
    "CreateNewBlock: the tip changed while the template was made",
    "Failed to make block",
    "Filter not found. Block was not connected to active chain",
    "No addresses in wallet correspond to included transaction",
    "ProcessNewBlock, block not accepted",
    r#"Scan already in progress, use action \"abort\" or \"status"#,
    "Sign failed",
    "Signing transaction failed",
    "The wallet gave no outcome for a request",
    "The wallet's copy of transaction",
    "Transaction outputs already in utxo set",
    "Unable to dump mempool to disk",
    "Undo data not available",
    "a script without an address has a label",
    "cannot be read from the chain",
    "the descriptor could not be stored",
    "the descriptor does not parse",
    "the stored key does not parse",
    "the wallet derived a script that has no address",
    "setmocktime is for regression testing (-regtest mode) only",
];

/// Texts that tests compare with bitcoind's, and so do not contain.
const COMPARED: [&str; 8] = [
    "Cannot combine minconf or maxconf with specific inputs",
    "Cannot combine send_max with specific inputs",
    "Invalid minconf (minconf cannot be negative):",
    "Must provide at least one address without a specified amount",
    "Pass conf_target and estimate_mode either as arguments or in the options object, but not both",
    "Pass the fee_rate either as an argument, or in the options object, but not both",
    "Specify estimate_mode",
    "instead of",
];

/// All files below a folder with one of these endings, each with its path and text.
fn files(folder: &Path, endings: &[&str]) -> Vec<(String, String)> {
    let mut files = files_below(folder, &[]);
    files.retain(|path| path.extension().is_some_and(|ending| endings.iter().any(|wanted| ending == *wanted)));
    files.iter().map(|path| (path.display().to_string(), std::fs::read_to_string(path).unwrap())).collect()
}

/// The longest part between arguments of each text in a call of `RpcError` or in an error attribute.
fn texts(source: &str) -> impl Iterator<Item = &str> {
    let calls = source.split("RpcError::").skip(1).filter_map(|rest| {
        let name = rest.find(|character: char| !character.is_ascii_lowercase() && character != '_')?;
        arguments(rest.get(name..)?.strip_prefix('(')?)
    });
    let attributes = source.split("#[error(").skip(1).filter_map(arguments);
    calls.chain(attributes).filter_map(|arguments| {
        let text = &arguments[arguments.find('"')? + 1..];
        let (end, _) = text.match_indices('"').find(|(at, _)| !text[..*at].ends_with('\\'))?;
        let line = text[..end].lines().next()?.trim_end_matches('\\');
        let longest = line.split(['{', '}']).step_by(2).max_by_key(|part| part.len())?;
        Some(longest.trim_matches([' ', '.', '"', '\\'])).filter(|text| text.len() > 3)
    })
}

/// The text before the parenthesis that closes a call. Parentheses inside strings are balanced too.
fn arguments(rest: &str) -> Option<&str> {
    let mut depth = 1;
    let close = |character: char| {
        depth += match character {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        depth == 0
    };
    rest.get(..rest.find(close)?)
}

#[test]
fn each_refusal_text_of_a_plugin_is_in_a_test_or_a_recording() {
    // Resolved without `tests/..`, since folder names are checked below.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut sources = ["plugins", "sdk/kit"].map(|folder| files(&root.join(folder), &["rs"])).concat();
    let tests = [files(&root.join("tests/it"), &["rs"]), files(&root.join("tests/data"), &["json", "txt"])].concat();
    let mut asserted = String::new();
    sources.retain_mut(|(path, source)| {
        let of_tests =
            if path.contains("/tests") { 0 } else { source.find("#[cfg(test)]\nmod tests {").unwrap_or(source.len()) };
        asserted.push_str(&source.split_off(of_tests));
        !source.is_empty()
    });
    tests.iter().filter(|(path, _)| !path.ends_with("it/refusals.rs")).for_each(|(_, text)| asserted.push_str(text));
    let listed = || UNASSERTED.iter().chain(&COMPARED);
    let stale = listed().filter(|text| !sources.iter().any(|(_, source)| source.contains(**text)));
    assert_eq!(stale.collect::<Vec<_>>(), [&""; 0], "no plugin refuses so");
    let all = sources.iter().flat_map(|(_, source)| texts(source));
    let missing = all.filter(|text| !asserted.contains(text) && !listed().any(|known| known == text));
    assert_eq!(missing.collect::<Vec<_>>(), [""; 0]);
}
