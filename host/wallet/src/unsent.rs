//! Payments that are neither confirmed nor in the mempool although they could be. getwalletinfo warns of them, because
//! the balance includes neither the coins that they spend nor their change.

use bitcoin::Txid;
use bitcoin::absolute::LockTime;
use bitcoin::consensus::deserialize;
use outrigger_service::wallet::{Synced, TxState};

use super::error::Result;
use super::live::Wallet;
use super::live::outgoing::Unsent;
use super::send::REPLACED_BY;
use super::store::Reading;

const MAX_NAMED: usize = 3;

impl Wallet {
    /// The wallet's own transactions that are idle in a snapshot and were not replaced.
    pub(super) fn unsent(&self, txn: &Reading<'_>) -> Result<Vec<Unsent>> {
        if !self.shared.settings.broadcast {
            return Ok(Vec::new());
        }
        let idle: Vec<Txid> = self.outgoing.lock().idle.keys().copied().collect();
        let t = &self.store.tables;
        let mut unsent = Vec::new();
        for txid in idle {
            let Some(row) = t.transaction(txn, &txid)? else { continue };
            let is_replaced = row.metadata.iter().any(|(key, _)| key == REPLACED_BY);
            if row.state != TxState::Inactive
                || row.coinbase
                || !row.is_from_us()
                || is_replaced
                || t.is_mempool_conflicted(txn, &txid)?
            {
                continue;
            }
            let raw = t.serialised(txn, &txid)?.unwrap_or_default();
            let lock_time = deserialize::<bitcoin::Transaction>(raw).map_or(LockTime::ZERO, |raw| raw.lock_time);
            unsent.push(Unsent { txid, lock_time });
        }
        Ok(unsent)
    }

    /// How many payments should be in the mempool but are not; 0 if the wallet cannot be read.
    pub(super) fn count_unsent(&self) -> u64 {
        if self.outgoing.lock().idle.is_empty() {
            return 0;
        }
        let synced = self.synced();
        let unsent = self.store.read().and_then(|txn| self.unsent(&txn)).unwrap_or_default();
        unsent.iter().filter(|payment| payment.is_final(&synced)).count() as u64
    }

    pub(super) fn unsent_warning(&self, unsent: &[Unsent], tip: &Synced) -> Option<String> {
        let outgoing = self.outgoing.lock();
        let is_missing = |payment: &&Unsent| payment.is_final(tip) && !outgoing.sending.contains(&payment.txid);
        let missing: Vec<Txid> = unsent.iter().filter(is_missing).map(|payment| payment.txid).collect();
        if missing.is_empty() {
            return None;
        }
        let reason = |txid: &Txid| outgoing.idle.get(txid)?.as_ref()?.refusal();
        let named = missing.iter().take(MAX_NAMED).map(|txid| match reason(txid) {
            Some(reason) => format!("{txid} ({reason})"),
            None => txid.to_string(),
        });
        let named = named.collect::<Vec<_>>().join(", ");
        let more = if missing.len() > MAX_NAMED { ", ..." } else { "" };
        let count = missing.len();
        Some(format!("Payments that are not in the mempool, and are offered to the node again: {count}: {named}{more}"))
    }
}
