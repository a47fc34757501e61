//! Mempool persistence: a journal that brings the mempool back after a start.
//!
//! Every change of the mempool is written to the end of a file before it is answered. A kill loses nothing of it, since
//! what was written is the system's; a loss of power may lose what the system had not put on the disk yet. Where the file
//! has grown far beyond what the mempool holds, a thread writes it anew beside the old one, which it then replaces.
//!
//! The journal decides nothing: what it brings back comes in by the mempool's rules, and a journal that cannot be read or
//! written never stops the node.

mod record;

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

pub use record::{Kept, Records, Stored};

use outrigger_base::contain::contain;
use record::HEADER;

/// The journal's file, in the directory of the chain.
const FILE: &str = "mempool.journal";
/// Where it is written anew.
const NEW_FILE: &str = "mempool.journal.new";
/// How many bytes a journal may have beyond twice what the mempool needs.
const SLACK: u64 = 4 << 20;
/// How soon a journal that could not be written is tried again.
const RETRY: Duration = Duration::from_secs(60);

/// What a journal is written anew from: the mempool as it is when it is asked.
pub trait Contents: Send + Sync + 'static {
    /// The records of all that it holds.
    fn records(&self) -> Records;
}

struct State {
    /// None while it cannot be written.
    file: Option<File>,
    len: u64,
    /// What was appended since a rewriting began.
    since: Option<Vec<u8>>,
    /// When to try again after a failure.
    retry: Option<Instant>,
}

struct Shared {
    dir: PathBuf,
    state: Mutex<State>,
}

/// An open journal. Dropping it ends what it does in the background.
pub struct Journal {
    shared: Arc<Shared>,
    rewriting: Mutex<Option<JoinHandle<()>>>,
}

impl Journal {
    /// Reads the journal in `dir`, and opens it for what follows. What cannot be read is logged, and not there.
    pub fn open(dir: &Path) -> (Self, Stored) {
        let path = dir.join(FILE);
        let bytes = std::fs::read(&path).or_else(|error| match error.kind() {
            io::ErrorKind::NotFound => Ok(HEADER.to_vec()),
            _ => Err(error),
        });
        let bytes = bytes.unwrap_or_else(|error| {
            tracing::error!(path = %path.display(), %error, "the mempool's journal cannot be read");
            Vec::new()
        });
        let stored = Stored::read(&bytes);
        if stored.damaged > 0 {
            tracing::error!(path = %path.display(), bytes = stored.damaged, "the mempool's journal is damaged");
        }
        // A damaged one is written anew before anything is appended.
        let usable = bytes.starts_with(&HEADER) && stored.damaged == 0;
        let file = if usable { append_to(&path).ok() } else { None };
        let retry = if usable { None } else { Some(Instant::now()) };
        let state = Mutex::new(State { file, len: bytes.len() as u64, since: None, retry });
        (Self { shared: Arc::new(Shared { dir: dir.to_owned(), state }), rewriting: Mutex::default() }, stored)
    }

    /// Writes down what changed.
    pub fn append(&self, records: &Records) {
        if !records.as_bytes().is_empty() {
            self.shared.state.lock().append(records.as_bytes());
        }
    }

    /// Writes the journal anew in the background, where it has grown too long for a mempool that takes `usage` bytes of
    /// memory, or could not be written for a while.
    pub fn tend(&self, usage: u64, pool: &Arc<impl Contents>) {
        let mut state = self.shared.state.lock();
        let due = state.retry.is_some_and(|retry| retry <= Instant::now());
        let long = state.file.is_some() && state.len > usage.saturating_mul(2).saturating_add(SLACK);
        if (due || long) && state.since.is_none() {
            state.since = Some(Vec::new());
            drop(state);
            self.rewrite(pool);
        }
    }

    /// Writes the journal anew, on a thread of its own.
    fn rewrite(&self, pool: &Arc<impl Contents>) {
        let (shared, pool) = (self.shared.clone(), pool.clone());
        let work = move || {
            if !contain("writing the mempool's journal anew", || shared.rewrite(&*pool)) {
                shared.failed(&io::Error::other("writing it anew failed by a panic"));
            }
        };
        let mut rewriting = self.rewriting.lock();
        if let Some(last) = rewriting.take() {
            // It has ended, or another would not begin.
            let _ = last.join();
        }
        match std::thread::Builder::new().name("journal".to_owned()).spawn(work) {
            Ok(thread) => *rewriting = Some(thread),
            Err(error) => self.shared.failed(&error),
        }
    }

    /// Writes the journal anew at once, where it is not what the mempool is: `differs` says that it has more or less in
    /// it.
    pub fn settle(&self, differs: bool, pool: &impl Contents) {
        if differs || self.shared.state.lock().file.is_none() {
            self.rewrite_now(pool);
        }
    }

    /// Puts what was written on the disk.
    pub fn finish(&self, pool: &impl Contents) {
        let synced = self.shared.state.lock().file.as_ref().map(File::sync_all);
        if !matches!(synced, Some(Ok(()))) {
            self.rewrite_now(pool);
        }
    }

    fn rewrite_now(&self, pool: &impl Contents) {
        if let Some(thread) = self.rewriting.lock().take() {
            let _ = thread.join();
        }
        self.shared.state.lock().since = Some(Vec::new());
        self.shared.rewrite(pool);
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        if let Some(thread) = self.rewriting.lock().take() {
            let _ = thread.join();
        }
    }
}

impl State {
    fn append(&mut self, bytes: &[u8]) {
        if let Some(since) = &mut self.since {
            since.extend_from_slice(bytes);
        }
        let Some(file) = &mut self.file else { return };
        if let Err(error) = file.write_all(bytes) {
            tracing::error!(%error, "the mempool's journal cannot be written; it will be tried again");
            self.file = None;
            self.retry = Some(Instant::now() + RETRY);
        } else {
            self.len += bytes.len() as u64;
        }
    }
}

impl Shared {
    /// Writes the mempool to a new file, which takes the place of the old one with what was appended meanwhile. The
    /// caller has set `since`.
    fn rewrite(&self, pool: &impl Contents) {
        let written = self.write_new(pool).and_then(|(mut file, len)| {
            let mut state = self.state.lock();
            let since = state.since.take().unwrap_or_default();
            file.write_all(&since)?;
            std::fs::rename(self.dir.join(NEW_FILE), self.dir.join(FILE))?;
            *state = State { file: Some(file), len: len + since.len() as u64, since: None, retry: None };
            Ok(())
        });
        if let Err(error) = written {
            self.failed(&error);
        }
    }

    fn write_new(&self, pool: &impl Contents) -> io::Result<(File, u64)> {
        let path = self.dir.join(NEW_FILE);
        // What a process left behind that died while it wrote.
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = append_to(&path)?;
        let records = pool.records();
        file.write_all(records.as_bytes())?;
        file.sync_all()?;
        Ok((file, (HEADER.len() + records.as_bytes().len()) as u64))
    }

    fn failed(&self, error: &io::Error) {
        tracing::error!(%error, "the mempool's journal cannot be written anew; it will be tried again");
        let mut state = self.state.lock();
        state.since = None;
        state.retry = Some(Instant::now() + RETRY);
    }
}

/// Opens a file to append to, with the journal's header where it is new. Others may not read what waits for a block.
fn append_to(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    if file.metadata()?.len() == 0 {
        file.write_all(&HEADER)?;
    }
    Ok(file)
}
