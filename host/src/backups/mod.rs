//! Backups of wallets and of the plugins' stores (`[backup]`). A thread makes them one at a time.
//!
//! A copy is checked in a process of its own before it counts ([`check`]), and gets its name only then ([`folder`]).

pub mod check;
pub mod folder;
pub mod sealed;
mod unloaded;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Seek as _};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant, SystemTime};

use age::x25519::Recipient;
use outrigger_services::{StoreFileError, Stores};
use outrigger_wallet_engine::{Wallet, WalletManager};
use parking_lot::Mutex;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

pub use check::{Checker, Kind};
use folder::{Kept, Unfinished};
use unloaded::Unloaded;

/// The time from a failed backup to the next attempt, unless the wallet changes earlier.
const RETRY: Duration = Duration::from_secs(60);
/// The folders in the network's folder.
const WALLETS: &str = "wallets";
const STORES: &str = "plugins";
/// The prefix of the names of copies that do not count yet.
const COPY: &str = "copy";
/// The same for a copy in the data directory.
const PLAIN_COPY: &str = "backup";

/// A wallet, or the store of a plugin.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Source {
    pub kind: Kind,
    /// The wallet's name, or the plugin's id.
    pub name: String,
}

/// The backups of a source, for the metrics.
#[derive(Clone, Copy, Default, Debug)]
pub struct Figure {
    /// The time of the last good backup, in Unix seconds; 0 if there is none.
    pub last_good: u64,
    pub failures: u64,
}

pub type Figures = Arc<Mutex<BTreeMap<Source, Figure>>>;

#[derive(Default)]
struct State {
    last: Option<Kept>,
    /// Whether the wallet could not note the last backup.
    is_unnoted: bool,
    failures: u64,
    /// When the last attempt failed, and the number of changes of the wallet at that time.
    failed: Option<(Instant, u64)>,
}

#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("{}", .0.detail)]
    Wallet(#[from] outrigger_service::ServiceError),
    #[error("{0}")]
    Store(#[from] StoreFileError),
    #[error("{0}")]
    Check(String),
    #[error("another host makes its backups in {}", .0.display())]
    InUse(PathBuf),
}

/// A copy that has not been checked yet.
struct Copied {
    file: Unfinished,
    /// The wallet's number of changes at the time of the copy; 0 for a store.
    changes: u64,
    /// The contents that the host expects of it, as text.
    expected: String,
    /// The loaded wallet that was copied, which notes its backup.
    wallet: Option<Weak<Wallet>>,
    /// When the last attempt with it failed.
    failed: Option<Instant>,
}

/// The sources, folders and settings of backups.
pub struct Backups {
    pub manager: Arc<WalletManager>,
    pub stores: Arc<Stores>,
    pub checker: Checker,
    /// The folder of the setting, which must exist.
    pub base: PathBuf,
    /// The name of the network's folder, below `base`.
    pub network: String,
    /// A folder of the data directory, for copies that have not been checked yet.
    pub data: PathBuf,
    pub every: Duration,
    pub keep: usize,
    pub recipient: Option<Recipient>,
    pub figures: Figures,
}

impl Backups {
    /// Starts the thread, which ends when the host stops.
    pub fn start(self) -> Result<(), BackupError> {
        let (lock, unloaded) = (self.lock()?, Arc::<Unloaded>::default());
        let (copies, data) = (unloaded.clone(), self.data.clone());
        self.manager.on_unload(move |wallet| copies.add(wallet, &data));
        let due = self.manager.backups_due();
        let run = move || self.run(lock, &unloaded, &due);
        Ok(std::thread::Builder::new().name("backups".to_owned()).spawn(run).map(drop)?)
    }

    fn run(self, _lock: File, unloaded: &Unloaded, due: &Receiver<()>) {
        let mut states = BTreeMap::new();
        loop {
            let patience = self.round(&mut states, unloaded);
            let stops = match due.recv_timeout(patience) {
                Err(error) => error == RecvTimeoutError::Disconnected,
                // A message that was sent before the stop arrives first.
                Ok(()) => due.try_recv() == Err(TryRecvError::Disconnected),
            };
            if stops {
                break;
            }
        }
        for (Source { name, .. }, _) in unloaded.numbers().into_iter().filter_map(|number| unloaded.take(number)) {
            tracing::warn!(name, "the host stops before the backup of this unloaded wallet");
        }
    }

    /// Makes the backups that are due. Returns the time to the next one.
    fn round(&self, states: &mut BTreeMap<Source, State>, unloaded: &Unloaded) -> Duration {
        let mut patience = self.follow_unloaded(states, unloaded);
        let sources = self.sources();
        // Drops the figures of unloaded wallets.
        self.figures.lock().retain(|source, _| sources.contains(source) || unloaded.has(source, ..));
        for source in sources {
            // The older copy is backed up first, so that the newest backup has the newest keys.
            if unloaded.has(&source, ..) {
                continue;
            }
            let state = states.entry(source.clone()).or_default();
            match self.standing(&source) {
                Ok(None) => continue,
                Ok(Some(standing)) => {
                    if self.wait(&source, state, standing).is_zero() {
                        self.attempt(&source, state, standing.0);
                    }
                    patience = patience.min(self.wait(&source, state, standing));
                }
                Err(error) => {
                    failed(&source, state, &error, 0);
                    patience = patience.min(RETRY);
                }
            }
            self.note_figure(source, state);
        }
        patience
    }

    /// Makes backups of the copies of unloaded wallets, in the order of the copies. Returns the time to the next attempt.
    fn follow_unloaded(&self, states: &mut BTreeMap<Source, State>, unloaded: &Unloaded) -> Duration {
        let mut patience = self.every;
        for number in unloaded.numbers() {
            let Some((source, mut copied)) = unloaded.take(number) else { continue };
            let state = states.entry(source.clone()).or_default();
            let has_just_failed = copied.failed.is_some_and(|at| at.elapsed() < RETRY);
            if has_just_failed || unloaded.has(&source, ..number) {
                patience = patience.min(RETRY);
                unloaded.put(number, source, copied);
                continue;
            }
            if let Err(error) = self.keep(&source, &mut copied, state) {
                failed(&source, state, &error, copied.changes);
                patience = patience.min(RETRY);
                copied.failed = Some(Instant::now());
                unloaded.put(number, source.clone(), copied);
            }
            self.note_figure(source, state);
        }
        patience
    }

    fn note_figure(&self, source: Source, state: &State) {
        let last_good = state.last.as_ref().map_or(0, Kept::seconds);
        self.figures.lock().insert(source, Figure { last_good, failures: state.failures });
    }

    fn sources(&self) -> Vec<Source> {
        let wallets = self.manager.list().into_iter().map(|name| Source { kind: Kind::Wallet, name });
        let stores = self.stores.plugins().into_iter().map(|name| Source { kind: Kind::Store, name });
        wallets.chain(stores).collect()
    }

    /// How many changes of the source require a backup, and when it noted its last one, in Unix seconds; `None` if it was unloaded.
    fn standing(&self, source: &Source) -> Result<Option<(u64, u64)>, BackupError> {
        match source.kind {
            Kind::Store => Ok(Some((0, u64::MAX))),
            Kind::Wallet => {
                Ok(self.manager.loaded_wallet(&source.name).map(|wallet| wallet.backed_up()).transpose()?)
            }
        }
    }

    /// How long the next backup of a source can wait.
    fn wait(&self, source: &Source, state: &mut State, (changes, noted): (u64, u64)) -> Duration {
        if state.last.as_ref().is_none_or(|last| !last.path.exists()) {
            state.last = folder::kept(&self.folder(source)).unwrap_or_default().pop();
        }
        if let Some((at, failed)) = state.failed
            && failed == changes
        {
            return RETRY.saturating_sub(at.elapsed());
        }
        match &state.last {
            // A backup that the wallet has not noted is one of a former wallet of its name. A time in the future comes from a wrong clock.
            Some(last) if last.changes == changes && (state.is_unnoted || noted >= last.seconds()) => {
                SystemTime::now().duration_since(last.time).map_or(Duration::ZERO, |age| self.every.saturating_sub(age))
            }
            _ => Duration::ZERO,
        }
    }

    fn attempt(&self, source: &Source, state: &mut State, changes: u64) {
        // A missing folder is found before the wallet is copied.
        let folder = folder::make(&self.base, &self.folder(source)).map_err(BackupError::from);
        let made = match folder.and_then(|()| self.copy(source)) {
            Ok(None) => return,
            Ok(Some(mut copied)) => self.keep(source, &mut copied, state),
            Err(error) => Err(error),
        };
        if let Err(error) = made {
            failed(source, state, &error, changes);
        }
    }

    fn folder(&self, source: &Source) -> PathBuf {
        let kind = if source.kind == Kind::Wallet { WALLETS } else { STORES };
        self.base.join(&self.network).join(kind).join(folder::folder_name(&source.name))
    }

    /// Copies a source to the disk of the wallets first: a copy blocks the wallet, and the disk of the backups may hang. `None` if the
    /// source is gone.
    fn copy(&self, source: &Source) -> Result<Option<Copied>, BackupError> {
        let mut file = Unfinished::create(&self.data, PLAIN_COPY)?;
        match source.kind {
            Kind::Wallet => {
                let Some(wallet) = self.manager.loaded_wallet(&source.name) else { return Ok(None) };
                let contents = wallet.copy_out(&mut file.file)?;
                let (changes, expected) = (contents.changes, check::text(&contents));
                Ok(Some(Copied { file, changes, expected, wallet: Some(Arc::downgrade(&wallet)), failed: None }))
            }
            Kind::Store => {
                let Some(copied) = self.stores.copy_out(&source.name, &mut file.file) else { return Ok(None) };
                Ok(Some(Copied { file, changes: 0, expected: check::text(&copied?), wallet: None, failed: None }))
            }
        }
    }

    /// Makes a backup of a copy. A failure leaves nothing in the folder of the backups.
    fn keep(&self, source: &Source, copied: &mut Copied, state: &mut State) -> Result<(), BackupError> {
        let Source { kind, name } = source;
        let kept = self.write(source, copied)?;
        tracing::info!(?kind, name, file = %kept.path.display(), "backed up");
        state.is_unnoted = !self.conclude(source, copied, &kept);
        (state.last, state.failed) = (Some(kept), None);
        Ok(())
    }

    /// Writes a copy to the folder of the backups, checks it and gives it its name. The plain copy of an encrypted backup stays in the data
    /// directory.
    fn write(&self, source: &Source, copied: &mut Copied) -> Result<Kept, BackupError> {
        let folder = self.folder(source);
        folder::make(&self.base, &folder)?;
        folder::remove_unfinished(&folder)?;
        let expected = &copied.expected;
        let check = |file: &File| check::check(&self.checker, file, source.kind, expected).map_err(BackupError::Check);
        let (plain, mut copy) = (&mut copied.file.file, Unfinished::create(&folder, COPY)?);
        plain.rewind()?;
        match &self.recipient {
            Some(recipient) => {
                check(plain)?;
                let written = sealed::seal(plain, recipient, &copy.file)?;
                copy.file.sync_all()?;
                if sealed::hash(copy.reopen()?)? != written {
                    let reason = "the encrypted file differs from the written data".to_owned();
                    return Err(BackupError::Check(reason));
                }
            }
            None => {
                io::copy(plain, &mut copy.file)?;
                copy.file.sync_all()?;
                check(&copy.reopen()?)?;
            }
        }
        Ok(copy.finish(copied.changes, self.recipient.is_some())?)
    }

    /// Locks the folder. Fails while another host makes its backups there: each would remove the other's files.
    fn lock(&self) -> Result<File, BackupError> {
        let folder = self.base.join(&self.network);
        folder::make(&self.base, &folder)?;
        let file = File::open(&folder)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => Err(BackupError::InUse(folder)),
            // Some file systems do not lock folders.
            _ => Ok(file),
        }
    }

    /// Removes former backups, and has the wallet note a good one, which stays good if either fails. Returns false if the wallet cannot.
    fn conclude(&self, source: &Source, copied: &Copied, kept: &Kept) -> bool {
        let name = &source.name;
        if let Err(error) = folder::prune(&self.folder(source), self.keep) {
            tracing::warn!(name, %error, "a former backup cannot be removed");
        }
        if let Some(wallet) = copied.wallet.as_ref().and_then(Weak::upgrade)
            && let Err(error) = wallet.note_backup(kept.changes, kept.seconds())
        {
            tracing::warn!(name, error = error.detail, "the wallet cannot note its backup");
            return false;
        }
        true
    }
}

fn failed(Source { kind, name }: &Source, state: &mut State, error: &BackupError, changes: u64) {
    tracing::error!(?kind, name, %error, "the backup failed");
    (state.failures, state.failed) = (state.failures + 1, Some((Instant::now(), changes)));
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use age::x25519::Identity;
    use outrigger_embedded::{EmbeddedNode, Settings as NodeSettings};
    use outrigger_service::wallet::CreateOptions;
    use outrigger_service::wire::Secret;
    use outrigger_wallet_engine::Settings;

    use super::*;

    #[test]
    fn a_copy_that_the_check_refuses_does_not_count() {
        let folder = tempfile::tempdir().unwrap();
        let [chain, data, base, stores] =
            ["chain", "wallets", "backups", "plugins"].map(|name| folder.path().join(name));
        std::fs::create_dir(&base).unwrap();
        let node = EmbeddedNode::open(&chain, NodeSettings { map_size: 1 << 30, ..NodeSettings::default() }).unwrap();
        let settings = Settings { keypool: 5, least_map: 64 << 20, max_readers: 64, ..Settings::default() };
        let manager = WalletManager::open(&data, settings, node, Arc::new(|_| {})).unwrap();
        let options = CreateOptions {
            name: "w".to_owned(),
            disable_private_keys: false,
            blank: false,
            passphrase: Secret::default(),
            avoid_reuse: false,
            load_on_startup: None,
            external_signer: false,
        };
        manager.create(options).unwrap();
        let mut backups = Backups {
            manager: manager.clone(),
            stores: Arc::new(Stores::new(stores)),
            checker: Box::new(|| Err(io::ErrorKind::NotFound.into())),
            base: base.clone(),
            network: "regtest".to_owned(),
            data: data.clone(),
            every: Duration::from_secs(3600),
            keep: 48,
            recipient: None,
            figures: Figures::default(),
        };
        // The checker does not exist, fails, prints nothing, or prints other contents.
        let checkers: [Checker; 4] = [
            Box::new(|| Err(io::ErrorKind::NotFound.into())),
            Box::new(|| Ok(Command::new("false"))),
            Box::new(|| Ok(Command::new("true"))),
            Box::new(|| Ok(Command::new("echo"))),
        ];
        for checker in checkers {
            backups.checker = checker;
            for recipient in [None, Some(Identity::generate().to_public())] {
                backups.recipient = recipient;
                let failed_once = || {
                    let figures: Vec<_> =
                        backups.figures.lock().values().map(|one| (one.failures, one.last_good)).collect();
                    figures == [(1, 0)] && std::fs::read_dir(base.join("regtest/wallets/w")).unwrap().count() == 0
                };
                backups.round(&mut BTreeMap::new(), &Unloaded::default());
                assert!(failed_once(), "of a loaded wallet");
                let unloaded = Unloaded::default();
                unloaded.add(&manager.loaded_wallet("w").unwrap(), &data);
                backups.follow_unloaded(&mut BTreeMap::new(), &unloaded);
                assert!(failed_once() && unloaded.numbers() == [1], "of an unloaded one");
            }
        }
        // The checker prints the contents that the host expects of the copy.
        let (found, wallet) = (folder.path().join("found"), manager.loaded_wallet("w").unwrap());
        let contents = wallet.copy_out(&mut File::create_new(folder.path().join("copy")).unwrap()).unwrap();
        std::fs::write(&found, check::text(&contents)).unwrap();
        backups.checker = Box::new(move || {
            let mut command = Command::new("sh");
            command.args(["-c", "cat \"$0\""]).arg(&found);
            Ok(command)
        });
        backups.recipient = None;
        let unloaded = Unloaded::default();
        for _ in 0..2 {
            unloaded.add(&wallet, &data);
        }
        backups.follow_unloaded(&mut BTreeMap::new(), &unloaded);
        assert_eq!(std::fs::read_dir(base.join("regtest/wallets/w")).unwrap().count(), 2);
        assert!(unloaded.numbers().is_empty());
        manager.shutdown();
    }
}
