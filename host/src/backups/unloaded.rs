//! Copies of wallets that were unloaded while a backup was due. The host copies before it closes the file, so that a wallet can be
//! loaded again or removed while its backup is written.

use std::collections::BTreeMap;
use std::io;
use std::ops::RangeBounds;
use std::path::Path;

use outrigger_wallet_engine::Wallet;
use parking_lot::Mutex;

use super::folder::Unfinished;
use super::{BackupError, Copied, Kind, Source, check};

/// The most copies that wait for the disk of the backups.
const MAX_COPIES: usize = 16;
/// The prefix of the copies' file names.
const COPY: &str = "unloaded";

#[derive(Default)]
pub struct Unloaded(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    /// By their number.
    copies: BTreeMap<u64, (Source, Copied)>,
    /// The number of the last copy.
    last: u64,
}

impl Unloaded {
    /// Copies a wallet to the folder `data` if its last backup lacks keys.
    pub fn add(&self, wallet: &Wallet, data: &Path) {
        if let Err(error) = self.copy(wallet, data) {
            let name = wallet.name();
            tracing::error!(name, %error, "the wallet is unloaded without a backup of its last keys");
        }
    }

    fn copy(&self, wallet: &Wallet, data: &Path) -> Result<(), BackupError> {
        if !wallet.needs_backup()? {
            return Ok(());
        }
        let number = {
            let mut waiting = self.0.lock();
            if waiting.copies.len() >= MAX_COPIES {
                return Err(io::Error::other("too many others wait for the disk of the backups").into());
            }
            waiting.last += 1;
            waiting.last
        };
        let mut file = Unfinished::create(data, &format!("{COPY}-{number}"))?;
        let contents = wallet.copy_out(&mut file.file)?;
        let (changes, expected) = (contents.changes, check::text(&contents));
        let source = Source { kind: Kind::Wallet, name: wallet.name().to_owned() };
        self.put(number, source, Copied { file, changes, expected, wallet: None, failed: None });
        Ok(())
    }

    /// The numbers of the copies that wait, the oldest first.
    pub fn numbers(&self) -> Vec<u64> {
        self.0.lock().copies.keys().copied().collect()
    }

    /// Takes a copy, which [`Self::put`] puts back.
    pub fn take(&self, number: u64) -> Option<(Source, Copied)> {
        self.0.lock().copies.remove(&number)
    }

    pub fn put(&self, number: u64, source: Source, copied: Copied) {
        self.0.lock().copies.insert(number, (source, copied));
    }

    /// Whether a copy of a source with a number in `range` waits.
    pub fn has(&self, source: &Source, range: impl RangeBounds<u64>) -> bool {
        self.0.lock().copies.range(range).any(|(_, (waiting, _))| waiting == source)
    }
}
