//! A hook's state in the plugin's store: its position in each wallet's log, the entries to retry, and the dead letters.
//!
//! An entry is either after the position, or waits for a retry, or is done. Each change is one commit, so a killed process loses nothing.
//! Keys have a hash of the wallet's name, since a name may be longer than a key.

use std::collections::{BTreeMap, BTreeSet};

use outrigger_sdk::Host;
use outrigger_sdk::bitcoin::hashes::{Hash, sha256};
use outrigger_sdk::service::store::KeyRange;
use outrigger_sdk::service::{ErrorKind, Result, Scope};
use outrigger_sdk::store::{Batch, each_row};
use outrigger_sdk::wire::Blob;
use serde::{Deserialize, Serialize};

/// How long the hook retries an entry, in seconds: three days.
pub const PATIENCE: u64 = 3 * 24 * 3600;

/// The longest pause, in seconds. The first pause is one second, and each further one is twice as long.
const MAX_PAUSE: u64 = 3600;

/// The most entries of a hook that wait for a retry. At this limit, the hook reads no new entries.
pub const MAX_WAITING: usize = 1000;

/// The most dead letters of a hook that the store keeps. The count includes dropped ones.
pub const MAX_DEAD: usize = 100;

/// The number and the wallet of an entry. Keys sort by number first.
pub type Key = (u64, String);

/// An entry with the body to post.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Letter {
    pub key: Key,
    pub body: String,
}

/// The state of an entry that the receiver refused or did not answer.
#[derive(Clone, Serialize, Deserialize, PartialEq, Eq, Debug)]
pub struct Failing {
    pub wallet: String,
    pub attempts: u32,
    /// The time of the first failure, in seconds since 1970.
    pub first: u64,
    /// The time of the next attempt.
    pub next: u64,
    pub error: String,
}

/// The pause after this number of failures in a row, in seconds.
pub fn pause(failures: u32) -> u64 {
    1u64.checked_shl(failures.saturating_sub(1)).unwrap_or(MAX_PAUSE).min(MAX_PAUSE)
}

/// Whether a time, in seconds since 1970, is still to come. A time further ahead than any pause is from before the clock was set back.
pub fn is_to_come(time: u64, now: u64) -> bool {
    (1..=MAX_PAUSE).contains(&time.saturating_sub(now))
}

/// The prefix of the keys of the hook with this URL.
fn prefix(url: &str) -> String {
    sha256::Hash::hash(url.as_bytes()).to_string().chars().take(16).collect()
}

/// Removes the rows of all hooks but those with these URLs. Does nothing while another instance still writes the store.
pub fn remove_others<'u>(host: &Host, urls: impl Iterator<Item = &'u str>) -> Result<()> {
    let kept: BTreeSet<String> = urls.map(prefix).collect();
    let (mut batch, mut from) = (Batch::default(), None);
    for hook in &kept {
        let hook = KeyRange::prefix(hook.as_bytes());
        batch.delete_range(KeyRange { from, to: hook.from });
        from = hook.to;
    }
    batch.delete_range(KeyRange { from, to: None });
    match batch.commit(host, Scope::NONE) {
        Err(error) if error.kind == ErrorKind::Stale => Ok(()),
        committed => committed,
    }
}

pub struct Queue {
    host: Host,
    /// The prefix of the hook's keys.
    hook: String,
    pub positions: BTreeMap<String, u64>,
    /// The wallets whose positions have moved since the last commit.
    moved: BTreeSet<String>,
    pub waiting: BTreeMap<Key, Failing>,
    pub dead: BTreeMap<Key, Failing>,
    /// The number of all dead letters so far, dropped ones included.
    pub dead_count: u64,
}

impl Queue {
    /// Reads the state of the hook with this URL.
    pub fn open(host: &Host, url: &str) -> Result<Self> {
        let mut queue = Self {
            host: host.clone(),
            hook: prefix(url),
            positions: BTreeMap::new(),
            moved: BTreeSet::new(),
            waiting: BTreeMap::new(),
            dead: BTreeMap::new(),
            dead_count: 0,
        };
        let mut positions = BTreeMap::new();
        queue.rows("position/", |_, value| {
            let Some((position, wallet)) = value.split_first_chunk() else { return };
            positions.insert(String::from_utf8_lossy(wallet).into_owned(), u64::from_be_bytes(*position));
        })?;
        queue.positions = positions;
        queue.waiting = queue.failing("waiting/")?;
        queue.dead = queue.failing("dead/")?;
        let count = host.store.get(Scope::NONE, vec![Blob(queue.key("dead-count", b""))])?;
        let count = count.into_iter().flatten().next().and_then(|value| value.0.try_into().ok());
        queue.dead_count = count.map_or(0, u64::from_be_bytes);
        Ok(queue)
    }

    fn key(&self, table: &str, rest: &[u8]) -> Vec<u8> {
        [self.hook.as_bytes(), b"/", table.as_bytes(), rest].concat()
    }

    fn entry_key(&self, table: &str, (number, wallet): &Key) -> Vec<u8> {
        self.key(table, &[&number.to_be_bytes()[..], &hash(wallet)].concat())
    }

    /// Calls `each` with the rows of a table: the key after the table's prefix, and the value.
    fn rows(&self, table: &str, mut each: impl FnMut(&[u8], &[u8])) -> Result<()> {
        let prefix = self.key(table, b"");
        each_row(&self.host, Scope::NONE, KeyRange::prefix(&prefix), |key, value| {
            each(key.get(prefix.len()..).unwrap_or_default(), value);
            Ok(())
        })
    }

    /// The entries of a table, whose values begin with a line of JSON. Skips malformed rows.
    fn failing(&self, table: &str) -> Result<BTreeMap<Key, Failing>> {
        let mut all = BTreeMap::new();
        self.rows(table, |key, value| {
            let line = value.split(|byte| *byte == b'\n').next().unwrap_or_default();
            if let (Some((number, _)), Ok(failing)) = (key.split_first_chunk(), serde_json::from_slice::<Failing>(line))
            {
                all.insert((u64::from_be_bytes(*number), failing.wallet.clone()), failing);
            }
        })?;
        Ok(all)
    }

    /// The entry to retry now: of those due, the longest overdue.
    pub fn due(&self, now: u64) -> Result<Option<Letter>> {
        let due = self
            .waiting
            .iter()
            .filter(|(_, failing)| !is_to_come(failing.next, now))
            .min_by_key(|(_, failing)| failing.next);
        let Some((key, _)) = due else { return Ok(None) };
        let row = self.host.store.get(Scope::NONE, vec![Blob(self.entry_key("waiting/", key))])?;
        let row = row.into_iter().flatten().next().map(|value| value.0).unwrap_or_default();
        let text = String::from_utf8_lossy(&row);
        let body = text.split_once('\n').map(|(_, body)| body.to_owned()).unwrap_or_default();
        Ok(Some(Letter { key: key.clone(), body }))
    }

    /// Moves the position in a wallet's log to `number`, from the next commit on. Entries up to it are done or wait.
    pub fn set_position(&mut self, wallet: &str, number: u64) {
        self.positions.insert(wallet.to_owned(), number);
        self.moved.insert(wallet.to_owned());
    }

    /// Records that the entry was delivered.
    pub fn delivered(&mut self, key: &Key) -> Result<()> {
        let mut batch = Batch::default();
        if self.waiting.contains_key(key) {
            batch.delete(&self.entry_key("waiting/", key));
        }
        self.pass(key);
        self.commit(batch)?;
        self.waiting.remove(key);
        Ok(())
    }

    /// Records a failed attempt: the entry waits, or becomes a dead letter. Returns whether it became one.
    pub fn failed(&mut self, letter: &Letter, error: String, now: u64) -> Result<bool> {
        let before = self.waiting.get(&letter.key);
        let attempts = before.map_or(0, |before| before.attempts).saturating_add(1);
        let first = before.map_or(now, |before| before.first.min(now));
        let wallet = letter.key.1.clone();
        let failing = Failing { wallet, attempts, first, next: now.saturating_add(pause(attempts)), error };
        let line = serde_json::to_string(&failing).unwrap_or_default();
        let mut batch = Batch::default();
        self.pass(&letter.key);
        let is_dead = now.saturating_sub(first) >= PATIENCE;
        if !is_dead {
            batch.put(&self.entry_key("waiting/", &letter.key), format!("{line}\n{}", letter.body).as_bytes());
            self.commit(batch)?;
            self.waiting.insert(letter.key.clone(), failing);
            return Ok(false);
        }
        batch.delete(&self.entry_key("waiting/", &letter.key));
        batch.put(&self.entry_key("dead/", &letter.key), line.as_bytes());
        batch.put(&self.key("dead-count", b""), &self.dead_count.saturating_add(1).to_be_bytes());
        let oldest = self.dead.first_key_value().map(|(key, _)| key.clone()).filter(|_| self.dead.len() >= MAX_DEAD);
        if let Some(oldest) = &oldest {
            batch.delete(&self.entry_key("dead/", oldest));
        }
        self.commit(batch)?;
        self.waiting.remove(&letter.key);
        oldest.map(|oldest| self.dead.remove(&oldest));
        self.dead.insert(letter.key.clone(), failing);
        self.dead_count = self.dead_count.saturating_add(1);
        Ok(true)
    }

    /// If the entry is after its wallet's position, the position moves to it.
    pub fn pass(&mut self, (number, wallet): &Key) {
        if self.positions.get(wallet).is_none_or(|position| position < number) {
            self.set_position(wallet, *number);
        }
    }

    /// Stores the positions that have moved.
    pub fn store_positions(&mut self) -> Result<()> {
        if self.moved.is_empty() { Ok(()) } else { self.commit(Batch::default()) }
    }

    /// Commits changes, and the positions that have moved. After an error, the queue differs from the store.
    fn commit(&mut self, mut batch: Batch) -> Result<()> {
        for wallet in std::mem::take(&mut self.moved) {
            let position = self.positions.get(&wallet).copied().unwrap_or_default().to_be_bytes();
            batch.put(&self.key("position/", &hash(&wallet)), &[&position[..], wallet.as_bytes()].concat());
        }
        // A crash of the machine may lose the last commits. The hook then posts their entries again.
        batch.commit(&self.host, Scope::NONE)
    }
}

fn hash(wallet: &str) -> [u8; 32] {
    sha256::Hash::hash(wallet.as_bytes()).to_byte_array()
}
