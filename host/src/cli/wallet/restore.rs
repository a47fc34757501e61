//! `outrigger wallet restore`: restores a wallet from a backup, or only prints the backup's contents.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;
use outrigger_wallet_engine::{WalletContents, check_file};
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::error::MoveError;
use super::side::Side;
use crate::backups::folder::{Unfinished, wallet_of};
use crate::backups::sealed;
use crate::cli::call::place::HostAt;
use crate::cli::call::terminal::at_signal;
use crate::config::path_argument;

/// The folder of a decrypted backup while the host reads it, in memory if the system has this folder. Hosts refuse clients' files in the
/// data directory.
const MEMORY: &str = "/dev/shm";

#[derive(Args)]
pub struct Restore {
    /// The backup. It may be encrypted with age.
    #[arg(value_parser = path_argument())]
    file: PathBuf,
    /// Prints the backup's contents, and restores nothing. No host needs to run.
    #[arg(long)]
    dry_run: bool,
    /// The file with the identity for a backup that is encrypted with age.
    #[arg(long, value_name = "FILE", value_parser = path_argument())]
    identity: Option<PathBuf>,
    /// The name of the new wallet.
    #[arg(long, value_name = "NAME", required_unless_present = "dry_run")]
    r#as: Option<String>,
    #[command(flatten)]
    at: HostAt,
}

impl Restore {
    /// Restores the wallet, or reads the backup. Returns the report.
    pub fn run(&self) -> Result<String, MoveError> {
        let path = self.file.as_path();
        let in_file = |error: &dyn std::fmt::Display| MoveError::Backup(format!("{}: {error}", path.display()));
        let file = File::open(path).map_err(|error| in_file(&error))?;
        let is_sealed = sealed::is_sealed(&file).map_err(|error| in_file(&error))?;
        let mut decrypted = None;
        if is_sealed {
            let Some(identity) = &self.identity else {
                return Err(in_file(&"it is encrypted with age: name the file with the identity by --identity"));
            };
            let mut plain = decrypted_file()?;
            if self.dry_run {
                // Nobody else reads it. Without a name, not even a kill leaves it behind.
                std::fs::remove_file(plain.path())?;
            }
            sealed::open(&file, identity, &mut plain.file).map_err(|error| in_file(&error))?;
            decrypted = Some(plain);
        }
        let plain = decrypted.as_ref().map_or(&file, |plain| &plain.file);
        if self.dry_run {
            return report(&file, plain, path, is_sealed);
        }
        check_file(plain, path).map_err(|error| in_file(&error))?;
        let readable = decrypted.as_ref().map_or(path, Unfinished::path);
        let host = Side::new("the host", self.at.connect(None, None)?);
        let name = self.r#as.as_deref().unwrap_or_default();
        host.ask::<Value>("restorewallet", &json!([name, readable.canonicalize()?]))?;
        Ok(format!("restored as the wallet \"{name}\""))
    }
}

/// A file that only its owner can read. A signal also removes it.
fn decrypted_file() -> Result<Unfinished, MoveError> {
    let folder = Some(PathBuf::from(MEMORY)).filter(|memory| memory.is_dir()).unwrap_or_else(std::env::temp_dir);
    let in_folder = |error: io::Error| MoveError::Backup(format!("{}: {error}", folder.display()));
    let unfinished = Unfinished::create(&folder, &format!("outrigger-{}", std::process::id())).map_err(in_folder)?;
    let path = unfinished.path().to_owned();
    at_signal(move || drop(std::fs::remove_file(path)))?;
    Ok(unfinished)
}

/// A time in RFC 3339.
fn utc(time: SystemTime) -> String {
    let second = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let time = i64::try_from(second).ok().and_then(|second| OffsetDateTime::from_unix_timestamp(second).ok());
    time.and_then(|time| time.format(&Rfc3339).ok()).unwrap_or_else(|| second.to_string())
}

/// The contents of a backup. If it is damaged, the error has the readable part.
fn report(file: &File, plain: &File, path: &Path, is_sealed: bool) -> Result<String, MoveError> {
    let yes = |is: bool| if is { "yes" } else { "no" };
    let damage = check_file(plain, path).err();
    let mut lines = Vec::new();
    if let Some(name) = wallet_of(path) {
        lines.push(format!("name: {name}"));
    }
    let written = utc(file.metadata()?.modified()?);
    let contents = WalletContents::of_file(plain, path);
    if let Ok(contents) = &contents {
        let descriptors = contents.descriptors.iter().map(|one| {
            let [begin, end] = one.range;
            let active = if one.active { ", active" } else { "" };
            let change = if one.internal { ", change" } else { "" };
            format!("  {}, indexes {begin} to {end}, next {}{active}{change}", one.text, one.next_index)
        });
        lines.extend([
            format!("network: {}", contents.chain),
            format!(
                "height: {} (block {} of {})",
                contents.height,
                contents.block,
                utc(UNIX_EPOCH + Duration::from_secs(contents.time.into()))
            ),
            format!("written: {written}"),
            format!("private keys: {}", yes(contents.private_keys)),
            format!("encrypted with a passphrase: {}", yes(contents.encrypted)),
            format!("encrypted with age: {}", yes(is_sealed)),
            format!("transactions: {}", contents.transactions()),
            format!("descriptors: {}", contents.descriptors.len()),
        ]);
        lines.extend(descriptors);
    }
    match damage.or(contents.err()) {
        None => {
            lines.push("damage: none".to_owned());
            Ok(lines.join("\n"))
        }
        Some(damage) => {
            lines.push(format!("damage: {damage}"));
            Err(MoveError::Backup(lines.join("\n")))
        }
    }
}
