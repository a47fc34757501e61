//! Files that are made beside where they belong, and take their place as a whole: a kill leaves what was there before.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use heed::RwTxn;

use super::environment::{DATA_FILE, Environment, Opening};
use super::examine::PROGRAM;
use super::table::{Table, TableError};

/// The folder in which a file is made. What a kill left there is removed before the next one is made.
pub const MAKING: &str = "data.mdb.making";
/// How long the end of an environment is waited for, of which nothing is in use.
const CLOSING_PATIENCE: Duration = Duration::from_secs(10);
/// The version of this program.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Why a file could not be made.
#[derive(Debug, thiserror::Error)]
pub enum MakeError {
    /// The new one cannot be written.
    #[error("{0}")]
    Table(#[from] TableError),
    /// The folder cannot be changed.
    #[error("{0}")]
    File(#[from] io::Error),
}

impl From<heed::Error> for MakeError {
    fn from(error: heed::Error) -> Self {
        Self::Table(error.into())
    }
}

/// Makes the tables of a folder that has none, and what `fill` writes into them, all or nothing.
///
/// # Errors
/// When they cannot be made; what `fill` says.
pub fn make<E: From<MakeError>>(
    folder: &Path,
    opening: &Opening,
    fill: impl FnOnce(&Environment, &mut RwTxn<'_>) -> Result<(), E>,
) -> Result<(), E> {
    make_by(folder, |making| make_in(making, opening, fill))
}

/// Has a file made in another folder, which is given to `fill`, and moves it into its place, all or nothing. Nobody may have it
/// open any more when `fill` returns.
///
/// # Errors
/// When the folders cannot be changed; what `fill` says.
pub fn make_by<E: From<MakeError>>(folder: &Path, fill: impl FnOnce(&Path) -> Result<(), E>) -> Result<(), E> {
    let making = make_beside(folder, fill)?;
    take_place(&making, folder).map_err(MakeError::File)?;
    Ok(())
}

/// Has a file made in a folder of its own below `folder`. Gives that one's path.
fn make_beside<E: From<MakeError>>(folder: &Path, fill: impl FnOnce(&Path) -> Result<(), E>) -> Result<PathBuf, E> {
    finish(folder).map_err(MakeError::File)?;
    let making = folder.join(MAKING);
    DirBuilder::new().mode(0o700).create(&making).map_err(MakeError::File)?;
    let made = fill(&making);
    if made.is_err() {
        // It may be that which the disk has no room for. What stays is removed by the next one.
        let _ = finish(folder);
    }
    made.map(|()| making)
}

fn make_in<E: From<MakeError>>(
    making: &Path,
    opening: &Opening,
    fill: impl FnOnce(&Environment, &mut RwTxn<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let env = Environment::open(making, opening).map_err(MakeError::Table)?;
    let mut txn = env.write().map_err(MakeError::Table)?;
    fill(&env, &mut txn)?;
    txn.commit().map_err(MakeError::from)?;
    env.sync().map_err(MakeError::Table)?;
    env.closing_now();
    Ok(())
}

/// Ends what a kill has interrupted in a folder: a file that was being made is overwritten, since keys may be in it, and removed.
///
/// # Errors
/// When it cannot be removed.
pub fn finish(folder: &Path) -> io::Result<()> {
    let making = folder.join(MAKING);
    overwrite(&making.join(DATA_FILE))?;
    match fs::remove_dir_all(&making) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Notes which version of the program made a file.
///
/// # Errors
/// As of all writing.
pub fn sign(meta: Table, txn: &mut RwTxn<'_>) -> Result<(), TableError> {
    meta.put(txn, PROGRAM, VERSION.as_bytes())
}

fn take_place(making: &Path, folder: &Path) -> io::Result<()> {
    fs::rename(making.join(DATA_FILE), folder.join(DATA_FILE))?;
    File::open(folder)?.sync_all()?;
    fs::remove_dir_all(making)
}

/// Overwrites a file that is about to lose its name, if there is one: a kill before the end leaves it to be found. One that has
/// other names stays as it is.
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

impl Environment {
    /// Closes an environment that nobody else has.
    fn closing_now(self) {
        let closing = self.closing();
        drop(self);
        // Nothing is done differently where it takes longer: the file is whole.
        closing.wait_timeout(CLOSING_PATIENCE);
    }
}
