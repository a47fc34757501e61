//! Reads the tables, in a snapshot or within a write.

use std::collections::HashSet;
use std::ops::Bound;

use bitcoin::consensus::deserialize;
use bitcoin::hashes::Hash;
use bitcoin::{Block, BlockHash, OutPoint, Script, Txid};
use foldhash::fast::RandomState;
use outrigger_node::CoinScripts;
use outrigger_service::chain::{Coin, CoinSearch, FoundCoin, SpentOutputs, UnspentOutput};
use outrigger_service::wire;

use super::rows::{BlockEntry, TxRow, coin_script, outpoint_key, read_coin, read_outpoint};
use super::{Reading, Store, meta};
use crate::EmbeddedError;
use crate::decode::{NamedBlock, decode_block};

/// The size of the found rows, in bytes, at which [`Store::coins_after`] and [`Store::find_coins`] stop.
const MAX_COIN_BYTES: usize = 1 << 20;

impl Store {
    /// `None` while the database is empty.
    pub fn tip(&self, txn: &Reading) -> Result<Option<BlockHash>, EmbeddedError> {
        self.meta.get(txn, meta::TIP)?.map(|bytes| read_hash("meta", bytes)).transpose()
    }

    pub fn coin_count(&self, txn: &Reading) -> Result<u64, EmbeddedError> {
        Ok(self.coins.len(txn)?)
    }

    pub fn header_height(&self, txn: &Reading) -> Result<u32, EmbeddedError> {
        let Some(bytes) = self.meta.get(txn, meta::HEADERS)? else { return Ok(0) };
        let height = u64::from_le_bytes(bytes.try_into().map_err(|_| EmbeddedError::corrupt("meta", "headers"))?);
        Ok(u32::try_from(height).unwrap_or(u32::MAX))
    }

    pub fn entry(&self, txn: &Reading, hash: &BlockHash) -> Result<Option<BlockEntry>, EmbeddedError> {
        let Some(bytes) = self.index.get(txn, hash.as_byte_array())? else { return Ok(None) };
        BlockEntry::from_row(bytes).map(Some).ok_or_else(|| EmbeddedError::corrupt("index", hash))
    }

    /// The entry of a block that must exist.
    pub fn known_entry(&self, txn: &Reading, hash: &BlockHash) -> Result<BlockEntry, EmbeddedError> {
        self.entry(txn, hash)?.ok_or_else(|| EmbeddedError::corrupt("index", hash))
    }

    pub fn entries(&self, txn: &Reading) -> Result<Vec<(BlockHash, BlockEntry)>, EmbeddedError> {
        let mut entries = Vec::new();
        for row in self.index.iter(txn)? {
            let (key, bytes) = row?;
            let hash = read_hash("index", key)?;
            entries.push((hash, BlockEntry::from_row(bytes).ok_or_else(|| EmbeddedError::corrupt("index", hash))?));
        }
        Ok(entries)
    }

    /// The best chain's block at a height.
    pub fn hash_at(&self, txn: &Reading, height: u32) -> Result<Option<BlockHash>, EmbeddedError> {
        self.best.get(txn, &height.to_be_bytes())?.map(|bytes| read_hash("best", bytes)).transpose()
    }

    /// A block's serialisation. The block was validated when it arrived; this read verifies its checksum.
    pub fn raw_block<'txn>(&self, txn: &'txn Reading, hash: &BlockHash) -> Result<Option<&'txn [u8]>, EmbeddedError> {
        Ok(self.blocks.get(txn, hash.as_byte_array())?)
    }

    /// A block that must exist.
    pub fn block(&self, txn: &Reading, hash: &BlockHash) -> Result<NamedBlock, EmbeddedError> {
        let raw = self.raw_block(txn, hash)?.ok_or_else(|| EmbeddedError::corrupt("blocks", hash))?;
        Ok(decode_block(raw).map_err(|_| self.blocks.damaged(hash.to_string()))?.0)
    }

    /// A block with its size in bytes.
    pub fn found_block(&self, txn: &Reading, hash: &BlockHash) -> Result<Option<(Block, usize)>, EmbeddedError> {
        let Some(raw) = self.raw_block(txn, hash)? else { return Ok(None) };
        let block = deserialize(raw).map_err(|_| self.blocks.damaged(hash.to_string()))?;
        Ok(Some((block, raw.len())))
    }

    /// The coins that the transactions of a block spent; `None` if it was never connected.
    pub fn spent(&self, txn: &Reading, hash: &BlockHash) -> Result<Option<Vec<SpentOutputs>>, EmbeddedError> {
        let Some(bytes) = self.undo.get(txn, hash.as_byte_array())? else { return Ok(None) };
        wire::from_bytes(bytes).map(Some).map_err(|_| EmbeddedError::corrupt("undo", hash))
    }

    pub fn coin(&self, txn: &Reading, outpoint: &OutPoint) -> Result<Option<Coin>, EmbeddedError> {
        let Some(bytes) = self.coins.get(txn, &outpoint_key(outpoint))? else { return Ok(None) };
        read_coin(bytes).map(Some).ok_or_else(|| EmbeddedError::corrupt("coins", outpoint))
    }

    /// The unspent outputs after `outpoint` in key order, or from the first: at most `limit`, and fewer if they reach
    /// [`MAX_COIN_BYTES`].
    pub fn coins_after(
        &self,
        txn: &Reading,
        outpoint: Option<&OutPoint>,
        limit: u32,
    ) -> Result<Vec<UnspentOutput>, EmbeddedError> {
        let key = outpoint.map(outpoint_key);
        let from = key.as_ref().map_or(Bound::Unbounded, |key| Bound::Excluded(key.as_slice()));
        let (mut coins, mut bytes) = (Vec::new(), 0);
        for row in self.coins.range(txn, &(from, Bound::Unbounded))?.take(limit as usize) {
            let (key, value) = row?;
            let damaged = || EmbeddedError::corrupt("coins", "a row");
            let outpoint = read_outpoint(key).ok_or_else(damaged)?;
            coins.push(UnspentOutput { outpoint, coin: read_coin(value).ok_or_else(damaged)? });
            bytes += value.len();
            if bytes >= MAX_COIN_BYTES {
                break;
            }
        }
        Ok(coins)
    }

    /// Searches the outputs that [`Store::coins_after`] lists for scripts: at most `limit` outputs, and fewer if the
    /// matches reach [`MAX_COIN_BYTES`].
    pub fn find_coins(
        &self,
        txn: &Reading,
        scripts: CoinScripts<'_>,
        outpoint: Option<&OutPoint>,
        limit: u32,
    ) -> Result<CoinSearch, EmbeddedError> {
        let wanted: HashSet<&[u8], RandomState> = scripts.iter().map(Script::as_bytes).collect();
        let after = outpoint.map(outpoint_key);
        let from = after.as_ref().map_or(Bound::Unbounded, |key| Bound::Excluded(key.as_slice()));
        let damaged = || EmbeddedError::corrupt("coins", "a row");
        let (mut found, mut bytes, mut searched, mut last) = (Vec::new(), 0, 0, None);
        for row in self.coins.range(txn, &(from, Bound::Unbounded))?.take(limit as usize) {
            let (key, value) = row?;
            // Nearly all rows are skipped, so their scripts are compared in place.
            if wanted.contains(coin_script(value).ok_or_else(damaged)?) {
                let outpoint = read_outpoint(key).ok_or_else(damaged)?;
                let coin = read_coin(value).ok_or_else(damaged)?;
                let block =
                    self.hash_at(txn, coin.height)?.ok_or_else(|| EmbeddedError::corrupt("best", coin.height))?;
                found.push(FoundCoin { output: UnspentOutput { outpoint, coin }, block });
                bytes += value.len();
            }
            (searched, last) = (searched + 1, Some(key));
            if bytes >= MAX_COIN_BYTES {
                break;
            }
        }
        let last = last.map(|key| read_outpoint(key).ok_or_else(damaged)).transpose()?;
        Ok(CoinSearch { found, searched, last })
    }

    /// Whether any output of a transaction is unspent.
    pub fn has_coin_of(&self, txn: &Reading, txid: &Txid) -> Result<bool, EmbeddedError> {
        Ok(self.coins.prefix_iter(txn, txid.as_byte_array())?.next().transpose()?.is_some())
    }

    /// The position of a transaction in the best chain.
    pub fn transaction(&self, txn: &Reading, txid: &Txid) -> Result<Option<TxRow>, EmbeddedError> {
        let Some(bytes) = self.transactions.get(txn, txid.as_byte_array())? else { return Ok(None) };
        TxRow::from_row(bytes).map(Some).ok_or_else(|| EmbeddedError::corrupt("transactions", txid))
    }

    pub fn leaves(&self, txn: &Reading) -> Result<Vec<BlockHash>, EmbeddedError> {
        let mut leaves = Vec::new();
        for row in self.leaves.iter(txn)? {
            leaves.push(read_hash("leaves", row?.0)?);
        }
        Ok(leaves)
    }
}

fn read_hash(table: &'static str, bytes: &[u8]) -> Result<BlockHash, EmbeddedError> {
    BlockHash::from_slice(bytes).map_err(|_| EmbeddedError::corrupt(table, "a row that is no hash"))
}
