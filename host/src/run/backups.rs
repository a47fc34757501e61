//! Checks the backup settings, and starts the backups.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use outrigger_isolate::Executable;
use outrigger_services::Stores;
use outrigger_wallet_engine::WalletManager;
use rustix::fs::{Access, access};

use super::RunError;
use super::lock::is_locked;
use crate::backups::check::COMMAND;
use crate::backups::{BackupError, Backups, Figures};
use crate::config::{ConfigError, LoadedConfig};

/// The folder of the backups; `None` without `backup.folder`. `data` is the network's data folder.
///
/// # Errors
/// The folder does not exist, is in the data directory, or is not writable.
pub fn folder(loaded: &LoadedConfig, data: &Path) -> Result<Option<PathBuf>, ConfigError> {
    let Some(folder) = &loaded.config.backup.folder else { return Ok(None) };
    let refuse = |reason: &dyn Display| refuse(loaded, reason);
    let path = folder.to_path_buf();
    let real = path.canonicalize().map_err(|error| refuse(&format_args!("the folder must exist: {error}")))?;
    let datadir = data.parent().and_then(|datadir| datadir.canonicalize().ok());
    if !real.is_dir() {
        return Err(refuse(&"it is not a folder"));
    }
    if datadir.is_some_and(|datadir| real.starts_with(datadir)) {
        return Err(refuse(&"it is in the data directory: a backup belongs on another disk"));
    }
    let network = path.join(loaded.folder_name());
    if network.exists() && !network.is_dir() {
        return Err(refuse(&format_args!("{} is not a folder", network.display())));
    }
    let written = if network.exists() { &network } else { &path };
    let access = access(written, Access::WRITE_OK | Access::EXEC_OK);
    access.map_err(|error| {
        let (folder, error) = (written.display(), io::Error::from(error));
        refuse(&format_args!(
            "the host cannot write to {folder}: {error} (in a systemd unit, ReadWritePaths allows it)"
        ))
    })?;
    Ok(Some(path))
}

/// Checks that no other host makes backups in the folder.
pub fn check_unused(loaded: &LoadedConfig, data: &Path) -> Result<(), ConfigError> {
    let Some(base) = folder(loaded, data)? else { return Ok(()) };
    let folder = base.join(loaded.folder_name());
    match is_locked(&folder) {
        true => Err(refuse(loaded, &BackupError::InUse(folder))),
        false => Ok(()),
    }
}

fn refuse(loaded: &LoadedConfig, reason: &dyn Display) -> ConfigError {
    loaded.error("backup.folder", "", reason.to_string())
}

/// Starts the thread that makes backups. Returns their figures and `backup.every`; `None` without backups.
pub fn start(
    loaded: &LoadedConfig,
    data: &Path,
    manager: &Arc<WalletManager>,
    stores: &Arc<Stores>,
    executable: Arc<Executable>,
) -> Result<Option<(Figures, u64)>, RunError> {
    let Some(base) = folder(loaded, data)? else { return Ok(None) };
    let config = &loaded.config.backup;
    let recipient = config.recipient().map_err(|reason| loaded.error("backup.recipient", "", reason))?;
    let figures = Figures::default();
    let backups = Backups {
        manager: manager.clone(),
        stores: stores.clone(),
        checker: Box::new(move || executable.own_command(COMMAND)),
        base,
        network: loaded.folder_name(),
        data: data.join("wallets"),
        every: Duration::from_secs(config.every),
        keep: usize::try_from(config.keep).unwrap_or(usize::MAX),
        recipient,
        figures: figures.clone(),
    };
    backups.start().map_err(|error| refuse(loaded, &error))?;
    Ok(Some((figures, config.every)))
}
