//! The entries of a wallet in the index. A write adds entries before it stores the rows. A load adds the entries of all
//! stored rows.

use bitcoin::{OutPoint, Txid};
use outrigger_service::wallet::{TxState, WalletTransaction};

use crate::error::Result;
use crate::live::Wallet;
use crate::store::{OF_MEMPOOL, outpoint_from, txid_from};
use outrigger_node::interest::{outpoint_interest, script_hash_interest, transaction_interest};

impl Wallet {
    fn enter_interest(&self, interest: u64) {
        self.shared.follower.index.add(self.slot, interest);
    }

    pub(crate) fn follow_script(&self, key: &[u8]) {
        self.enter_interest(script_hash_interest(key));
    }

    pub(crate) fn follow_coin(&self, outpoint: &OutPoint) {
        self.enter_interest(outpoint_interest(outpoint));
    }

    pub(crate) fn follow_transaction(&self, row: &WalletTransaction) {
        match row.state {
            TxState::Confirmed { height, .. } => return self.feed.note_height(height),
            TxState::Conflicted { height, .. } => self.feed.note_height(height),
            TxState::InMempool | TxState::Inactive | TxState::Abandoned => {}
        }
        self.enter_interest(transaction_interest(&row.txid));
        row.inputs.iter().for_each(|input| self.follow_coin(input));
    }

    pub(crate) fn follow_conflict(&self, txid: &Txid) {
        self.enter_interest(transaction_interest(txid));
    }

    /// Adds the entries of all stored rows, and reads the sums of the coins.
    pub(crate) fn follow_stored(&self) -> Result<()> {
        let (txn, t) = (self.store.read()?, &self.store.tables);
        for entry in t.scripts.iter(&txn)? {
            self.follow_script(entry?.0);
        }
        for entry in t.coins.iter(&txn)? {
            self.follow_coin(&outpoint_from(entry?.0)?);
        }
        for table in [t.unconfirmed, t.conflicted] {
            for entry in table.iter(&txn)? {
                self.follow_transaction(&t.transaction_at(&txn, entry?.1)?);
            }
        }
        for entry in t.mempool_conflicts.prefix_iter(&txn, &[OF_MEMPOOL])? {
            self.follow_conflict(&txid_from(entry?.0.get(1..33).unwrap_or_default())?);
        }
        self.sums.at(t, &txn)?;
        Ok(())
    }
}
