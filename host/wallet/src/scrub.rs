//! Removal of former secrets from a wallet's file: the encryption key from before encryptwallet, and the encrypted key
//! under a former passphrase.
//!
//! A commit frees the pages of a secret and leaves their bytes. Further writes overwrite them, unless the process is
//! killed or an open snapshot holds the pages. So the transaction that frees them also writes a mark, and the mark is
//! removed only after a search of the whole file has not found the secret. Until then the removal is retried at each
//! load, and by a thread while the wallet is loaded.
//!
//! The process may be killed before that, and the next start may not load the wallet. So a marker file is created beside
//! the wallet's file before a secret is replaced, and removed after the search. Each start of the host searches the files
//! of all wallets with a marker file.
//!
//! The mark must not contain the secret. It contains its hash, and its first bytes for a fast search.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::atomic::Ordering;

use bitcoin::hashes::{Hash, sha256};
use zeroize::Zeroizing;

use super::error::Result;
use super::files;
use super::live::Wallet;
use super::store::{SCRUB, TraceRow, get};
use super::write::Write;
use outrigger_disk::CHECK_LEN;

/// The bytes of a 4 KiB overflow page without its header and the value's checksum.
const PAGE_FILL: usize = 4096 - 16 - CHECK_LEN;
/// The most pages overwritten per round: 64 MiB.
const MAX_SCRUBBED: u64 = 16_384;
/// The fewest rounds. A round reuses pages that the round before it freed.
const MIN_ROUNDS: u64 = 2;
/// The first and the largest number of pages per write. The first write is small, to find out whether pages are
/// available.
const FIRST_WRITE: u64 = 16;
const LARGEST_WRITE: u64 = 1024;
/// The key prefix of the overwriting rows.
const FILLER: &[u8] = b"scrub/";
/// The least key after all keys with this prefix.
const AFTER_FILLER: &[u8] = b"scrub0";
/// The size of a chunk of the search, in bytes.
const SEARCHED: usize = 1 << 20;

/// The warning in getwalletinfo while there is a mark.
pub const WARNING: &str = "A former key of this wallet is still in its file, because a backup or a long call is reading the file or the host was stopped. The host overwrites it as soon as it can. Until then, do not give the file away.";

impl TraceRow {
    pub fn of(secret: &[u8]) -> Self {
        let begin = secret.first_chunk().copied().unwrap_or_default();
        let len = u32::try_from(secret.len()).unwrap_or(u32::MAX);
        Self { begin, len, hash: sha256::Hash::hash(secret).to_byte_array() }
    }

    fn is_in(&self, bytes: &[u8]) -> bool {
        let begins = bytes.windows(self.begin.len()).enumerate().filter(|(_, begin)| *begin == self.begin);
        let mut found = begins.filter_map(|(at, _)| bytes.get(at..at + self.len as usize));
        found.any(|found| sha256::Hash::hash(found).to_byte_array() == self.hash)
    }
}

/// The secrets that the file still contains.
fn search(file: &Path, traces: &[TraceRow]) -> io::Result<Vec<TraceRow>> {
    let overlap = traces.iter().map(|trace| trace.len as usize).max().unwrap_or(0);
    let mut file = File::open(file)?;
    let mut chunk = Zeroizing::new(vec![0; SEARCHED + overlap]);
    let (mut kept, mut found) = (0, vec![false; traces.len()]);
    loop {
        let read = file.read(chunk.get_mut(kept..).unwrap_or_default())?;
        if read == 0 {
            break;
        }
        let bytes = chunk.get(..kept + read).unwrap_or_default();
        for (trace, found) in traces.iter().zip(&mut found) {
            *found = *found || trace.is_in(bytes);
        }
        // A secret may span two chunks.
        let (end, next) = (kept + read, overlap.min(kept + read));
        chunk.copy_within(end - next..end, 0);
        kept = next;
    }
    Ok(traces.iter().zip(found).filter(|(_, found)| *found).map(|(trace, _)| trace.clone()).collect())
}

impl Write<'_> {
    /// Marks `secret` for removal from the file after this write.
    pub fn mark_scrub_due(&mut self, secret: &[u8]) -> Result<()> {
        let mut traces: Vec<TraceRow> = get(self.t.meta, self.reads(), SCRUB)?.unwrap_or_default();
        traces.push(TraceRow::of(secret));
        self.store_row(self.t.meta, SCRUB, &traces)
    }

    /// Removes the overwriting rows, including those left by a killed process.
    fn remove_filler(&mut self) -> Result<()> {
        self.delete_range(self.t.meta, &(FILLER..AFTER_FILLER))
    }
}

impl Wallet {
    /// Removes the former secrets of the mark, then the mark. If a snapshot still holds their pages, the scrub thread
    /// retries.
    pub(super) fn scrub(&self) {
        match self.try_scrub() {
            Ok(true) => {
                // A write of another secret makes a mark and a note of its own, which stay.
                let _writes = self.lock_writes();
                let mark = self.store.read().and_then(|txn| Ok(self.store.tables.meta.get(&txn, SCRUB)?.is_some()));
                if !mark.unwrap_or(true) {
                    self.shared.follower.scrubs.forget(self.slot);
                    if let Err(error) = files::forget_former_key(self.store.env.folder()) {
                        let wallet = self.name();
                        tracing::debug!(wallet, %error, "the file is searched once more at the next start");
                    }
                }
            }
            outcome => {
                let error = outcome.err().map(|error| error.to_string());
                // Logged once, not at each attempt.
                if self.shared.follower.scrubs.plan(self.slot) {
                    tracing::warn!(
                        wallet = self.name(),
                        error,
                        "a former key is still in the wallet's file; the host will try again to overwrite it"
                    );
                }
            }
        }
    }

    /// Returns whether nothing is left to remove.
    fn try_scrub(&self) -> Result<bool> {
        let _alone = self.scrubbing.lock();
        let t = self.store.tables;
        let (mark, filler) = {
            let txn = self.store.read()?;
            (get::<Vec<TraceRow>>(t.meta, &txn, SCRUB)?, t.meta.prefix_iter(&txn, FILLER)?.next().is_some())
        };
        let Some(mark) = mark else {
            return if filler { self.write(|write| write.remove_filler()).map(|()| true) } else { Ok(true) };
        };
        let mut left = mark.clone();
        let rounds = MIN_ROUNDS + self.store.free_pages()? / MAX_SCRUBBED;
        for _ in 0..rounds {
            let overwritten = self.overwrite_free_pages()?;
            left = search(&self.store.data_file(), &left)?;
            if left.is_empty() || !overwritten || self.shared.stopping.load(Ordering::Relaxed) {
                break;
            }
        }
        if left == mark {
            return Ok(false);
        }
        self.write(|write| {
            // Traces added since the mark was read stay.
            let mut traces: Vec<TraceRow> = get(t.meta, write.reads(), SCRUB)?.unwrap_or_default();
            traces.retain(|trace| left.contains(trace) || !mark.contains(trace));
            if traces.is_empty() {
                write.delete(t.meta, SCRUB)?;
                return Ok(true);
            }
            write.store_row(t.meta, SCRUB, &traces)?;
            Ok(false)
        })
    }

    /// Overwrites free pages. Returns false if a snapshot prevents their reuse; the file has then grown by a few pages.
    fn overwrite_free_pages(&self) -> Result<bool> {
        // Under the write lock: the follower reads under it, and its snapshots would hold pages back.
        let guard = self.lock_writes();
        // LMDB reuses a transaction's freed pages only after another transaction, hence two small ones.
        for tick in 0..2_u64 {
            self.write_in(&guard, |write| {
                write.remove_filler()?;
                write.store_row(write.t.meta, b"scrubbed", &tick)
            })?;
        }
        let count = self.store.free_pages()?.min(MAX_SCRUBBED);
        let zeros = vec![0; PAGE_FILL];
        let (mut done, mut next) = (0, FIRST_WRITE);
        let mut found = true;
        while found && done < count {
            let (end, before) = (count.min(done + next), self.store.env.pages());
            self.write_in(&guard, |write| {
                (done..end).try_for_each(|page| {
                    let place = [FILLER, &page.to_be_bytes()].concat();
                    write.put(write.t.meta, &place, &zeros)
                })
            })?;
            // Rows that found no free page have extended the file.
            found = 2 * self.store.env.pages().saturating_sub(before) < end - done;
            (done, next) = (end, LARGEST_WRITE.min(2 * next));
        }
        self.write_in(&guard, |write| write.remove_filler())?;
        // When free pages run out, some of the last rows find none.
        Ok(found || done == count)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_secret_is_found_wherever_it_stands_in_the_file() {
        let (secret, other) = ([0xa5_u8; 32], [7_u8; 72]);
        let traces = [TraceRow::of(&secret), TraceRow::of(&other)];
        for at in [0, 1, SEARCHED - 1, SEARCHED, SEARCHED + 40, 2 * SEARCHED + 50, 3 * SEARCHED - 32] {
            let mut bytes = vec![0; 3 * SEARCHED];
            bytes[at..at + 32].copy_from_slice(&secret);
            let mut file = tempfile::NamedTempFile::new().unwrap();
            file.write_all(&bytes).unwrap();
            assert_eq!(search(file.path(), &traces).unwrap(), traces[..1], "at {at}");
        }
    }

    #[test]
    fn a_mark_does_not_tell_the_secret_and_is_not_taken_for_it() {
        let trace = TraceRow::of(&[0xa5; 32]);
        let stored = outrigger_service::wire::to_bytes(&vec![trace.clone()]);
        assert!(!trace.is_in(&stored));
        assert!(!stored.windows(5).any(|window| window == [0xa5; 5]));
    }
}
