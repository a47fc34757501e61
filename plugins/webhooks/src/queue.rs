//! A hook's state in the plugin's store: its position in each wallet's log, the entries to retry, and the dead letters.
//!
//! An entry is either after the position, or waits for a retry, or is done. Each change is one commit, so a killed process loses nothing.

use std::collections::BTreeMap;

use outrigger_sdk::Host;
use outrigger_sdk::bitcoin::hashes::{Hash, sha256};
use outrigger_sdk::service::store::KeyRange;
use outrigger_sdk::service::{Result, Scope};
use outrigger_sdk::store::Batch;
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

pub struct Queue {
    host: Host,
    /// The prefix of the hook's keys.
    hook: String,
    pub positions: BTreeMap<String, u64>,
    pub waiting: BTreeMap<Key, Failing>,
    pub dead: BTreeMap<Key, Failing>,
    /// The number of all dead letters so far, dropped ones included.
    pub dead_count: u64,
}

impl Queue {
    /// Reads the state of the hook with this URL.
    pub fn open(host: &Host, url: &str) -> Result<Self> {
        let digest = sha256::Hash::hash(url.as_bytes()).to_string();
        let mut queue = Self {
            host: host.clone(),
            hook: digest.chars().take(16).collect(),
            positions: BTreeMap::new(),
            waiting: BTreeMap::new(),
            dead: BTreeMap::new(),
            dead_count: 0,
        };
        for (key, value) in queue.rows("position/")? {
            let wallet = String::from_utf8_lossy(&key).into_owned();
            queue.positions.insert(wallet, number(&value));
        }
        queue.waiting = queue.failing("waiting/")?;
        queue.dead = queue.failing("dead/")?;
        let count = host.store.get(Scope::NONE, vec![Blob(queue.key("dead-count", b""))])?;
        queue.dead_count = count.into_iter().flatten().next().map_or(0, |value| number(&value.0));
        Ok(queue)
    }

    fn key(&self, table: &str, rest: &[u8]) -> Vec<u8> {
        [self.hook.as_bytes(), b"/", table.as_bytes(), rest].concat()
    }

    fn entry_key(&self, table: &str, (number, wallet): &Key) -> Vec<u8> {
        self.key(table, &[&number.to_be_bytes()[..], wallet.as_bytes()].concat())
    }

    /// All rows of a table: the key after the table's prefix, and the value.
    fn rows(&self, table: &str) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let prefix = self.key(table, b"");
        let (mut range, mut rows) = (KeyRange::prefix(&prefix), Vec::new());
        loop {
            let answer = self.host.store.range(Scope::NONE, range.clone(), u32::MAX, false)?;
            let view = answer.view()?;
            let rest = |key: &[u8]| key.get(prefix.len()..).unwrap_or_default().to_vec();
            rows.extend(view.rows.iter().map(|row| (rest(row.key), row.value.to_vec())));
            match view.rows.iter().last() {
                // The smallest key after the last one.
                Some(last) if view.more => range.from = Some(Blob([last.key, &[0]].concat())),
                _ => return Ok(rows),
            }
        }
    }

    /// The entries of a table, whose values begin with a line of JSON. Skips malformed rows.
    fn failing(&self, table: &str) -> Result<BTreeMap<Key, Failing>> {
        let rows = self.rows(table)?.into_iter().filter_map(|(key, value)| {
            let (number, wallet) = key.split_first_chunk()?;
            let line = value.split(|byte| *byte == b'\n').next()?;
            let key = (u64::from_be_bytes(*number), String::from_utf8_lossy(wallet).into_owned());
            Some((key, serde_json::from_slice(line).ok()?))
        });
        Ok(rows.collect())
    }

    /// The entry to retry now: of those due, the longest overdue.
    pub fn due(&self, now: u64) -> Result<Option<Letter>> {
        let due =
            self.waiting.iter().filter(|(_, failing)| failing.next <= now).min_by_key(|(_, failing)| failing.next);
        let Some((key, _)) = due else { return Ok(None) };
        let row = self.host.store.get(Scope::NONE, vec![Blob(self.entry_key("waiting/", key))])?;
        let row = row.into_iter().flatten().next().map(|value| value.0).unwrap_or_default();
        let text = String::from_utf8_lossy(&row);
        let body = text.split_once('\n').map(|(_, body)| body.to_owned()).unwrap_or_default();
        Ok(Some(Letter { key: key.clone(), body }))
    }

    /// Moves the position in a wallet's log to `number`. Entries up to it are done or wait.
    pub fn advance(&mut self, wallet: &str, number: u64) -> Result<()> {
        self.commit(Batch::default(), &(number, wallet.to_owned()))
    }

    /// Records that the entry was delivered.
    pub fn delivered(&mut self, key: &Key) -> Result<()> {
        let mut batch = Batch::default();
        if self.waiting.contains_key(key) {
            batch.delete(&self.entry_key("waiting/", key));
        }
        self.commit(batch, key)?;
        self.waiting.remove(key);
        Ok(())
    }

    /// Records a failed attempt: the entry waits, or becomes a dead letter. Returns whether it became one.
    pub fn failed(&mut self, letter: &Letter, error: String, now: u64) -> Result<bool> {
        let before = self.waiting.get(&letter.key);
        let attempts = before.map_or(0, |before| before.attempts).saturating_add(1);
        let first = before.map_or(now, |before| before.first);
        let failing = Failing { attempts, first, next: now.saturating_add(pause(attempts)), error };
        let line = serde_json::to_string(&failing).unwrap_or_default();
        let mut batch = Batch::default();
        let is_dead = now.saturating_sub(first) >= PATIENCE;
        if !is_dead {
            batch.put(&self.entry_key("waiting/", &letter.key), format!("{line}\n{}", letter.body).as_bytes());
            self.commit(batch, &letter.key)?;
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
        self.commit(batch, &letter.key)?;
        self.waiting.remove(&letter.key);
        oldest.map(|oldest| self.dead.remove(&oldest));
        self.dead.insert(letter.key.clone(), failing);
        self.dead_count = self.dead_count.saturating_add(1);
        Ok(true)
    }

    /// Commits changes. If the entry is after its wallet's position, the position moves to it.
    fn commit(&mut self, mut batch: Batch, (number, wallet): &Key) -> Result<()> {
        let ahead = self.positions.get(wallet).is_none_or(|position| position < number);
        if ahead {
            batch.put(&self.key("position/", wallet.as_bytes()), &number.to_be_bytes());
        }
        // A crash of the machine may lose the last commits. The hook then posts their entries again.
        batch.commit(&self.host, Scope::NONE)?;
        if ahead {
            self.positions.insert(wallet.clone(), *number);
        }
        Ok(())
    }
}

fn number(value: &[u8]) -> u64 {
    value.try_into().map_or(0, u64::from_be_bytes)
}
