//! Reads published test vectors of Bitcoin Core and the BIPs, which are not part of this repository.
//!
//! `OUTRIGGER_VECTORS` names their folder; the default is `../shared/vectors` beside the repository. If the default is missing, a
//! test reports that on standard error and passes; with `OUTRIGGER_VECTORS=required` it fails.

#![allow(clippy::panic, reason = "a test that cannot read its vectors must fail")]

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// The environment variable.
const SETTING: &str = "OUTRIGGER_VECTORS";

/// The value of the variable that makes missing vectors a failure.
const REQUIRED: &str = "required";

/// Reads a file of vectors; none, with a line on standard error, if they are missing and not required.
#[track_caller]
pub fn read(file: &str) -> Option<Value> {
    let beside: PathBuf = [env!("CARGO_MANIFEST_DIR"), "..", "..", "..", "shared", "vectors"].iter().collect();
    let setting = std::env::var_os(SETTING);
    let Some(text) = find(setting.as_deref(), &beside, file).unwrap_or_else(|error| panic!("{error}")) else {
        // The test harness hides what `eprintln!` prints in a passing test.
        let _ = writeln!(std::io::stderr(), "skipped: {SETTING} names no folder, and there is no {}", beside.display());
        return None;
    };
    Some(serde_json::from_str(&text).unwrap_or_else(|error| panic!("{file}: {error}")))
}

/// The text of a file; none if the folder is missing and not required.
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
fn missing_required_vectors_are_an_error() {
    let missing = Path::new("/nonexistent/vectors");
    assert_eq!(find(None, missing, "a.json"), Ok(None));
    for setting in ["required", "/nonexistent/named"] {
        let error = find(Some(OsStr::new(setting)), missing, "a.json").unwrap_err();
        assert!(error.starts_with("OUTRIGGER_VECTORS: /nonexistent/") && error.contains("a.json: "), "{error}");
    }
    // A folder that exists must have the file.
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    assert!(find(None, here, "nosuch.json").is_err());
    assert!(find(Some(OsStr::new(REQUIRED)), here, "Cargo.toml").unwrap().is_some());
    assert!(find(Some(here.as_os_str()), missing, "Cargo.toml").unwrap().is_some());
}
