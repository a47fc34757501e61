//! Whether users other than root and the host's own could change a file or replace it.
//!
//! A user who may write to a folder may rename its entries, so every folder up to the root counts.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use rustix::io::Errno;

/// Write permission of group and others.
const OTHERS_WRITE: u32 = 0o022;

/// Any permission of group and others.
const OTHERS: u32 = 0o077;

/// In a folder with this bit only owners may rename and delete entries.
const STICKY: u32 = 0o1000;

/// The mode of a private folder of the host.
const OWN: u32 = 0o700;

#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    #[error(
        "{} may be changed by others ({found}); it must belong to root or to the host's user, and `chmod go-w` it",
        .path.display()
    )]
    Open { path: PathBuf, found: String },
    /// The path no longer names the file that was read.
    #[error("{} was replaced while it was read", .path.display())]
    Replaced { path: PathBuf },
    /// The file or folder cannot be read, made or changed.
    #[error("{}: {source}", .path.display())]
    Io { path: PathBuf, source: io::Error },
}

fn at(path: &Path) -> impl Fn(io::Error) -> TrustError + '_ {
    move |source| TrustError::Io { path: path.to_owned(), source }
}

/// Checks an open file and every folder above its path. Folders with the sticky bit may be writable by others.
pub fn check_file(path: &Path, opened: &Metadata) -> Result<(), TrustError> {
    let path = fs::canonicalize(path).map_err(at(path))?;
    judge(&path, opened)?;
    let found = fs::symlink_metadata(&path).map_err(at(&path))?;
    if (found.dev(), found.ino()) != (opened.dev(), opened.ino()) {
        return Err(TrustError::Replaced { path });
    }
    path.parent().map_or(Ok(()), check_way)
}

/// Makes a private folder of the host. Closes an existing folder of the host's user to others. Then checks the folder
/// and its parents.
pub fn own_folder(folder: &Path) -> Result<(), TrustError> {
    fs::DirBuilder::new().recursive(true).mode(OWN).create(folder).map_err(at(folder))?;
    let folder = fs::canonicalize(folder).map_err(at(folder))?;
    let metadata = fs::metadata(&folder).map_err(at(&folder))?;
    let mode = metadata.mode() & 0o7777;
    if mode & OTHERS != 0 && metadata.uid() == own_user() {
        fs::set_permissions(&folder, fs::Permissions::from_mode(OWN)).map_err(at(&folder))?;
        tracing::warn!(folder = %folder.display(), "its mode was {mode:04o}; it is {OWN:04o} now, since it is private");
    }
    check_way(&folder)
}

/// Whether [`own_folder`] would succeed, and files could be made in the folder. Nothing is changed.
pub fn check_own_folder(folder: &Path) -> Result<(), TrustError> {
    let missing = || at(folder)(io::ErrorKind::NotFound.into());
    let found = folder.ancestors().find(|found| found.exists()).ok_or_else(missing)?;
    let metadata = fs::metadata(found).map_err(at(found))?;
    if !metadata.is_dir() {
        let error = if found == folder { Errno::EXIST } else { Errno::NOTDIR };
        return Err(at(folder)(error.into()));
    }
    let way = fs::canonicalize(found).map_err(at(found))?;
    // At the start, `own_folder` sets this folder's mode, so that only the host's user may write in it.
    if found == folder && metadata.mode() & OTHERS != 0 && metadata.uid() == own_user() {
        return way.parent().map_or(Ok(()), check_way);
    }
    check_way(&way)?;
    access(found, Access::WRITE_OK | Access::EXEC_OK).map_err(|error| at(folder)(error.into()))
}

/// Whether only root and the host's user may change a file.
pub fn is_own_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file() && judge(path, &metadata).is_ok())
}

/// Checks a folder and its parents. The path has no symbolic links.
fn check_way(folder: &Path) -> Result<(), TrustError> {
    folder.ancestors().try_for_each(|folder| judge(folder, &fs::symlink_metadata(folder).map_err(at(folder))?))
}

fn judge(path: &Path, metadata: &Metadata) -> Result<(), TrustError> {
    match fault(metadata.uid(), metadata.mode(), metadata.is_dir()) {
        Some(found) => Err(TrustError::Open { path: path.to_owned(), found }),
        None => Ok(()),
    }
}

fn fault(owner: u32, mode: u32, folder: bool) -> Option<String> {
    if owner != 0 && owner != own_user() {
        return Some(format!("it belongs to user {owner}"));
    }
    let open = mode & OTHERS_WRITE != 0 && !(folder && mode & STICKY != 0);
    open.then(|| format!("its mode is {:04o}", mode & 0o7777))
}

fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_file_that_others_may_write_is_named_with_what_is_wrong() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plugin.so");
        fs::write(&path, "content").unwrap();
        let check = |mode: u32, folder_mode: u32| {
            set(&path, mode);
            set(folder.path(), folder_mode);
            check_file(&path, &fs::metadata(&path).unwrap()).map_err(|error| error.to_string())
        };
        assert_eq!(check(0o755, 0o755), Ok(()));
        assert_eq!(check(0o600, 0o1777), Ok(()), "others cannot replace files in a sticky folder");
        for (mode, folder_mode, named) in [(0o664, 0o755, "0664"), (0o602, 0o755, "0602"), (0o644, 0o775, "0775")] {
            let error = check(mode, folder_mode).unwrap_err();
            assert!(error.contains(&format!("its mode is {named}")) && error.contains("chmod go-w"), "{error}");
        }
    }

    #[test]
    fn every_folder_on_the_way_counts_and_links_do_not() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path().canonicalize().unwrap();
        let (open, link) = (top.join("open"), top.join("link"));
        let inner = open.join("closed/inner");
        fs::create_dir_all(&inner).unwrap();
        let file = inner.join("plugin.so");
        fs::write(&file, "content").unwrap();
        std::os::unix::fs::symlink(&inner, &link).unwrap();
        [&open, &open.join("closed"), &inner].into_iter().for_each(|folder| set(folder, 0o755));
        set(&file, 0o644);
        let opened = fs::metadata(&file).unwrap();
        check_file(&link.join("plugin.so"), &opened).unwrap();
        set(&open, 0o777);
        let error = check_file(&link.join("plugin.so"), &opened).unwrap_err().to_string();
        let expected = format!("{} may be changed by others (its mode is 0777)", open.display());
        assert!(error.starts_with(&expected), "{error}");
        set(&open, 0o1777);
        check_file(&file, &opened).unwrap();
    }

    #[test]
    fn a_file_that_took_anothers_place_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("plugin.so"), folder.path().join("other.so"));
        [&path, &other].into_iter().for_each(|file| {
            fs::write(file, "content").unwrap();
            set(file, 0o644);
        });
        let opened = fs::metadata(&path).unwrap();
        fs::rename(&other, &path).unwrap();
        assert!(matches!(check_file(&path, &opened), Err(TrustError::Replaced { .. })));
    }

    #[test]
    fn trust_is_not_given_to_files_of_other_users() {
        let stranger = own_user() + 1;
        let found = format!("it belongs to user {stranger}");
        assert_eq!(fault(stranger, 0o1755, true), Some(found.clone()));
        assert_eq!(fault(stranger, 0o600, false), Some(found));
        for owner in [0, own_user()] {
            assert_eq!(fault(owner, 0o755, true), None);
            assert_eq!(fault(owner, 0o1664, false), Some("its mode is 1664".to_owned()), "a file is never sticky");
        }
    }

    #[test]
    fn an_own_folder_is_made_or_closed() {
        let top = tempfile::tempdir().unwrap();
        let folder = top.path().join("data/regtest");
        let mode = || fs::metadata(&folder).unwrap().mode() & 0o7777;
        own_folder(&folder).unwrap();
        assert_eq!(mode(), 0o700);
        set(&folder, 0o777);
        own_folder(&folder).unwrap();
        assert_eq!(mode(), 0o700);
        set(&top.path().join("data"), 0o775);
        let error = own_folder(&folder).unwrap_err().to_string();
        assert!(error.contains("/data may be changed by others (its mode is 0775)"), "{error}");
    }
}
