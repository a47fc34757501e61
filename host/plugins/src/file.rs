//! A plugin's file: found, read without executing it, copied to a file named by its hash, and only then opened.
//!
//! Opening a library runs its constructors. So the host first checks that the file is an object file with a manifest, and
//! that its ABI fits. The host opens the copy, so that nobody can replace the content after the check, and so that a new
//! version can be loaded beside an old one.
use std::ffi::OsStr;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use bitcoin::hashes::{Hash, sha256};
use object::{Object, ObjectSection, ObjectSymbol};
use outrigger_abi::{ABI_MAJOR, ABI_MINOR, MANIFEST_HEADER_LEN, ManifestHeader, PluginTable};
use outrigger_isolate::library::{self, LibraryError};
use outrigger_sdk::manifest::{Manifest, ManifestError};
use outrigger_values::text::printable;

use super::trust::{self, TrustError};

/// The largest file that is read as a plugin, in bytes.
const MAX_FILE_BYTES: u64 = 512 << 20;

const MAX_MANIFEST_BYTES: usize = 1 << 20;

const MANIFEST_SYMBOL: &str = "outrigger_manifest";

/// Why a file is not a plugin for this host.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// Not found under any of these paths.
    #[error("plugin '{name}' was not found; looked for {}{why}", list(.looked_for))]
    NotFound {
        name: String,
        looked_for: Vec<PathBuf>,
        /// Why the program's own copy is not used, as the end of the message; may be empty.
        why: &'static str,
    },
    /// The file cannot be read, or its copy cannot be written.
    #[error("{}: {source}", .path.display())]
    Io { path: PathBuf, source: std::io::Error },
    /// Its content is not a plugin for this host.
    #[error("{} {reason}", .path.display())]
    Refused { path: PathBuf, reason: String },
    #[error("{}: {source}", .path.display())]
    Manifest { path: PathBuf, source: ManifestError },
    /// Other users can change the file, or the folder of its copy.
    #[error(transparent)]
    Untrusted(#[from] TrustError),
    /// The content does not have the pinned hash.
    #[error("{} has the SHA-256 {found}, the configuration pins {pinned}", .path.display())]
    Hash { path: PathBuf, pinned: String, found: sha256::Hash },
}

fn list(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

/// A file that was read and checked, but not opened.
pub struct PluginFile {
    pub path: PathBuf,
    pub hash: sha256::Hash,
    /// The ABI that it was built for.
    pub header: ManifestHeader,
    pub manifest: Manifest,
    content: Vec<u8>,
    /// That of the file that was read, even if another file has replaced it at the path.
    metadata: fs::Metadata,
}

/// Whether a configured plugin is named by a path, not by a bare name.
pub fn is_path(name: &str) -> bool {
    name.contains(std::path::MAIN_SEPARATOR) || Path::new(name).extension() == Some(OsStr::new("so"))
}

/// The paths at which a configured plugin is searched for: a path unchanged, or for a bare name the library of that name
/// in each folder.
pub fn candidates(name: &str, folders: &[PathBuf]) -> Vec<PathBuf> {
    if is_path(name) {
        return vec![PathBuf::from(name)];
    }
    let library = format!("liboutrigger_{}{}", name.replace('-', "_"), std::env::consts::DLL_SUFFIX);
    folders.iter().map(|folder| folder.join(&library)).collect()
}

impl PluginFile {
    /// Reads the file and checks its manifest, without executing any of it.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let io = |source| FileError::Io { path: path.to_owned(), source };
        let refused = |reason| FileError::Refused { path: path.to_owned(), reason };
        let no_plugin = |reason: &str| refused(format!("is not an Outrigger plugin: {reason}"));
        // The metadata is that of the open file, even if the path is replaced meanwhile.
        let mut opened = fs::File::open(path).map_err(io)?;
        let metadata = opened.metadata().map_err(io)?;
        if !metadata.is_file() {
            return Err(no_plugin("it is not a regular file"));
        }
        let len = metadata.len();
        if len > MAX_FILE_BYTES {
            return Err(refused(format!("is too large for a plugin ({len} bytes; at most {MAX_FILE_BYTES})")));
        }
        let mut content = Vec::new();
        (&mut opened).take(MAX_FILE_BYTES).read_to_end(&mut content).map_err(io)?;
        let bytes = manifest_bytes(&content).map_err(|reason| no_plugin(&reason))?;
        let header = ManifestHeader::parse(bytes).ok_or_else(|| no_plugin("its manifest has no valid header"))?;
        if header.abi_major != ABI_MAJOR || header.abi_minor_needed > ABI_MINOR {
            let ManifestHeader { abi_major, abi_minor_needed, .. } = header;
            let needed = format!("needs plugin ABI {abi_major}.{abi_minor_needed}");
            return Err(refused(format!("{needed}, this host has {ABI_MAJOR}.{ABI_MINOR}")));
        }
        let json = bytes
            .get(MANIFEST_HEADER_LEN..)
            .and_then(|rest| rest.get(..usize::try_from(header.len).ok()?))
            .filter(|json| json.len() <= MAX_MANIFEST_BYTES)
            .ok_or_else(|| no_plugin("its manifest is truncated or too long"))?;
        let manifest = Manifest::parse(json).map_err(|source| FileError::Manifest { path: path.to_owned(), source })?;
        Ok(Self { path: path.to_owned(), hash: sha256::Hash::hash(&content), header, manifest, content, metadata })
    }

    /// Checks that no other user could have written the content: the file and every folder above it belong to root or
    /// to the host's user and are not writable by group or others (folders with the sticky bit may be).
    ///
    /// # Errors
    /// [`FileError::Untrusted`] names the file or folder.
    pub fn check_owner(&self) -> Result<(), FileError> {
        Ok(trust::check_file(&self.path, &self.metadata)?)
    }

    /// Checks the content against the configuration's `sha256`, 64 hexadecimal digits.
    pub fn check_pin(&self, pinned: &str) -> Result<(), FileError> {
        if pinned.eq_ignore_ascii_case(&self.hash.to_string()) {
            return Ok(());
        }
        Err(FileError::Hash { path: self.path.clone(), pinned: pinned.to_owned(), found: self.hash })
    }

    /// Copies the file into `folder` under its hash, opens the copy, and returns its table.
    ///
    /// The library is never closed: threads may still run destructors of its thread-locals.
    pub fn open(&self, folder: &Path) -> Result<&'static PluginTable, FileError> {
        let copy = self.copy_into(folder)?;
        let refused = |reason| FileError::Refused { path: self.path.clone(), reason };
        let no_plugin = |reason: &str| refused(format!("is not an Outrigger plugin: {reason}"));
        let table = library::open(&copy).map_err(|error| match error {
            LibraryError::Open(said) => refused(format!("cannot be opened: {}", printable(&said))),
            LibraryError::NoPlugin(reason) => no_plugin(reason),
        })?;
        if table.abi_major != self.header.abi_major || table.abi_minor_needed != self.header.abi_minor_needed {
            return Err(no_plugin("its function table and its manifest are of different ABI versions"));
        }
        // Like the library, the table is never freed: a thread may still run an abandoned instance.
        Ok(Box::leak(Box::new(table)))
    }

    /// Copies the file into `folder` under its hash.
    ///
    /// # Errors
    /// The copy cannot be written, or other users could change it.
    pub fn copy_into(&self, folder: &Path) -> Result<PathBuf, FileError> {
        trust::own_folder(folder)?;
        let copy = folder.join(format!("{}{}", self.hash, std::env::consts::DLL_SUFFIX));
        // If the folder was once writable to another user, that user may own a copy and could still change it.
        if trust::is_own_file(&copy) && fs::read(&copy).is_ok_and(|content| content == self.content) {
            return Ok(copy);
        }
        let partial = folder.join(format!("{}.{}.partial", self.hash, std::process::id()));
        // A read-only file from an interrupted start must be removed; usually there is none.
        let _ = fs::remove_file(&partial);
        let write = || {
            let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o500).open(&partial)?;
            file.write_all(&self.content)?;
            file.sync_all()?;
            fs::rename(&partial, &copy)
        };
        let written = write();
        if written.is_err() {
            let _ = fs::remove_file(&partial);
        }
        written.map(|()| copy).map_err(|source| FileError::Io { path: partial, source })
    }
}

/// The bytes from the manifest's symbol to the end of its section.
fn manifest_bytes(content: &[u8]) -> Result<&[u8], String> {
    let file = object::File::parse(content).map_err(|error| format!("it is not a shared library ({error})"))?;
    let symbol = file
        .dynamic_symbols()
        .find(|symbol| symbol.name() == Ok(MANIFEST_SYMBOL))
        .ok_or_else(|| format!("it exports no symbol {MANIFEST_SYMBOL}"))?;
    let missing = || format!("the data of {MANIFEST_SYMBOL} is missing");
    let section = symbol.section_index().and_then(|index| file.section_by_index(index).ok()).ok_or_else(missing)?;
    let offset = symbol.address().checked_sub(section.address()).ok_or_else(missing)?;
    let data = section.data().map_err(|_| missing())?;
    usize::try_from(offset).ok().and_then(|offset| data.get(offset..)).ok_or_else(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugin_file_names_become_libraries_and_paths_stay() {
        let folders = [PathBuf::from("/a"), PathBuf::from("/b")];
        let names: Vec<_> = candidates("acme-mining", &folders);
        assert!(names[1].ends_with("liboutrigger_acme_mining.so"), "{names:?}");
        assert_eq!(candidates("./x.so", &folders), [PathBuf::from("./x.so")]);
        let looked_for = candidates("nothing", &folders);
        let error = FileError::NotFound { name: "nothing".into(), looked_for, why: "" }.to_string();
        assert!(error.contains("'nothing'") && error.contains("/b/liboutrigger_nothing"), "{error}");
    }
}
