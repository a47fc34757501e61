//! The backups of one wallet or store: files `NUMBER-CHANGES-TIME.mdb` in a folder, plus `.age` if encrypted.
//!
//! A file with this form of name is complete and checked: the host writes it under a temporary name, and renames it at the end.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::ops::Range;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use bitcoin::hashes::{Hash as _, sha256};
use outrigger_base::client_files::UNFINISHED;
use outrigger_base::replace::create_private;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::audit::now;

/// How many characters of the date and time are in a file's name.
const TIME_LEN: usize = 15;
/// The ending of a file that is not encrypted.
const PLAIN: &str = ".mdb";
/// The longest escaped name of a folder, in bytes. Most systems allow 255.
const MAX_ESCAPED: usize = 200;
/// The characters that are escaped in the name of a folder. Dots are among them, so that no name means another folder.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_');
/// The folder of the wallet whose name is empty.
const NAMELESS: &str = "%";

/// A complete backup.
#[derive(Clone, Debug)]
pub struct Kept {
    pub path: PathBuf,
    number: u64,
    /// The number of the wallet's changes that it contains.
    pub changes: u64,
    /// The time in the file's name. The time that the file system records may come from another machine's clock.
    pub time: SystemTime,
}

impl Kept {
    /// The time of the backup, in seconds since the Unix epoch.
    pub fn seconds(&self) -> u64 {
        self.time.duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
    }
}

/// The name of the folder of a wallet or plugin.
pub fn folder_name(name: &str) -> String {
    let escaped = utf8_percent_encode(name, ESCAPED).to_string();
    match escaped.len() {
        0 => NAMELESS.to_owned(),
        1..=MAX_ESCAPED => escaped,
        _ => format!("%{}", sha256::Hash::hash(name.as_bytes())),
    }
}

/// The name of the wallet whose backup has this path; `None` if the path is not a backup's, or has a hash in place of a long name.
pub fn wallet_of(path: &Path) -> Option<String> {
    parts(path.file_name()?.to_str()?)?;
    let folder = path.parent()?.file_name()?.to_str()?;
    let name = percent_decode_str(if folder == NAMELESS { "" } else { folder }).decode_utf8().ok()?;
    (folder_name(&name) == folder).then(|| name.into_owned())
}

/// The backups in a folder, the oldest first. Empty if the folder does not exist.
pub fn kept(folder: &Path) -> io::Result<Vec<Kept>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut kept = Vec::new();
    for entry in entries {
        let entry = entry?;
        let Some((number, changes, time)) = entry.file_name().to_str().and_then(parts) else { continue };
        kept.push(Kept { path: entry.path(), number, changes, time });
    }
    kept.sort_by_key(|one| one.number);
    Ok(kept)
}

/// Number, changes and time in the name of a backup; `None` in another name.
fn parts(name: &str) -> Option<(u64, u64, SystemTime)> {
    let parts = name.strip_suffix(".age").unwrap_or(name).strip_suffix(PLAIN)?;
    let [number, changes, time] = parts.split('-').collect::<Vec<_>>().try_into().ok()?;
    let number_of = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten();
    let part = |range: Range<usize>| time.get(range).unwrap_or_default();
    let (date, clock) = ([0..4, 4..6, 6..8].map(part).join("-"), [9..11, 11..13, 13..15].map(part).join(":"));
    let parsed = OffsetDateTime::parse(&format!("{date}T{clock}Z"), &Rfc3339).ok()?;
    (time.len() == TIME_LEN && part(8..9) == "T").then_some(())?;
    Some((number_of(number)?, number_of(changes)?, parsed.into()))
}

/// Makes a folder below `base`, which must exist, and its parents. Only the owner may use the new folders (mode 0700).
///
/// # Errors
/// `base` is missing, or the folder cannot be made.
pub fn make(base: &Path, folder: &Path) -> io::Result<()> {
    if !base.is_dir() {
        return Err(io::Error::new(io::ErrorKind::NotFound, format!("the folder {} is missing", base.display())));
    }
    let mut path = base.to_owned();
    for part in folder.strip_prefix(base).map_err(io::Error::other)? {
        let above = File::open(&path)?;
        path.push(part);
        match DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            Err(_) => {}
            Ok(()) => above.sync_all()?,
        }
    }
    Ok(())
}

/// Removes the unfinished files that a killed host left in a folder.
pub fn remove_unfinished(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.as_os_str().as_encoded_bytes().ends_with(UNFINISHED.as_bytes()) {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

/// A backup that is being written. Drop removes the file, unless [`Unfinished::finish`] has renamed it.
pub struct Unfinished {
    pub file: File,
    path: PathBuf,
}

impl Unfinished {
    /// Creates a file that only the owner may use (mode 0600). Replaces an unfinished file of the same name.
    pub fn create(folder: &Path, name: &str) -> io::Result<Self> {
        let path = folder.join(format!("{name}{UNFINISHED}"));
        Ok(Self { file: create_private(&path)?, path })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the file again by its path, for reading.
    pub fn reopen(&self) -> io::Result<File> {
        File::open(&self.path)
    }

    /// Syncs the file, and renames it as the newest backup of its folder.
    ///
    /// # Errors
    /// The file cannot be synced or renamed: for example, the disk is full, or the folder is gone.
    pub fn finish(self, changes: u64, is_encrypted: bool) -> io::Result<Kept> {
        self.file.sync_all()?;
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        let number = kept(folder)?.last().map_or(1, |last| last.number.saturating_add(1));
        let ending = if is_encrypted { ".age" } else { "" };
        let time: String = now().chars().filter(char::is_ascii_alphanumeric).take(TIME_LEN).collect();
        let name = format!("{number:06}-{changes}-{time}{PLAIN}{ending}");
        let (.., time) = parts(&name).ok_or_else(|| io::Error::other("the system's time is no date"))?;
        let path = folder.join(name);
        fs::rename(&self.path, &path)?;
        File::open(folder)?.sync_all()?;
        Ok(Kept { path, number, changes, time })
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // This fails after `finish`, which has renamed the file.
        let _ = fs::remove_file(&self.path);
    }
}

/// Removes all backups of a folder but the newest `keep`. The newest one always stays.
pub fn prune(folder: &Path, keep: usize) -> io::Result<()> {
    let kept = kept(folder)?;
    let surplus = kept.len().saturating_sub(keep.max(1));
    kept.iter().take(surplus).try_for_each(|one| fs::remove_file(&one.path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_two_names_differ_and_stay_below() {
        let long = "w".repeat(300);
        let names = ["", "%", ".", "..", "a/b", "a%2Fb", "A", "wallet", &long, &format!("{long}x")];
        let folders: std::collections::BTreeSet<String> = names.iter().map(|name| folder_name(name)).collect();
        assert_eq!(folders.len(), names.len(), "{folders:?}");
        let wallet =
            |name: &str| wallet_of(&Path::new("/b").join(folder_name(name)).join("000001-3-20261129T010203.mdb.age"));
        assert!(names.iter().all(|name| wallet(name).is_none_or(|found| found == **name)));
        assert_eq!((wallet("a/b").as_deref(), wallet("").as_deref(), wallet(&long)), (Some("a/b"), Some(""), None));
        assert!(folders.iter().all(|name| !name.contains(['/', '.']) && name.len() <= MAX_ESCAPED), "{folders:?}");
    }

    #[test]
    fn the_newest_stay_and_half_a_file_never_counts() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("regtest/wallets/w");
        assert!(kept(&folder).unwrap().is_empty());
        make(place.path(), &folder).unwrap();
        for changes in 1..=12 {
            Unfinished::create(&folder, "copy").unwrap().finish(changes, changes % 2 == 0).unwrap();
            prune(&folder, 10).unwrap();
        }
        let changes = || kept(&folder).unwrap().iter().map(|one| one.changes).collect::<Vec<_>>();
        assert_eq!(changes(), (3..=12).collect::<Vec<_>>());
        drop(Unfinished::create(&folder, "copy").unwrap());
        std::mem::forget(Unfinished::create(&folder, "copy").unwrap());
        for other in ["notes", "000020-3-old.mdb", "000020-3-20261329T010203.mdb", "+20-3-20261129T010203.mdb"] {
            fs::write(folder.join(other), "").unwrap();
        }
        assert_eq!((kept(&folder).unwrap().len(), fs::read_dir(&folder).unwrap().count()), (10, 15));
        remove_unfinished(&folder).unwrap();
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 14);
        prune(&folder, 0).unwrap();
        assert_eq!(changes(), [12], "the last one stays");
        // A server's clock that is ahead does not make a backup newer.
        let (last, hour) = (kept(&folder).unwrap().remove(0), std::time::Duration::from_secs(3600));
        File::options().write(true).open(&last.path).unwrap().set_modified(SystemTime::now() + hour).unwrap();
        assert_eq!(kept(&folder).unwrap()[0].time, last.time);
        assert!(last.time <= SystemTime::now());
        fs::remove_dir_all(place.path()).unwrap();
        assert!(make(place.path(), &folder).unwrap_err().to_string().contains("is missing"));
        assert!(!place.path().exists());
    }
}
