//! A disk cache of the node's block filters (BIP 158), so that a later rescan need not fetch them again.
//!
//! | table | key | value |
//! |---|---|---|
//! | filters | height (BE), block hash | the filter |
//! | meta | `layout` | the layout's number |
//!
//! Filters of stale blocks are kept, too. When the cache is full, filters of higher blocks evict those of lower ones,
//! since rescans of recent blocks are the most frequent. An error of the cache does not fail a search: the host
//! fetches the filter again.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use bitcoin::hashes::Hash;
use outrigger_disk::{Environment, Opening, StoreError, Table};

use super::chain::Entry;
use super::error::MirrorError;

pub const LAYOUT: u8 = 1;
const LAYOUT_KEY: &[u8] = b"layout";

/// Address space in addition to twice the limit, in bytes, for LMDB's own pages and the pages of one write.
const SPARE_MAP: u64 = 64 << 20;

/// The LMDB readers. Each searching thread holds one.
const MAX_READERS: u32 = 256;

/// The unit of the map's size, in bytes.
const PAGE: u64 = 4_096;

type Result<T> = std::result::Result<T, MirrorError>;

pub struct Filters {
    folder: PathBuf,
    /// Whether searches use filters.
    pub used: bool,
    /// In bytes; 0 disables the cache.
    limit: u64,
    /// Opened on first use, since opening checks the whole file.
    file: OnceLock<Option<File>>,
    /// How many filters searches found in the cache.
    pub hits: AtomicU64,
    /// How many filters searches fetched from the node.
    pub fetched: AtomicU64,
    /// The mean length of the last fetched filters, in bytes.
    pub mean: AtomicUsize,
}

struct File {
    env: Environment,
    filters: Table,
}

impl Filters {
    /// A cache of at most `limit` bytes; 0 disables it and deletes its files. `used` is whether searches use filters.
    pub fn new(folder: PathBuf, limit: u64, used: bool) -> Self {
        if limit == 0
            && folder.exists()
            && let Err(error) = std::fs::remove_dir_all(&folder)
        {
            tracing::warn!(folder = %folder.display(), %error, "the block filters could not be removed");
        }
        let (hits, fetched, mean) = (AtomicU64::new(0), AtomicU64::new(0), AtomicUsize::new(0));
        Self { folder, used, limit, file: OnceLock::new(), hits, fetched, mean }
    }

    fn file(&self) -> Option<&File> {
        if self.limit == 0 {
            return None;
        }
        let open = || match File::open(&self.folder, self.limit) {
            Ok(file) => Some(file),
            Err(error) => {
                tracing::warn!(folder = %self.folder.display(), %error, "cannot open the cache of block filters");
                None
            }
        };
        self.file.get_or_init(open).as_ref()
    }

    pub fn get(&self, entries: &[Entry]) -> Vec<Option<Vec<u8>>> {
        let found = self.file().map_or_else(|| Ok(Vec::new()), |file| file.get(entries));
        let mut found = found.unwrap_or_else(|error| {
            tracing::warn!(%error, "cached block filters cannot be read");
            Vec::new()
        });
        found.resize(entries.len(), None);
        self.hits.fetch_add(found.iter().flatten().count() as u64, Ordering::Relaxed);
        found
    }

    pub fn put(&self, filters: &[(&Entry, &[u8])]) {
        self.fetched.fetch_add(filters.len() as u64, Ordering::Relaxed);
        let Some(file) = self.file().filter(|_| !filters.is_empty()) else { return };
        if let Err(error) = file.put(filters, self.limit) {
            tracing::warn!(%error, "block filters could not be cached");
        }
    }
}

impl File {
    fn open(folder: &Path, limit: u64) -> Result<Self> {
        std::fs::create_dir_all(folder).map_err(StoreError::from)?;
        let map_size = (2 * limit).next_multiple_of(PAGE) + SPARE_MAP;
        let path = folder.join(outrigger_disk::DATA_FILE);
        // LMDB does not shrink an existing map.
        let is_usable = |file: std::fs::Metadata| {
            file.len() <= map_size && outrigger_disk::check(folder, LAYOUT_KEY, &[LAYOUT]).is_ok()
        };
        if path.metadata().is_ok_and(|file| !is_usable(file)) {
            tracing::warn!(file = %path.display(), "emptying the cache of block filters: damaged or too large");
            std::fs::remove_file(&path).map_err(StoreError::from)?;
        }
        let map_size = usize::try_from(map_size).unwrap_or(usize::MAX);
        let opening = Opening { map_size, max_readers: MAX_READERS, tables: 2, lazy: true };
        let env = Environment::open(folder, &opening)?;
        let mut txn = env.write()?;
        let (filters, meta) = (env.make_table(&mut txn, "filters")?, env.make_table(&mut txn, "meta")?);
        meta.put(&mut txn, LAYOUT_KEY, &[LAYOUT])?;
        txn.commit()?;
        Ok(Self { env, filters })
    }

    fn get(&self, entries: &[Entry]) -> Result<Vec<Option<Vec<u8>>>> {
        let txn = self.env.read()?;
        let get = |entry| Ok(self.filters.get(&txn, &key(entry))?.map(<[u8]>::to_vec));
        entries.iter().map(get).collect()
    }

    fn put(&self, filters: &[(&Entry, &[u8])], limit: u64) -> Result<()> {
        let mut txn = self.env.write()?;
        for (entry, filter) in filters {
            let key = key(entry);
            if self.filters.get(&txn, &key)?.is_some() {
                continue;
            }
            self.filters.put(&mut txn, &key, filter)?;
            // The lowest block's filter may be this one.
            while self.filters.pages(&txn)? * self.env.page_size() > limit {
                let lowest = self.filters.iter(&txn)?.next().transpose()?.map(|(key, _)| key.to_vec());
                let Some(lowest) = lowest else { break };
                self.filters.delete(&mut txn, &lowest)?;
            }
        }
        Ok(txn.commit()?)
    }
}

fn key(entry: &Entry) -> Vec<u8> {
    [&entry.height.to_be_bytes()[..], entry.hash().as_byte_array()].concat()
}

#[cfg(test)]
mod tests {
    use bitcoin::Network;

    use super::super::chain::tests::mined;
    use super::*;

    fn entries(count: u32) -> Vec<Entry> {
        let mut entries = vec![Entry::genesis(bitcoin::constants::genesis_block(Network::Regtest).header)];
        for _ in 1..count {
            let last = entries[entries.len() - 1];
            let header = mined(last.hash(), last.header.time + 600, 1);
            entries.push(last.next(header, &[last.header.time]).unwrap());
        }
        entries
    }

    fn kept(filters: &Filters, entries: &[Entry]) -> Vec<bool> {
        filters.get(entries).iter().map(Option::is_some).collect()
    }

    #[test]
    fn filters_are_kept_up_to_the_limit_those_of_the_highest_blocks_first() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("filters");
        let entries = entries(4);
        let filter = vec![7; 3_000];
        // Each filter has a page of its own. The third page has the keys.
        let limit = 3 * PAGE;
        let filters = Filters::new(place.clone(), limit, true);
        assert_eq!(kept(&filters, &entries), [false; 4]);
        for entry in [1, 2, 3] {
            filters.put(&[(&entries[entry], &filter)]);
        }
        assert_eq!(kept(&filters, &entries), [false, false, true, true]);
        // A lower one evicts nothing, and a cached one is not stored again.
        filters.put(&[(&entries[0], &filter), (&entries[3], &filter)]);
        assert_eq!(kept(&filters, &entries), [false, false, true, true]);
        assert_eq!((filters.hits.load(Ordering::Relaxed), filters.fetched.load(Ordering::Relaxed)), (4, 5));
        drop(filters);
        // Filters survive a restart. A damaged file is replaced. A limit of 0 removes it.
        assert_eq!(kept(&Filters::new(place.clone(), limit, true), &entries), [false, false, true, true]);
        let file = place.join(outrigger_disk::DATA_FILE);
        let mut bytes = std::fs::read(&file).unwrap();
        bytes[4096 * 2..].fill(0x55);
        std::fs::write(&file, bytes).unwrap();
        assert_eq!(kept(&Filters::new(place.clone(), limit, true), &entries), [false; 4]);
        drop(Filters::new(place.clone(), 0, true));
        assert!(!place.exists());
    }
}
