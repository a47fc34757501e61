//! Replaces files atomically, and makes and removes files.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// The suffix of a new file's name until the file is complete.
pub const FRESH: &str = ".new";

/// Creates or replaces a file that only its owner may read, and syncs it to disk. If this fails, or a kill interrupts it, the former
/// file stays.
pub fn replace_file(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut fresh = path.as_os_str().to_owned();
    fresh.push(FRESH);
    let fresh = PathBuf::from(fresh);
    let mut file = create_private(&fresh)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&fresh, path)?;
    match path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

/// Creates a file that only its owner may use (mode 0600). Removes an existing one first, so that nobody else can hold it open.
pub fn create_private(path: &Path) -> io::Result<File> {
    unless_absent(fs::remove_file(path))?;
    File::options().read(true).write(true).create_new(true).mode(0o600).open(path)
}

/// The result of a removal or a renaming, which succeeds if there was nothing to remove or rename.
pub fn unless_absent(result: io::Result<()>) -> io::Result<()> {
    result.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_file_is_replaced_as_a_whole_or_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list");
        for content in [&b"first"[..], b"2"] {
            replace_file(&path, content).unwrap();
            assert_eq!(fs::read(&path).unwrap(), content);
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
        fs::create_dir(folder.path().join("list.new")).unwrap();
        assert!(replace_file(&path, b"third").is_err());
        assert_eq!(fs::read(&path).unwrap(), b"2");
    }
}
