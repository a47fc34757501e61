//! The node's headers on disk.
//!
//! | table | key | value |
//! |---|---|---|
//! | headers | hash | header, height, work, median time, greatest time; never deleted, stale branches included |
//! | best | height (BE) | hash |
//! | meta | `layout`, `chain`, `tip`, `release` | layout number; chain; hash of the best block; the node's last reported release |

use std::path::Path;

use bitcoin::BlockHash;
use bitcoin::block::Header;
use bitcoin::hashes::Hash;
use heed::{RoTxn, RwTxn, WithoutTls};
use outrigger_disk::{Environment, Opening, StoreError, Table};
use outrigger_node::ChainIdentity;

use super::chain::{Entry, MEDIAN_TIME_SPAN, hash_from};
use super::error::MirrorError;

pub const LAYOUT: u8 = 2;
const LAYOUT_KEY: &[u8] = b"layout";
const CHAIN_KEY: &[u8] = b"chain";
const RELEASE_KEY: &[u8] = b"release";
const TIP_KEY: &[u8] = b"tip";

/// In bytes: space for about fifty million headers.
const MAP_SIZE: usize = 16 << 30;

/// The LMDB readers. Each snapshot of the chain holds one.
const MAX_READERS: u32 = 1024;

type Result<T> = std::result::Result<T, MirrorError>;

pub struct Mirror {
    env: Environment,
    tables: Tables,
}

#[derive(Clone, Copy)]
struct Tables {
    headers: Table,
    best: Table,
    meta: Table,
}

/// A consistent view of the mirror.
pub struct Moment {
    txn: RoTxn<'static, WithoutTls>,
    tables: Tables,
    pub tip: Entry,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// The blocks that left the best chain, the highest first.
    pub disconnected: Vec<(BlockHash, u32)>,
    /// The blocks that joined it, the lowest first.
    pub connected: Vec<(BlockHash, u32)>,
}

impl Mirror {
    /// Opens or creates the mirror of a chain with this genesis block. Replaces a damaged file, since the node has all of
    /// its content.
    ///
    /// # Errors
    /// [`MirrorError::OtherChain`] if the folder has the mirror of another chain, or an error of the file.
    pub fn open(folder: &Path, chain: &ChainIdentity, genesis: Header) -> Result<Self> {
        std::fs::create_dir_all(folder).map_err(StoreError::from)?;
        let file = folder.join(outrigger_disk::DATA_FILE);
        if file.exists()
            && let Err(error) = outrigger_disk::check(folder, LAYOUT_KEY, &[LAYOUT])
        {
            tracing::warn!(%error, "the mirror of the node's headers cannot be used; the host rebuilds it");
            std::fs::remove_file(&file).map_err(StoreError::from)?;
        }
        let opening = Opening { map_size: MAP_SIZE, max_readers: MAX_READERS, tables: 3, lazy: true };
        let env = Environment::open(folder, &opening)?;
        let mut txn = env.write()?;
        let tables = Tables {
            headers: env.make_table(&mut txn, "headers")?,
            best: env.make_table(&mut txn, "best")?,
            meta: env.make_table(&mut txn, "meta")?,
        };
        if tables.meta.get(&txn, LAYOUT_KEY)?.is_none() {
            let entry = Entry::genesis(genesis);
            tables.meta.put(&mut txn, LAYOUT_KEY, &[LAYOUT])?;
            tables.put_best(&mut txn, &entry)?;
            tables.meta.put(&mut txn, TIP_KEY, entry.hash().as_byte_array())?;
            tables.meta.put(&mut txn, CHAIN_KEY, &chain.to_bytes())?;
        }
        let found = tables.meta.get(&txn, CHAIN_KEY)?.and_then(ChainIdentity::from_bytes);
        let found = found.ok_or(MirrorError::Row("meta"))?;
        if found != *chain {
            return Err(MirrorError::OtherChain { found, expected: chain.clone() });
        }
        txn.commit()?;
        Ok(Self { env, tables })
    }

    /// The release that the node reported last; `None` before the first report.
    pub fn release(&self) -> Result<Option<u32>> {
        let txn = self.env.snapshot()?;
        let bytes = self.tables.meta.get(&txn, RELEASE_KEY)?.and_then(|bytes| bytes.try_into().ok());
        Ok(bytes.map(u32::from_le_bytes))
    }

    pub fn set_release(&self, release: u32) -> Result<()> {
        let mut txn = self.env.write()?;
        self.tables.meta.put(&mut txn, RELEASE_KEY, &release.to_le_bytes())?;
        txn.commit()?;
        Ok(())
    }

    pub fn moment(&self) -> Result<Moment> {
        let txn = self.env.snapshot()?;
        let tip = self.tables.tip(&txn)?;
        Ok(Moment { txn, tables: self.tables, tip })
    }

    /// Replaces the best chain after `base` by `headers`, which may be empty. `base` may be on another branch.
    ///
    /// # Errors
    /// [`MirrorError::BadHeader`] if `base` is unknown or a header is invalid, or an error of the file. The mirror is unchanged.
    pub fn extend(&self, base: BlockHash, headers: &[Header]) -> Result<Change> {
        let mut txn = self.env.write()?;
        let tip = self.tables.tip(&txn)?;
        let base = self.tables.entry(&txn, &base)?.ok_or(MirrorError::BadHeader(base))?;
        let mut change = Change::default();
        // The branch from the best chain to `base`, if `base` is not on the best chain.
        let mut branch = vec![base];
        while let Some(lowest) = branch.last().copied().filter(|entry| entry.height > 0) {
            if self.tables.best_at(&txn, lowest.height)? == Some(lowest.hash()) {
                break;
            }
            let parent = self.tables.entry(&txn, &lowest.header.prev_blockhash)?;
            branch.push(parent.ok_or(MirrorError::Row("headers"))?);
        }
        let fork = branch.pop().map_or(0, |entry| entry.height);
        for height in (fork + 1..=tip.height).rev() {
            let hash = self.tables.best_at(&txn, height)?.ok_or(MirrorError::Row("best"))?;
            change.disconnected.push((hash, height));
            self.tables.best.delete(&mut txn, &height.to_be_bytes())?;
        }
        let mut times = self.tables.times_up_to(&txn, &base)?;
        let mut last = base;
        for entry in branch.into_iter().rev() {
            self.tables.put_best(&mut txn, &entry)?;
            change.connected.push((entry.hash(), entry.height));
        }
        for header in headers {
            let entry = last.next(*header, &times).ok_or_else(|| MirrorError::BadHeader(header.block_hash()))?;
            self.tables.put_best(&mut txn, &entry)?;
            change.connected.push((entry.hash(), entry.height));
            times.push(header.time);
            last = entry;
        }
        self.tables.meta.put(&mut txn, TIP_KEY, last.hash().as_byte_array())?;
        txn.commit()?;
        Ok(change)
    }

    /// Stores the headers of a side branch on `base`.
    pub fn keep(&self, base: BlockHash, headers: &[Header]) -> Result<()> {
        let mut txn = self.env.write()?;
        let mut last = self.tables.entry(&txn, &base)?.ok_or(MirrorError::BadHeader(base))?;
        let mut times = self.tables.times_up_to(&txn, &last)?;
        for header in headers {
            last = last.next(*header, &times).ok_or_else(|| MirrorError::BadHeader(header.block_hash()))?;
            self.tables.headers.put(&mut txn, last.hash().as_byte_array(), &last.to_bytes())?;
            times.push(header.time);
        }
        Ok(txn.commit()?)
    }
}

impl Tables {
    fn entry(&self, txn: &RoTxn<'_, WithoutTls>, hash: &BlockHash) -> Result<Option<Entry>> {
        let row = self.headers.get(txn, hash.as_byte_array())?;
        row.map(|row| Entry::from_bytes(row).ok_or(MirrorError::Row("headers"))).transpose()
    }

    fn best_at(&self, txn: &RoTxn<'_, WithoutTls>, height: u32) -> Result<Option<BlockHash>> {
        let row = self.best.get(txn, &height.to_be_bytes())?;
        row.map(|row| hash_from(row).ok_or(MirrorError::Row("best"))).transpose()
    }

    fn tip(&self, txn: &RoTxn<'_, WithoutTls>) -> Result<Entry> {
        let hash = self.meta.get(txn, TIP_KEY)?.and_then(hash_from).ok_or(MirrorError::Row("meta"))?;
        self.entry(txn, &hash)?.ok_or(MirrorError::Row("headers"))
    }

    /// The times of up to ten blocks that end with `last`, the oldest first.
    fn times_up_to(&self, txn: &RoTxn<'_, WithoutTls>, last: &Entry) -> Result<Vec<u32>> {
        let mut times = vec![last.header.time];
        let mut entry = *last;
        while times.len() < MEDIAN_TIME_SPAN - 1 && entry.height > 0 {
            entry = self.entry(txn, &entry.header.prev_blockhash)?.ok_or(MirrorError::Row("headers"))?;
            times.push(entry.header.time);
        }
        times.reverse();
        Ok(times)
    }

    fn put_best(&self, txn: &mut RwTxn<'_>, entry: &Entry) -> Result<()> {
        let hash = entry.hash();
        self.headers.put(txn, hash.as_byte_array(), &entry.to_bytes())?;
        self.best.put(txn, &entry.height.to_be_bytes(), hash.as_byte_array())?;
        Ok(())
    }
}

impl Moment {
    /// The entry of a block on any branch.
    pub fn entry(&self, hash: &BlockHash) -> Result<Option<Entry>> {
        self.tables.entry(&self.txn, hash)
    }

    pub fn best_at(&self, height: u32) -> Result<Option<BlockHash>> {
        self.tables.best_at(&self.txn, height)
    }

    pub fn entry_at(&self, height: u32) -> Result<Option<Entry>> {
        self.best_at(height)?.map_or(Ok(None), |hash| self.entry(&hash))
    }

    pub fn is_best(&self, entry: &Entry) -> Result<bool> {
        Ok(self.best_at(entry.height)? == Some(entry.hash()))
    }
}

#[cfg(test)]
mod tests {
    use bitcoin::Network;

    use super::super::chain::tests::mined;
    use super::*;

    fn genesis() -> Header {
        bitcoin::constants::genesis_block(Network::Regtest).header
    }

    fn open(folder: &Path) -> Mirror {
        Mirror::open(folder, &ChainIdentity::of(Network::Regtest), genesis()).unwrap()
    }

    fn chain(base: Header, count: u32, mark: u8) -> Vec<Header> {
        let mut headers = Vec::new();
        let mut last = base;
        for _ in 0..count {
            last = mined(last.block_hash(), last.time + 600, mark);
            headers.push(last);
        }
        headers
    }

    #[test]
    fn mirror_follows_branches_and_keeps_all_headers() {
        let folder = tempfile::tempdir().unwrap();
        let mirror = open(folder.path());
        let first = chain(genesis(), 5, 1);
        let change = mirror.extend(genesis().block_hash(), &first).unwrap();
        assert_eq!((change.disconnected.len(), change.connected.len()), (0, 5));
        assert_eq!(mirror.moment().unwrap().tip.height, 5);
        let before = mirror.moment().unwrap();
        let second = chain(first[1], 4, 2);
        let change = mirror.extend(first[1].block_hash(), &second).unwrap();
        assert_eq!(change.disconnected.iter().map(|(_, height)| *height).collect::<Vec<_>>(), [5, 4, 3]);
        assert_eq!(change.connected.first().unwrap(), &(second[0].block_hash(), 3));
        let moment = mirror.moment().unwrap();
        assert_eq!((moment.tip.height, moment.tip.hash()), (6, second[3].block_hash()));
        let stale = moment.entry(&first[4].block_hash()).unwrap().unwrap();
        assert!(!moment.is_best(&stale).unwrap() && before.is_best(&stale).unwrap(), "a moment does not change");
        // Back to the first branch, whose headers are known, and one block more.
        let third = chain(first[4], 1, 3);
        let change = mirror.extend(first[4].block_hash(), &third).unwrap();
        assert_eq!((change.disconnected.len(), change.connected.len()), (4, 4));
        // Back to an ancestor.
        let change = mirror.extend(first[0].block_hash(), &[]).unwrap();
        assert_eq!((change.disconnected.len(), change.connected.len()), (5, 0));
        assert_eq!(mirror.moment().unwrap().tip.height, 1);
        assert!(mirror.extend(genesis().block_hash(), &second).is_err(), "they follow another");
        assert_eq!(mirror.moment().unwrap().tip.height, 1, "nothing was changed");
        drop((moment, before, mirror));
        let mirror = open(folder.path());
        assert_eq!(mirror.moment().unwrap().tip.hash(), first[0].block_hash());
    }

    #[test]
    fn mirror_that_is_damaged_is_made_anew() {
        let folder = tempfile::tempdir().unwrap();
        let mirror = open(folder.path());
        mirror.extend(genesis().block_hash(), &chain(genesis(), 50, 1)).unwrap();
        drop(mirror);
        let file = folder.path().join(outrigger_disk::DATA_FILE);
        let mut bytes = std::fs::read(&file).unwrap();
        bytes[4096 * 2..].fill(0x55);
        std::fs::write(&file, bytes).unwrap();
        assert_eq!(open(folder.path()).moment().unwrap().tip.height, 0);
    }

    #[test]
    fn mirror_of_another_chain_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        drop(open(folder.path()));
        let custom = ChainIdentity::signet(bitcoin::ScriptBuf::from_bytes(vec![0x51]));
        let refused = Mirror::open(folder.path(), &custom, genesis()).err().unwrap().to_string();
        assert_eq!(refused, "the mirror is of regtest, but the host is configured for signet with challenge 51");
        open(folder.path());
    }
}
