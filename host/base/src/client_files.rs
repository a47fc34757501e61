//! The rules for files on the host's machine that a client names (backupwallet, restorewallet).
//!
//! - The file lies outside the data directory, which contains the cookie, the lock, the chain and the wallets.
//! - Neither the file nor a folder in its path is a symbolic link, so the host opens the same file that it has checked.
//! - If the operator names folders for a user, the file lies below one of them.
//! - The host writes a new file beside the target, for its own user alone (mode 0600), and renames it to the target. It replaces an
//!   existing file only if the caller recognises its kind.
//! - The host records each unfinished file before it creates it, if it can. The next start removes the files that a kill left.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::Mutex;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, openat, renameat, unlinkat};
use rustix::io::Errno;

use crate::replace::{replace_file, unless_absent};

/// The suffix of an unfinished file. The process id and the number before it distinguish concurrent files.
pub const UNFINISHED: &str = ".unfinished";

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// The folders that a user's files may be in; `None`: anywhere outside the data directory.
pub type Folders = Option<Arc<[PathBuf]>>;

/// Why a client's file is not read or written.
#[derive(Debug, thiserror::Error)]
pub enum ClientFileError {
    #[error("the path names no file")]
    NoName,
    #[error("there is no such file")]
    Missing,
    #[error("it lies in the data directory")]
    InDataDirectory,
    /// It is outside the folders of the user, or of the plugin that serves the call.
    #[error(
        "it is outside the folders that the configuration allows the user (rpc.users.folders) or the plugin (reach)"
    )]
    NotAllowed,
    /// It is a symbolic link, or its path has one.
    #[error("its path contains a symbolic link; give the path without links")]
    SymbolicLink,
    /// It is a folder, a device or the like.
    #[error("it is not a regular file")]
    NotAFile,
    /// A file exists that may not be replaced.
    #[error("a file of another kind exists there and is not overwritten")]
    OtherFile,
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<Errno> for ClientFileError {
    fn from(error: Errno) -> Self {
        match error {
            Errno::LOOP => Self::SymbolicLink,
            Errno::NOENT => Self::Missing,
            other => Self::Io(other.into()),
        }
    }
}

type Result<T> = std::result::Result<T, ClientFileError>;

/// Reads and writes clients' files under the rules above.
#[derive(Debug)]
pub struct ClientFiles {
    data_directory: PathBuf,
    unfinished: Journal,
}

/// A permitted file: an open folder, and a name in it.
struct Place {
    folder: OwnedFd,
    path: PathBuf,
    name: OsString,
}

impl ClientFiles {
    /// Opens the record of unfinished files, and removes the files of a killed process. `notes` is the path of the record, in
    /// the data directory.
    pub fn open(data_directory: &Path, notes: PathBuf) -> io::Result<Self> {
        let data_directory = fs::canonicalize(data_directory)?;
        Ok(Self { data_directory, unfinished: Journal::open(notes)? })
    }

    /// Opens a file for reading.
    ///
    /// # Errors
    /// The violated rule, or the system's error.
    pub fn read(&self, file: &Path, folders: &Folders) -> Result<File> {
        self.place(file, folders)?.open()?.ok_or(ClientFileError::Missing)
    }

    /// Writes a file with `write`. An existing file is replaced only if `replaceable` returns true. A failure or a kill
    /// leaves the existing file unchanged.
    ///
    /// # Errors
    /// The violated rule, the system's error, or that of `write`.
    pub fn replace<E: From<ClientFileError>>(
        &self,
        file: &Path,
        folders: &Folders,
        replaceable: impl FnOnce(&File) -> io::Result<bool>,
        write: impl FnOnce(&mut File) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let place = self.place(file, folders)?;
        if let Some(former) = place.open()?
            && !replaceable(&former).map_err(ClientFileError::Io)?
        {
            return Err(ClientFileError::OtherFile.into());
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let mut unfinished = place.name.clone();
        unfinished.push(format!(".{}-{number}{UNFINISHED}", std::process::id()));
        let noted = place.path.join(&unfinished);
        // The data directory's disk may be full, and this file's disk not.
        if let Err(error) = self.unfinished.note(&noted) {
            tracing::warn!(file = %noted.display(), %error, "cannot note an unfinished file; a kill would leave it");
        }
        let written = place.write(&unfinished, write);
        if written.is_err() {
            let _ = unlinkat(&place.folder, &unfinished, AtFlags::empty());
        }
        // If this fails, the record names a missing file, which is harmless.
        let _ = self.unfinished.change(|all| {
            all.remove(&noted);
        });
        written
    }

    fn place(&self, file: &Path, folders: &Folders) -> Result<Place> {
        let (folder, name) = folder_and_name(&std::path::absolute(file)?).ok_or(ClientFileError::NoName)?;
        let path = fs::canonicalize(&folder).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => ClientFileError::Missing,
            _ => error.into(),
        })?;
        if path.starts_with(&self.data_directory) {
            return Err(ClientFileError::InDataDirectory);
        }
        if path != folder {
            return Err(ClientFileError::SymbolicLink);
        }
        if let Some(folders) = folders {
            let mut real = folders.iter().filter_map(|folder| fs::canonicalize(folder).ok());
            if !real.any(|folder| path.starts_with(folder)) {
                return Err(ClientFileError::NotAllowed);
            }
        }
        Ok(Place { folder: open_folder(&path)?, path, name })
    }
}

/// Opens a folder. Fails if its path contains a symbolic link, even one made since the check.
fn open_folder(path: &Path) -> Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::RDONLY;
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{ResolveFlags, openat2};
        match openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
            // Linux before 5.6, and containers that block the call.
            Err(Errno::NOSYS | Errno::PERM) => {}
            opened => return Ok(opened?),
        }
    }
    // Without openat2, the system checks only the last component of the path.
    Ok(openat(CWD, path, flags | OFlags::NOFOLLOW, Mode::empty())?)
}

impl Place {
    /// Opens the file for reading; `None` if it does not exist.
    fn open(&self) -> Result<Option<File>> {
        // Non-blocking, in case it is a FIFO without a writer.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match openat(&self.folder, &self.name, flags, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(None),
            opened => File::from(opened?),
        };
        if file.metadata()?.is_file() { Ok(Some(file)) } else { Err(ClientFileError::NotAFile) }
    }

    fn write<E: From<ClientFileError>>(
        &self,
        unfinished: &OsStr,
        write: impl FnOnce(&mut File) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = openat(&self.folder, unfinished, flags, Mode::RUSR | Mode::WUSR);
        let mut file = File::from(opened.map_err(ClientFileError::from)?);
        write(&mut file)?;
        file.sync_all().map_err(ClientFileError::Io)?;
        renameat(&self.folder, unfinished, &self.folder, &self.name).map_err(ClientFileError::from)?;
        Ok(rustix::fs::fsync(&self.folder).map_err(ClientFileError::from)?)
    }
}

/// Splits a path into its folder and its file name, and removes `.` and `..` without reading the disk. `None` if the path does not
/// end with a name.
fn folder_and_name(path: &Path) -> Option<(PathBuf, OsString)> {
    if !matches!(path.components().next_back(), Some(Component::Normal(_))) {
        return None;
    }
    let mut short = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => drop(short.pop()),
            other => short.push(other),
        }
    }
    Some((short.parent()?.to_owned(), short.file_name()?.to_owned()))
}

/// The record of unfinished files, so that the next start finds those of a killed process.
#[derive(Debug)]
struct Journal {
    file: PathBuf,
    noted: Mutex<BTreeSet<PathBuf>>,
}

impl Journal {
    fn open(file: PathBuf) -> io::Result<Self> {
        let noted: Vec<PathBuf> = match fs::read(&file) {
            Ok(text) => serde_json::from_slice(&text).unwrap_or_else(|error| {
                tracing::warn!(file = %file.display(), %error, "cannot read the list of unfinished files");
                Vec::new()
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        let mut left = BTreeSet::new();
        for path in noted {
            let ours = path.as_os_str().as_encoded_bytes().ends_with(UNFINISHED.as_bytes());
            if ours && fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_file()) {
                match fs::remove_file(&path) {
                    Ok(()) => tracing::info!(file = %path.display(), "removed an unfinished file of a killed process"),
                    Err(error) => {
                        tracing::warn!(file = %path.display(), %error, "cannot remove an unfinished file; the next start retries");
                        left.insert(path);
                    }
                }
            }
        }
        let journal = Self { file, noted: Mutex::new(left) };
        journal.change(|_| ())?;
        Ok(journal)
    }

    fn note(&self, path: &Path) -> io::Result<()> {
        self.change(|noted| {
            noted.insert(path.to_owned());
        })
    }

    fn change(&self, change: impl FnOnce(&mut BTreeSet<PathBuf>)) -> io::Result<()> {
        let mut noted = self.noted.lock();
        let mut changed = noted.clone();
        change(&mut changed);
        // JSON cannot hold paths that are not UTF-8.
        let texts: Vec<&str> = changed.iter().filter_map(|path| path.to_str()).collect();
        match texts.as_slice() {
            [] => unless_absent(fs::remove_file(&self.file))?,
            texts => replace_file(&self.file, &serde_json::to_vec(texts)?)?,
        }
        *noted = changed;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use tempfile::TempDir;

    use super::*;

    struct Harness {
        data: TempDir,
        outside: TempDir,
        files: ClientFiles,
    }

    fn harness() -> Harness {
        let (data, outside) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let files = ClientFiles::open(data.path(), data.path().join("unfinished.json")).unwrap();
        Harness { data, outside, files }
    }

    impl Harness {
        fn write(&self, file: &Path, folders: &Folders) -> Result<()> {
            let ours = |former: &File| Ok(former.metadata()?.len() == 4);
            self.files.replace(file, folders, ours, |file| Ok(file.write_all(b"ours")?))
        }

        fn refused(&self, file: &Path, folders: &Folders) -> [String; 2] {
            let read = self.files.read(file, folders).map(drop);
            [read, self.write(file, folders)].map(|result| result.unwrap_err().to_string())
        }
    }

    #[test]
    fn a_clients_file_is_written_for_the_owner_alone_and_replaced_only_if_recognised() {
        let harness = harness();
        let file = harness.outside.path().join("file");
        for _ in 0..2 {
            harness.write(&file, &None).unwrap();
            assert_eq!(fs::read(&file).unwrap(), b"ours");
            assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        }
        fs::write(&file, "theirs").unwrap();
        assert!(matches!(harness.write(&file, &None), Err(ClientFileError::OtherFile)));
        assert_eq!(fs::read(&file).unwrap(), b"theirs");
        assert_eq!(fs::read_dir(harness.outside.path()).unwrap().count(), 1);
        assert_eq!(fs::read_dir(harness.data.path()).unwrap().count(), 0, "no note is left");
    }

    #[test]
    fn a_clients_file_is_written_even_if_it_cannot_be_noted() {
        let harness = harness();
        fs::create_dir_all(harness.data.path().join("unfinished.json/folder")).unwrap();
        harness.write(&harness.outside.path().join("file"), &None).unwrap();
    }

    #[test]
    fn a_clients_file_never_lies_in_the_data_directory() {
        let harness = harness();
        fs::create_dir(harness.data.path().join("wallets")).unwrap();
        fs::write(harness.data.path().join("load.json"), "ours").unwrap();
        let outside =
            harness.outside.path().join("..").join(harness.data.path().file_name().unwrap()).join("load.json");
        for file in [harness.data.path().join("load.json"), harness.data.path().join("wallets/new"), outside] {
            assert_eq!(harness.refused(&file, &None), ["it lies in the data directory"; 2], "{}", file.display());
        }
        symlink(harness.data.path(), harness.outside.path().join("link")).unwrap();
        let through = harness.outside.path().join("link/load.json");
        assert_eq!(harness.refused(&through, &None), ["it lies in the data directory"; 2]);
    }

    #[test]
    fn a_clients_file_is_not_reached_through_a_symbolic_link() {
        let harness = harness();
        let outside = harness.outside.path();
        fs::create_dir(outside.join("folder")).unwrap();
        fs::write(outside.join("folder/file"), "ours").unwrap();
        symlink(outside.join("folder"), outside.join("link")).unwrap();
        symlink(outside.join("folder/file"), outside.join("folder/other")).unwrap();
        for file in ["link/file", "link/new", "folder/other"] {
            let refused = harness.write(&outside.join(file), &None);
            assert!(matches!(refused, Err(ClientFileError::SymbolicLink)), "{file}");
        }
        assert!(matches!(harness.files.read(&outside.join("folder/other"), &None), Err(ClientFileError::SymbolicLink)));
        assert!(matches!(harness.write(&outside.join("folder"), &None), Err(ClientFileError::NotAFile)));
    }

    #[test]
    fn a_users_files_lie_in_the_folders_that_are_named() {
        let harness = harness();
        let outside = harness.outside.path();
        fs::create_dir(outside.join("allowed")).unwrap();
        fs::create_dir(outside.join("allowed-not")).unwrap();
        let folders: Folders = Some(Arc::from([outside.join("allowed")]));
        harness.write(&outside.join("allowed/file"), &folders).unwrap();
        harness.files.read(&outside.join("allowed/file"), &folders).unwrap();
        for file in ["file", "allowed-not/file", "allowed/../file"] {
            let refused = harness.write(&outside.join(file), &folders);
            assert!(matches!(refused, Err(ClientFileError::NotAllowed)), "{file}");
        }
        let nowhere: Folders = Some(Arc::from([]));
        assert!(matches!(harness.write(&outside.join("allowed/file"), &nowhere), Err(ClientFileError::NotAllowed)));
    }

    #[test]
    fn client_files_that_a_kill_left_unfinished_are_removed_at_the_start() {
        let harness = harness();
        let notes = harness.data.path().join("unfinished.json");
        let left = harness.outside.path().join("backup.1-0.unfinished");
        let other = harness.outside.path().join("other");
        fs::write(&left, "half").unwrap();
        fs::write(&other, "whole").unwrap();
        harness.files.unfinished.note(&left).unwrap();
        harness.files.unfinished.note(&other).unwrap();
        ClientFiles::open(harness.data.path(), notes.clone()).unwrap();
        assert!(!left.exists() && other.exists() && !notes.exists());
    }
}
