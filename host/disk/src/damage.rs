//! The damage found in open files. The host stops writing to a damaged file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::Mutex;

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "the file {} is damaged: table {table:?} at {place}. The host stops writing to it: restore a backup, or create it again",
    file.display()
)]
pub struct Damage {
    pub file: PathBuf,
    pub table: &'static str,
    /// The row's key, in hexadecimal, or a description.
    pub place: String,
}

/// Identifies an open file. Each of its tables has a copy.
#[derive(Clone, Copy, Debug)]
pub struct FileNumber(u32);

struct Open {
    path: PathBuf,
    damage: Option<Damage>,
}

static NEXT: AtomicU32 = AtomicU32::new(0);
static OPEN: Mutex<BTreeMap<u32, Open>> = Mutex::new(BTreeMap::new());

/// An entry in the list of open files, removed on drop.
pub struct OpenFile(FileNumber);

impl OpenFile {
    pub fn enter(path: &Path) -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        OPEN.lock().insert(number, Open { path: path.to_owned(), damage: None });
        Self(FileNumber(number))
    }

    pub fn number(&self) -> FileNumber {
        self.0
    }

    /// The first damage found.
    pub fn damage(&self) -> Option<Damage> {
        OPEN.lock().get(&self.0.0).and_then(|file| file.damage.clone())
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        OPEN.lock().remove(&self.0.0);
    }
}

impl FileNumber {
    /// Records damage, and logs it if it is the first of the file.
    pub fn damaged(self, table: &'static str, place: String) -> Damage {
        let mut files = OPEN.lock();
        let Some(file) = files.get_mut(&self.0) else { return Damage { file: PathBuf::new(), table, place } };
        let damage = Damage { file: file.path.clone(), table, place };
        if file.damage.is_none() {
            file.damage = Some(damage.clone());
            drop(files);
            tracing::error!("{damage}");
        }
        damage
    }
}
