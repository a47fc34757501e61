//! Writes the tables, in one transaction per change.

use bitcoin::block::Header;
use bitcoin::consensus::encode::VarInt;
use bitcoin::hashes::Hash;
use bitcoin::{BlockHash, OutPoint};
use heed::RwTxn;
use outrigger_service::chain::SpentOutputs;
use outrigger_service::wire;

use super::rows::{BlockEntry, TxRow, outpoint_key, push_coin};
use super::{Store, meta};
use crate::EmbeddedError;
use crate::decode::NamedBlock;
use outrigger_script::parse::is_unspendable;

impl Store {
    /// Begins a write transaction. Waits until any other has ended.
    pub fn write(&self) -> Result<RwTxn<'_>, EmbeddedError> {
        Ok(self.env.write()?)
    }

    #[cfg(test)]
    pub fn put_layout(&self, txn: &mut RwTxn, layout: u64) -> Result<(), EmbeddedError> {
        Ok(self.meta.put(txn, meta::LAYOUT, &layout.to_le_bytes())?)
    }

    pub fn put_header_height(&self, txn: &mut RwTxn, height: u32) -> Result<(), EmbeddedError> {
        Ok(self.meta.put(txn, meta::HEADERS, &u64::from(height).to_le_bytes())?)
    }

    pub fn put_entry(&self, txn: &mut RwTxn, hash: &BlockHash, entry: &BlockEntry) -> Result<(), EmbeddedError> {
        Ok(self.index.put(txn, hash.as_byte_array(), &entry.to_row())?)
    }

    /// Writes the entry of a new block, which replaces its parent as a leaf.
    pub fn insert_entry(&self, txn: &mut RwTxn, hash: &BlockHash, entry: &BlockEntry) -> Result<(), EmbeddedError> {
        self.put_entry(txn, hash, entry)?;
        self.leaves.delete(txn, entry.header.prev_blockhash.as_byte_array())?;
        Ok(self.leaves.put(txn, hash.as_byte_array(), &[])?)
    }

    pub fn put_block(&self, txn: &mut RwTxn, hash: &BlockHash, raw: &[u8]) -> Result<(), EmbeddedError> {
        Ok(self.blocks.put(txn, hash.as_byte_array(), raw)?)
    }

    /// Connects a validated block: writes its coins, undo data, transactions and digest, and makes it the tip.
    pub fn connect(
        &self,
        txn: &mut RwTxn,
        hash: &BlockHash,
        height: u32,
        block: &NamedBlock,
        spent: &Vec<SpentOutputs>,
    ) -> Result<(), EmbeddedError> {
        let mut offset = Header::SIZE + VarInt::from(block.txdata.len()).size();
        let mut coin_bytes = Vec::new();
        for ((index, (tx, ids)), spent) in (0_u32..).zip(block.transactions()).zip(spent) {
            let txid = ids.txid;
            for input in tx.input.iter().take(spent.coins.len()) {
                self.coins.delete(txn, &outpoint_key(&input.previous_output))?;
            }
            for (vout, output) in (0_u32..).zip(&tx.output) {
                if is_unspendable(output.script_pubkey.as_bytes()) {
                    continue;
                }
                coin_bytes.clear();
                push_coin(&mut coin_bytes, output, height, index == 0);
                self.coins.put(txn, &outpoint_key(&OutPoint { txid, vout }), &coin_bytes)?;
            }
            let len = tx.total_size();
            let row = TxRow { block: *hash, index, offset: saturated(offset), len: saturated(len) };
            self.transactions.put(txn, txid.as_byte_array(), &row.to_row())?;
            offset += len;
        }
        self.undo.put(txn, hash.as_byte_array(), &wire::to_bytes(spent))?;
        self.put_digest(txn, hash, height, block, spent)?;
        self.put_tip(txn, hash, height)
    }

    /// Makes a block the tip. Does not change the coins: the genesis block's outputs are unspendable.
    pub fn put_tip(&self, txn: &mut RwTxn, hash: &BlockHash, height: u32) -> Result<(), EmbeddedError> {
        self.best.put(txn, &height.to_be_bytes(), hash.as_byte_array())?;
        Ok(self.meta.put(txn, meta::TIP, hash.as_byte_array())?)
    }

    /// Writes the undo data of the genesis block.
    pub fn put_spent(&self, txn: &mut RwTxn, hash: &BlockHash, spent: &Vec<SpentOutputs>) -> Result<(), EmbeddedError> {
        Ok(self.undo.put(txn, hash.as_byte_array(), &wire::to_bytes(spent))?)
    }

    /// Disconnects the tip. Its undo data stays, since callers may still ask for it.
    pub fn disconnect(
        &self,
        txn: &mut RwTxn,
        hash: &BlockHash,
        height: u32,
        block: &NamedBlock,
        parent: &BlockHash,
    ) -> Result<(), EmbeddedError> {
        let spent = self.spent(txn, hash)?.ok_or_else(|| EmbeddedError::corrupt("undo", hash))?;
        if spent.len() != block.txdata.len() {
            return Err(EmbeddedError::corrupt("undo", hash));
        }
        let transactions: Vec<_> = block.transactions().zip(&spent).collect();
        for ((tx, ids), spent) in transactions.into_iter().rev() {
            let txid = ids.txid;
            for (vout, _) in (0_u32..).zip(&tx.output) {
                self.coins.delete(txn, &outpoint_key(&OutPoint { txid, vout }))?;
            }
            for (input, coin) in tx.input.iter().zip(&spent.coins) {
                let mut bytes = Vec::new();
                push_coin(&mut bytes, &coin.output, coin.height, coin.coinbase);
                self.coins.put(txn, &outpoint_key(&input.previous_output), &bytes)?;
            }
            self.transactions.delete(txn, txid.as_byte_array())?;
        }
        self.best.delete(txn, &height.to_be_bytes())?;
        self.digests.delete(txn, &height.to_be_bytes())?;
        Ok(self.meta.put(txn, meta::TIP, parent.as_byte_array())?)
    }
}

/// Converts an offset or length in a block, which consensus keeps far below 2^32 bytes.
fn saturated(size: usize) -> u32 {
    u32::try_from(size).unwrap_or(u32::MAX)
}
