//! Replaces files atomically.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// The suffix of a new file's name until the file is complete.
pub const FRESH: &str = ".new";

/// Creates or replaces a file that only its owner may read, and syncs it to disk. If this fails, or a kill interrupts it, the former
/// file stays.
pub fn replace_file(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut fresh = path.as_os_str().to_owned();
    fresh.push(FRESH);
    let mut file = File::options().write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&fresh, path)?;
    match path.parent() {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}
