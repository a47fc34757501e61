//! Snapshots of the chain.

use bitcoin::consensus::serialize;
use bitcoin::hashes::Hash;
use bitcoin::{BlockHash, Network, OutPoint, Txid};
use outrigger_node::CoinScripts;
use outrigger_service::chain::{
    BlockInfo, BlockRef, BlockState, ChainInfo, ChainTip, Coin, CoinSearch, ConfirmedTransaction, SpentOutputs, Tip,
    UnspentOutput,
};
use outrigger_service::wire::Blob;

use super::EmbeddedError;
use super::store::rows::{BlockEntry, Validity};
use super::store::{Reading, Store};

/// The chain as it stood when the snapshot was taken.
///
/// It keeps LMDB from reusing pages, so it must not outlive the call that it serves. It may move to another thread, but
/// two threads may not use it at once.
pub struct ChainSnapshot {
    pub(super) store: Store,
    pub(super) txn: Reading<'static>,
    network: Network,
    tip: Tip,
}

impl ChainSnapshot {
    pub(super) fn take(store: &Store, network: Network) -> Result<Self, EmbeddedError> {
        let txn = store.read()?;
        let tip = tip(store, &txn)?;
        Ok(Self { store: store.clone(), txn, network, tip })
    }

    pub fn tip(&self) -> Tip {
        self.tip
    }

    pub fn info(&self) -> Result<ChainInfo, EmbeddedError> {
        Ok(ChainInfo {
            network: self.network,
            tip: self.tip,
            headers: self.store.header_height(&self.txn)?,
            size_on_disk: Some(self.store.size_on_disk()),
            coins: Some(self.store.coin_count(&self.txn)?),
            warnings: self.store.damage().iter().map(ToString::to_string).collect(),
        })
    }

    pub fn block_info(&self, block: BlockRef) -> Result<Option<BlockInfo>, EmbeddedError> {
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

    fn describe(&self, hash: BlockHash, entry: &BlockEntry) -> Result<BlockInfo, EmbeddedError> {
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

    fn is_best(&self, hash: &BlockHash, entry: &BlockEntry) -> Result<bool, EmbeddedError> {
        Ok(self.store.hash_at(&self.txn, entry.height)?.as_ref() == Some(hash))
    }

    pub fn block(&self, hash: BlockHash) -> Result<Option<Blob>, EmbeddedError> {
        Ok(self.store.raw_block(&self.txn, &hash)?.map(|raw| Blob(raw.to_vec())))
    }

    pub fn spent_outputs(&self, hash: BlockHash) -> Result<Option<Vec<SpentOutputs>>, EmbeddedError> {
        self.store.spent(&self.txn, &hash)
    }

    /// The genesis block's coinbase is `None`: it was never spendable.
    pub fn transaction(&self, txid: Txid) -> Result<Option<ConfirmedTransaction>, EmbeddedError> {
        let Some(row) = self.store.transaction(&self.txn, &txid)? else { return Ok(None) };
        let block = row.block();
        let raw = self.store.raw_block(&self.txn, &block)?.and_then(|raw| row.slice(raw));
        let raw = raw.ok_or_else(|| EmbeddedError::corrupt("transactions", txid))?;
        Ok(Some(ConfirmedTransaction { raw: Blob(raw.to_vec()), block, index: row.index() }))
    }

    pub fn coins(&self, outpoints: &[OutPoint]) -> Result<Vec<Option<Coin>>, EmbeddedError> {
        outpoints.iter().map(|outpoint| self.store.coin(&self.txn, outpoint)).collect()
    }

    pub fn coins_after(&self, outpoint: Option<&OutPoint>, limit: u32) -> Result<Vec<UnspentOutput>, EmbeddedError> {
        self.store.coins_after(&self.txn, outpoint, limit)
    }

    pub fn find_coins(
        &self,
        scripts: CoinScripts<'_>,
        outpoint: Option<&OutPoint>,
        limit: u32,
    ) -> Result<CoinSearch, EmbeddedError> {
        self.store.find_coins(&self.txn, scripts, outpoint, limit)
    }

    pub fn fork_point(&self, hash: BlockHash) -> Result<Option<BlockInfo>, EmbeddedError> {
        let Some(entry) = self.store.entry(&self.txn, &hash)? else { return Ok(None) };
        let (hash, entry) = self.last_best(hash, entry)?;
        self.describe(hash, &entry).map(Some)
    }

    fn last_best(&self, hash: BlockHash, entry: BlockEntry) -> Result<(BlockHash, BlockEntry), EmbeddedError> {
        let (mut hash, mut entry) = (hash, entry);
        while !self.is_best(&hash, &entry)? {
            hash = entry.header.prev_blockhash;
            entry = self.store.known_entry(&self.txn, &hash)?;
        }
        Ok((hash, entry))
    }

    /// The best chain's block at which this branch forks, and whether all blocks of the branch are stored.
    fn branch(&self, hash: BlockHash, entry: BlockEntry) -> Result<(BlockEntry, bool), EmbeddedError> {
        let (mut hash, mut entry, mut complete) = (hash, entry, true);
        while !self.is_best(&hash, &entry)? {
            complete &= entry.validity > Validity::Header;
            hash = entry.header.prev_blockhash;
            entry = self.store.known_entry(&self.txn, &hash)?;
        }
        Ok((entry, complete))
    }

    pub fn tips(&self) -> Result<Vec<ChainTip>, EmbeddedError> {
        let mut tips = Vec::new();
        for hash in self.store.leaves(&self.txn)? {
            // The tip need not be a leaf: headers, or failed blocks, may build on it.
            if hash == self.tip.hash {
                continue;
            }
            let entry = self.store.known_entry(&self.txn, &hash)?;
            let (fork, complete) = self.branch(hash, entry)?;
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
}

pub(super) fn tip(store: &Store, txn: &Reading) -> Result<Tip, EmbeddedError> {
    let hash = store.tip(txn)?.unwrap_or_else(BlockHash::all_zeros);
    let entry = store.known_entry(txn, &hash)?;
    Ok(Tip { hash, height: entry.height, time: entry.header.time, median_time: entry.median_time })
}
