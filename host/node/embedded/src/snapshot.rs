//! Snapshots of the chain.

use std::ops::Range;

use bitcoin::consensus::serialize;
use bitcoin::hashes::Hash;
use bitcoin::{BlockHash, Network, OutPoint, Txid};
use outrigger_disk::StoreError;
use outrigger_node::search::{Found, FoundBlock, MAX_READ, matching};
use outrigger_node::{CoinScripts, Findings, Result, ScriptSet, Snapshot};
use outrigger_service::chain::{
    BlockInfo, BlockRef, BlockState, ChainInfo, ChainTip, Coin, CoinSearch, ConfirmedTransaction, SpentOutputs, Tip,
    UnspentOutput,
};
use outrigger_service::wire::Blob;

use super::EmbeddedError;
use super::store::digests::Digest;
use super::store::rows::{BlockEntry, Validity};
use super::store::{Reading, Store};

/// The chain at the time of the snapshot.
///
/// It keeps LMDB from reusing pages, so it must not outlive the call that it serves. It may move to another thread, but
/// two threads may not use it at once.
pub struct ChainSnapshot {
    store: Store,
    txn: Reading<'static>,
    network: Network,
    tip: Tip,
}

impl ChainSnapshot {
    pub(super) fn take(store: &Store, network: Network) -> Result<Self> {
        let txn = store.read()?;
        let tip = tip(store, &txn)?;
        Ok(Self { store: store.clone(), txn, network, tip })
    }

    fn describe(&self, hash: BlockHash, entry: &BlockEntry) -> Result<BlockInfo> {
        let in_best_chain = self.is_best(&hash, entry)?;
        let next = match entry.height.checked_add(1).filter(|_| in_best_chain) {
            Some(height) => self.store.hash_at(&self.txn, height)?,
            None => None,
        };
        let header = serialize(&entry.header).try_into().map_err(|_| EmbeddedError::corrupt("index", hash))?;
        Ok(BlockInfo {
            hash,
            header,
            height: entry.height,
            chain_work: entry.work.to_be_bytes(),
            transactions: Some(entry.transactions),
            median_time: entry.median_time,
            state: entry.state(),
            in_best_chain,
            next,
            size: Some(entry.size),
        })
    }

    fn is_best(&self, hash: &BlockHash, entry: &BlockEntry) -> Result<bool> {
        Ok(self.store.hash_at(&self.txn, entry.height)?.as_ref() == Some(hash))
    }

    /// The best chain's block at which this branch forks, and whether all blocks of the branch are stored.
    fn branch(&self, hash: BlockHash, entry: BlockEntry) -> Result<(BlockHash, BlockEntry, bool)> {
        let (mut hash, mut entry, mut complete) = (hash, entry, true);
        while !self.is_best(&hash, &entry)? {
            complete &= entry.validity > Validity::Header;
            hash = entry.header.prev_blockhash;
            entry = self.store.known_entry(&self.txn, &hash)?;
        }
        Ok((hash, entry, complete))
    }

    /// Reads a block whose digest matches. Also returns its size in bytes.
    fn read_matching(&self, digest: &Digest, wanted: &ScriptSet) -> Result<(FoundBlock, usize)> {
        let hash = digest.block();
        let block = match self.store.found_block(&self.txn, &hash) {
            // The caller reports the block as unreadable and continues with the others.
            Err(EmbeddedError::Store(StoreError::Damage(_))) => None,
            block => block?,
        };
        let bytes = block.as_ref().map_or(0, |(_, bytes)| *bytes);
        let found = block.map(|(block, _)| {
            let time = block.header.time;
            // Without undo data `matching` keeps every transaction, since any may spend a wanted output.
            let spent = self.store.spent(&self.txn, &hash).ok().flatten().unwrap_or_default();
            Found { time, transactions: matching(block, &[], &spent, wanted) }
        });
        let found = FoundBlock { hash, height: digest.height, max_time: digest.max_time(), found };
        Ok((found, bytes))
    }
}

impl Snapshot for ChainSnapshot {
    fn tip(&self) -> Tip {
        self.tip
    }

    fn info(&self) -> Result<ChainInfo> {
        Ok(ChainInfo {
            network: self.network,
            tip: self.tip,
            headers: self.store.header_height(&self.txn)?,
            size_on_disk: Some(self.store.size_on_disk()),
            coins: Some(self.store.coin_count(&self.txn)?),
            warnings: self.store.damage().iter().map(ToString::to_string).collect(),
        })
    }

    fn block_info(&self, block: BlockRef) -> Result<Option<BlockInfo>> {
        let hash = match block {
            BlockRef::Hash { hash } => hash,
            BlockRef::Height { height } => match self.store.hash_at(&self.txn, height)? {
                Some(hash) => hash,
                None => return Ok(None),
            },
        };
        let Some(entry) = self.store.entry(&self.txn, &hash)? else { return Ok(None) };
        self.describe(hash, &entry).map(Some)
    }

    fn block(&self, hash: BlockHash) -> Result<Option<Blob>> {
        Ok(self.store.raw_block(&self.txn, &hash)?.map(|raw| Blob(raw.to_vec())))
    }

    fn spent_outputs(&self, hash: BlockHash) -> Result<Option<Vec<SpentOutputs>>> {
        Ok(self.store.spent(&self.txn, &hash)?)
    }

    /// The genesis block's coinbase is `None`: it was never spendable.
    fn transaction(&self, txid: Txid) -> Result<Option<ConfirmedTransaction>> {
        let Some(row) = self.store.transaction(&self.txn, &txid)? else { return Ok(None) };
        let block = row.block;
        let raw = self.store.raw_block(&self.txn, &block)?.and_then(|raw| row.slice(raw));
        let raw = raw.ok_or_else(|| EmbeddedError::corrupt("transactions", txid))?;
        Ok(Some(ConfirmedTransaction { raw: Blob(raw.to_vec()), block, index: row.index }))
    }

    fn coins(&self, outpoints: &[OutPoint]) -> Result<Vec<Option<Coin>>> {
        outpoints.iter().map(|outpoint| Ok(self.store.coin(&self.txn, outpoint)?)).collect()
    }

    fn coins_after(&self, outpoint: Option<&OutPoint>, limit: u32) -> Result<Vec<UnspentOutput>> {
        Ok(self.store.coins_after(&self.txn, outpoint, limit)?)
    }

    fn find_coins(&self, scripts: CoinScripts<'_>, outpoint: Option<&OutPoint>, limit: u32) -> Result<CoinSearch> {
        Ok(self.store.find_coins(&self.txn, scripts, outpoint, limit)?)
    }

    fn fork_point(&self, hash: BlockHash) -> Result<Option<BlockInfo>> {
        let Some(entry) = self.store.entry(&self.txn, &hash)? else { return Ok(None) };
        let (hash, entry, _) = self.branch(hash, entry)?;
        self.describe(hash, &entry).map(Some)
    }

    fn tips(&self) -> Result<Vec<ChainTip>> {
        let mut tips = Vec::new();
        for hash in self.store.leaves(&self.txn)? {
            // The tip need not be a leaf: headers, or failed blocks, may build on it.
            if hash == self.tip.hash {
                continue;
            }
            let entry = self.store.known_entry(&self.txn, &hash)?;
            let (_, fork, complete) = self.branch(hash, entry)?;
            let branch_length = entry.height.saturating_sub(fork.height);
            let state = match entry.state() {
                BlockState::Failed => BlockState::Failed,
                state if complete => state,
                _ => BlockState::HeaderOnly,
            };
            tips.push(ChainTip { hash, height: entry.height, branch_length, state });
        }
        tips.sort_by_key(|tip| std::cmp::Reverse((tip.height, tip.hash)));
        let entry = self.store.known_entry(&self.txn, &self.tip.hash)?;
        let best = ChainTip { hash: self.tip.hash, height: self.tip.height, branch_length: 0, state: entry.state() };
        tips.insert(0, best);
        Ok(tips)
    }

    fn max_time(&self, height: u32) -> Result<u32> {
        let digest = self.store.digest(&self.txn, height)?;
        Ok(digest.ok_or_else(|| EmbeddedError::corrupt("digests", height))?.max_time())
    }

    /// Searches the best chain's blocks at these heights. Reads only blocks whose digest matches. An unreadable block is
    /// not an error: its `found` is `None`.
    fn find(&self, heights: Range<u32>, wanted: &ScriptSet) -> Result<Findings> {
        let mut findings = Findings { tip: self.tip.hash, blocks: Vec::new(), next: heights.end };
        let mut read = 0;
        for digest in self.store.digests_from(&self.txn, heights.start)? {
            let digest = digest?;
            if digest.height >= heights.end {
                break;
            }
            if !digest.hashes().any(|hash| wanted.has(hash)) {
                continue;
            }
            let (block, bytes) = self.read_matching(&digest, wanted)?;
            findings.blocks.push(block);
            read += bytes;
            if read > MAX_READ {
                findings.next = digest.height + 1;
                break;
            }
        }
        Ok(findings)
    }
}

pub(super) fn tip(store: &Store, txn: &Reading) -> std::result::Result<Tip, EmbeddedError> {
    let hash = store.tip(txn)?.unwrap_or_else(BlockHash::all_zeros);
    Ok(store.known_entry(txn, &hash)?.tip(hash))
}
