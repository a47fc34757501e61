//! Which of the open files were found to be damaged: nothing more is written to them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use parking_lot::{Mutex, MutexGuard};

/// What stands in a file is not what was written.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "the file {} is damaged: table {table:?} at {place}. Nothing more is written to it; bring back a backup, or make it anew",
    file.display()
)]
pub struct Damage {
    pub file: PathBuf,
    pub table: &'static str,
    /// The row's key, in hexadecimal, or what was met instead of a row.
    pub place: String,
}

/// The number of an open file, for tables that are copied about.
#[derive(Clone, Copy, Debug)]
pub struct FileNumber(u32);

/// An open file.
struct Open {
    path: PathBuf,
    damage: Option<Damage>,
}

static NEXT: AtomicU32 = AtomicU32::new(0);
static OPEN: Mutex<BTreeMap<u32, Open>> = Mutex::new(BTreeMap::new());
/// How many of the open files are damaged. Asked before the list is locked, since nearly always it is none.
static DAMAGED: AtomicUsize = AtomicUsize::new(0);

fn open() -> MutexGuard<'static, BTreeMap<u32, Open>> {
    OPEN.lock()
}

/// An entry of the list of open files; taken off when this is dropped.
pub struct OpenFile(FileNumber);

impl OpenFile {
    /// Enters a file.
    pub fn enter(path: &Path) -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        open().insert(number, Open { path: path.to_owned(), damage: None });
        Self(FileNumber(number))
    }

    pub fn number(&self) -> FileNumber {
        self.0
    }

    /// What was found in it first; none while nothing was.
    pub fn damage(&self) -> Option<Damage> {
        if DAMAGED.load(Ordering::Acquire) == 0 {
            return None;
        }
        open().get(&self.0.0).and_then(|file| file.damage.clone())
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        if open().remove(&self.0.0).is_some_and(|file| file.damage.is_some()) {
            DAMAGED.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

impl FileNumber {
    /// Damage was met in it. Logged once for each file.
    pub fn damaged(self, table: &'static str, place: String) -> Damage {
        let mut files = open();
        let Some(file) = files.get_mut(&self.0) else { return Damage { file: PathBuf::new(), table, place } };
        let damage = Damage { file: file.path.clone(), table, place };
        if file.damage.is_none() {
            file.damage = Some(damage.clone());
            DAMAGED.fetch_add(1, Ordering::AcqRel);
            drop(files);
            tracing::error!("{damage}");
        }
        damage
    }
}
