//! Creates files atomically: writes a new file in another folder, then renames it. If the process is killed, the
//! previous state remains.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::Path;
use std::time::Duration;

use heed::RwTxn;

use super::environment::{DATA_FILE, Environment, Opening};
use super::error::StoreError;
use super::table::{PROGRAM, Table};

/// The folder in which a data file is created. If a killed process leaves the folder behind, the next creation removes
/// it.
pub const MAKING: &str = "data.mdb.making";
/// How long to wait until an unused environment is closed.
const CLOSING_PATIENCE: Duration = Duration::from_secs(10);
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Creates an environment in a folder that has none, filled by `fill`, atomically.
pub fn make<E: From<StoreError>>(
    folder: &Path,
    opening: &Opening,
    fill: impl FnOnce(&Environment, &mut RwTxn<'_>) -> Result<(), E>,
) -> Result<(), E> {
    make_by(folder, |making| {
        let env = Environment::open(making, opening)?;
        let mut txn = env.write()?;
        fill(&env, &mut txn)?;
        txn.commit().map_err(StoreError::from)?;
        env.sync()?;
        let closing = env.closing();
        drop(env);
        // A timeout does not matter: the file is complete.
        closing.wait_timeout(CLOSING_PATIENCE);
        Ok(())
    })
}

/// Creates a file by `fill` in another folder, then moves it into place atomically. `fill` must close the file before it
/// returns.
pub fn make_by<E: From<StoreError>>(folder: &Path, fill: impl FnOnce(&Path) -> Result<(), E>) -> Result<(), E> {
    finish(folder).map_err(StoreError::from)?;
    let making = folder.join(MAKING);
    DirBuilder::new().mode(0o700).create(&making).map_err(StoreError::from)?;
    fill(&making).inspect_err(|_| {
        // This may fail on a full disk. The next creation removes the rest.
        let _ = finish(folder);
    })?;
    take_place(&making, folder).map_err(StoreError::from)?;
    Ok(())
}

/// Cleans up after a kill: overwrites an unfinished file, since it may contain keys, and removes it.
pub fn finish(folder: &Path) -> io::Result<()> {
    let making = folder.join(MAKING);
    overwrite(&making.join(DATA_FILE))?;
    match fs::remove_dir_all(&making) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Stores the program's version in a new file.
pub fn sign(meta: Table, txn: &mut RwTxn<'_>) -> Result<(), StoreError> {
    meta.put(txn, PROGRAM, VERSION.as_bytes())
}

fn take_place(making: &Path, folder: &Path) -> io::Result<()> {
    fs::rename(making.join(DATA_FILE), folder.join(DATA_FILE))?;
    File::open(folder)?.sync_all()?;
    fs::remove_dir_all(making)
}

/// Overwrites a file before its removal. If the process is killed meanwhile, the file remains for the next attempt. A
/// file with other hard links is not overwritten.
fn overwrite(path: &Path) -> io::Result<()> {
    match path.symlink_metadata() {
        Ok(metadata) if metadata.is_file() && metadata.nlink() == 1 => wipe(OpenOptions::new().write(true).open(path)?),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn wipe(mut file: File) -> io::Result<()> {
    let length = file.metadata()?.len();
    io::copy(&mut io::Read::take(io::repeat(0), length), &mut file)?;
    file.flush()?;
    file.sync_all()
}
