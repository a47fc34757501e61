//! Transactions that a client adds or removes (importprunedfunds, removeprunedfunds).

use bitcoin::consensus::deserialize;
use bitcoin::{BlockHash, Transaction, Txid};
use outrigger_service::chain::BlockRef;
use outrigger_service::wallet::Ownership;
use outrigger_service::{ErrorKind, Result as ServiceResult, ServiceError};

use super::edits::unknown_transaction;
use super::error::Result;
use super::live::Wallet;
use super::matching::Met;
use super::synced::header_time;
use super::write::Write;

impl Wallet {
    /// Adds a transaction at a position in a block, as if the wallet had followed it there.
    pub fn add_confirmed(&self, raw: &[u8], block: BlockHash, index: u32) -> ServiceResult<()> {
        let refused = |detail: &str| ServiceError::new(ErrorKind::Refused, detail);
        let transaction: Transaction = deserialize(raw).map_err(|_| refused("not a transaction"))?;
        let unknown = || ServiceError::new(ErrorKind::NotFound, "Block not found in chain");
        loop {
            let retreats = self.feed.retreats();
            let info = self.shared.block_info(BlockRef::Hash { hash: block })?;
            let info = info.filter(|info| info.in_best_chain && info.height <= self.synced().height);
            let info = info.ok_or_else(unknown)?;
            // From here on, the follower rewinds the wallet with a write if this block leaves the chain.
            self.feed.note_height(info.height);
            let place = (block, info.height, index, header_time(&info));
            let written = self.write(|write| {
                // The wallet has gone back to an earlier block since the query.
                if write.wallet.feed.retreats() != retreats {
                    return Ok(None);
                }
                write.add_confirmed(&transaction, place).map(Some)
            })?;
            match written {
                Some(true) => return Ok(()),
                Some(false) => return Err(refused("No output is the wallet's")),
                None => {}
            }
        }
    }

    pub fn remove_transaction(&self, txid: Txid) -> ServiceResult<()> {
        Ok(self.write(|write| {
            let row = write.t.transaction(write.reads(), &txid)?.ok_or_else(unknown_transaction)?;
            let children = write.children(&row)?;
            write.forget_mempool_conflicts(txid)?;
            write.remove(row)?;
            // The wallet no longer knows the outputs that they spend.
            children.into_iter().try_for_each(|child| write.rederive_debit(child))
        })?)
    }
}

impl Write<'_> {
    fn add_confirmed(&mut self, transaction: &Transaction, place: (BlockHash, u32, u32, u32)) -> Result<bool> {
        for output in &transaction.output {
            let known = self.t.script(self.reads(), &output.script_pubkey)?;
            if known.is_some_and(|known| known.ownership() != Ownership::None) {
                let met = Met::Now(self.wallet.shared.node.time());
                self.connect_transaction(transaction, transaction.compute_txid(), place, met)?;
                return Ok(true);
            }
        }
        Ok(false)
    }
}
