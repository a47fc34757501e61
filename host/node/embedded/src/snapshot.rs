//! The chain as it stood at one moment.

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

/// The chain as it stood when the snapshot was taken, however much it changes.
///
/// It holds pages of the database from being used again, so it must not live longer than the call it serves. It may go
/// to another thread, but is not to be used by two at once.
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

    /// The best block.
    pub fn tip(&self) -> Tip {
        self.tip
    }

    /// Which chain this is and where it stands.
    ///
    /// # Errors
    /// As all functions here: when the database fails or is damaged.
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

    /// A block's entry in the index; none when it is unknown.
    ///
    /// # Errors
    /// As [`ChainSnapshot::info`].
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

    /// A block's serialisation, on any branch; none when it is unknown or only its header is known.
    ///
    /// # Errors
    /// As [`ChainSnapshot::info`].
    pub fn block(&self, hash: BlockHash) -> Result<Option<Blob>, EmbeddedError> {
        Ok(self.store.raw_block(&self.txn, &hash)?.map(|raw| Blob(raw.to_vec())))
    }

    /// What each transaction of a block that was connected once spent, the coinbase's entry being empty.
    ///
    /// # Errors
    /// As [`ChainSnapshot::info`].
    pub fn spent_outputs(&self, hash: BlockHash) -> Result<Option<Vec<SpentOutputs>>, EmbeddedError> {
        self.store.spent(&self.txn, &hash)
    }

    /// The confirmed transaction of an id on the best chain. The first block's is none: it was never spendable.
    ///
    /// # Errors
    /// As [`ChainSnapshot::info`].
    pub fn transaction(&self, txid: Txid) -> Result<Option<ConfirmedTransaction>, EmbeddedError> {
        let Some(row) = self.store.transaction(&self.txn, &txid)? else { return Ok(None) };
        let block = row.block();
        let raw = self.store.raw_block(&self.txn, &block)?.and_then(|raw| row.slice(raw));
        let raw = raw.ok_or_else(|| EmbeddedError::corrupt("transactions", txid))?;
        Ok(Some(ConfirmedTransaction { raw: Blob(raw.to_vec()), block, index: row.index() }))
    }

    /// The unspent outputs of the best chain at these outpoints, in their order.
    ///
    /// # Errors
    /// As [`ChainSnapshot::info`].
    pub fn coins(&self, outpoints: &[OutPoint]) -> Result<Vec<Option<Coin>>, EmbeddedError> {
        outpoints.iter().map(|outpoint| self.store.coin(&self.txn, outpoint)).collect()
    }

    /// The unspent outputs of the best chain that follow this one in the order of the table, or the first ones: at most so
    /// many, and fewer where their scripts are long.
    ///
    /// # Errors
    /// As [`ChainSnapshot::info`].
    pub fn coins_after(&self, outpoint: Option<&OutPoint>, limit: u32) -> Result<Vec<UnspentOutput>, EmbeddedError> {
        self.store.coins_after(&self.txn, outpoint, limit)
    }

    /// Looks for scripts among the coins that [`ChainSnapshot::coins_after`] lists: among at most so many, and fewer where
    /// many are found.
    ///
    /// # Errors
    /// As [`ChainSnapshot::info`].
    pub fn find_coins(
        &self,
        scripts: CoinScripts<'_>,
        outpoint: Option<&OutPoint>,
        limit: u32,
    ) -> Result<CoinSearch, EmbeddedError> {
        self.store.find_coins(&self.txn, scripts, outpoint, limit)
    }

    /// The last block that a block and the best chain share; none when the block is unknown.
    ///
    /// # Errors
    /// As [`ChainSnapshot::info`].
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

    /// The block in which the branch to this one leaves the best chain, and whether all blocks of the branch are stored.
    fn branch(&self, hash: BlockHash, entry: BlockEntry) -> Result<(BlockEntry, bool), EmbeddedError> {
        let (mut hash, mut entry, mut complete) = (hash, entry, true);
        while !self.is_best(&hash, &entry)? {
            complete &= entry.validity > Validity::Header;
            hash = entry.header.prev_blockhash;
            entry = self.store.known_entry(&self.txn, &hash)?;
        }
        Ok((entry, complete))
    }

    /// The ends of all branches, the best chain's first, then by falling height.
    ///
    /// # Errors
    /// As [`ChainSnapshot::info`].
    pub fn tips(&self) -> Result<Vec<ChainTip>, EmbeddedError> {
        let mut tips = Vec::new();
        for hash in self.store.leaves(&self.txn)? {
            // The best chain's end need not be a leaf: headers, or blocks that failed, may stand on it.
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

/// The best block as the tables tell it.
pub(super) fn tip(store: &Store, txn: &Reading) -> Result<Tip, EmbeddedError> {
    let hash = store.tip(txn)?.unwrap_or_else(BlockHash::all_zeros);
    let entry = store.known_entry(txn, &hash)?;
    Ok(Tip { hash, height: entry.height, time: entry.header.time, median_time: entry.median_time })
}
