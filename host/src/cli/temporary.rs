//! Temporary folders.

use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use outrigger_conformance::end_for_good;

use super::call::terminal::at_signal;

/// Calls `run` with a new temporary folder that only this user can access, since code is loaded from it. A signal also removes it.
pub fn in_folder<T>(purpose: &str, run: impl FnOnce(&Path) -> Result<T, String>) -> Result<T, String> {
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos();
    let folder = std::env::temp_dir().join(format!("outrigger-{purpose}-{}-{now:x}", std::process::id()));
    // If this fails, a copy of the plugin's file remains in the system's temporary folder.
    let remove = |folder: &Path| drop(std::fs::remove_dir_all(folder));
    let to_remove = folder.clone();
    let tidy = move || {
        end_for_good();
        remove(&to_remove);
    };
    at_signal(tidy).map_err(|error| format!("cannot listen for signals: {error}"))?;
    std::fs::DirBuilder::new().mode(0o700).create(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let outcome = run(&folder);
    remove(&folder);
    outcome
}
