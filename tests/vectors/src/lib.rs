//! Published vectors of Bitcoin Core and the BIPs, for tests. They are no part of this repository.
//!
//! `OUTRIGGER_VECTORS` names their folder; without it they are looked for beside the repository, in `../shared/vectors`. Where they
//! are not there a test says so on standard error and passes; with `OUTRIGGER_VECTORS=required` it fails.

#![allow(clippy::panic, reason = "a test that cannot read its vectors must fail")]

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// The variable of the environment.
const SETTING: &str = "OUTRIGGER_VECTORS";

/// Its value with which the vectors must be there.
const REQUIRED: &str = "required";

/// Reads a file of vectors; none, with a line on standard error, where they are not there and need not be.
///
/// # Panics
/// Where they are required and cannot be read.
#[track_caller]
pub fn read(file: &str) -> Option<Value> {
    let beside: PathBuf = [env!("CARGO_MANIFEST_DIR"), "..", "..", "..", "shared", "vectors"].iter().collect();
    let setting = std::env::var_os(SETTING);
    let Some(text) = find(setting.as_deref(), &beside, file).unwrap_or_else(|error| panic!("{error}")) else {
        // Not by a macro, whose lines of a test that passes nobody sees.
        let _ = writeln!(std::io::stderr(), "skipped: {SETTING} names no folder, and there is no {}", beside.display());
        return None;
    };
    Some(serde_json::from_str(&text).unwrap_or_else(|error| panic!("{file}: {error}")))
}

/// The text of a file; none where the folder is not there and need not be.
fn find(setting: Option<&OsStr>, beside: &Path, file: &str) -> Result<Option<String>, String> {
    let named = setting.filter(|setting| *setting != REQUIRED);
    let folder = named.map_or(beside, Path::new);
    if setting.is_none() && !folder.is_dir() {
        return Ok(None);
    }
    let path = folder.join(file);
    std::fs::read_to_string(&path).map(Some).map_err(|error| format!("{SETTING}: {}: {error}", path.display()))
}

#[test]

fn vectors_that_are_required_and_missing_fail_the_test() {
    let missing = Path::new("/nonexistent/vectors");
    assert_eq!(find(None, missing, "a.json"), Ok(None));
    for setting in ["required", "/nonexistent/named"] {
        let error = find(Some(OsStr::new(setting)), missing, "a.json").unwrap_err();
        assert!(error.starts_with("OUTRIGGER_VECTORS: /nonexistent/") && error.contains("a.json: "), "{error}");
    }
    // A folder that is there must have the file.
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    assert!(find(None, here, "nosuch.json").is_err());
    assert!(find(Some(OsStr::new(REQUIRED)), here, "Cargo.toml").unwrap().is_some());
    assert!(find(Some(here.as_os_str()), missing, "Cargo.toml").unwrap().is_some());
}
