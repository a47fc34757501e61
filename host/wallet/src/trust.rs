//! Whether a transaction's unconfirmed outputs may be relied on, and whether it can be replaced.

use std::collections::HashMap;

use bitcoin::Txid;
use heed::RoTxn;
use outrigger_service::wallet::{Ownership, Replaceable, Synced, TxState, WalletTransaction};

use super::Shared;
use super::error::Result;
use super::store::Tables;

/// How long a chain of unconfirmed ancestors is followed. The mempool's own limit is far below.
const MAX_ANCESTORS: u32 = 500;
/// Lock times below are heights, others seconds.
const LOCK_TIME_THRESHOLD: u32 = 500_000_000;

/// Judges transactions in one snapshot.
pub struct TrustResolver<'a> {
    t: &'a Tables,
    txn: &'a RoTxn<'a>,
    synced: Synced,
    now: u64,
    known: HashMap<Txid, bool>,
}

impl<'a> TrustResolver<'a> {
    /// A resolver for a snapshot of a wallet that stands at `synced`.
    pub fn new(t: &'a Tables, txn: &'a RoTxn<'a>, synced: Synced, shared: &Shared) -> Result<Self> {
        Ok(Self { t, txn, synced, now: shared.node.time(), known: HashMap::new() })
    }

    /// Whether a transaction is trusted: it is confirmed; or it is final, in the mempool and ours, and spends nothing but
    /// spendable outputs of trusted transactions.
    pub fn trusted(&mut self, row: &WalletTransaction) -> Result<bool> {
        self.trusted_within(row, MAX_ANCESTORS)
    }

    fn trusted_within(&mut self, row: &WalletTransaction, left: u32) -> Result<bool> {
        match row.state {
            TxState::Confirmed { .. } => return Ok(true),
            TxState::InMempool if self.is_final(row) && row.is_from_us() && left > 0 => {}
            _ => return Ok(false),
        }
        for input in &row.inputs {
            let Some(parent) = self.t.transaction(self.txn, &input.txid)? else { return Ok(false) };
            let spendable = parent.output(input.vout).is_some_and(|output| output.ownership == Ownership::Spendable);
            if !spendable || !self.trusted_parent(&parent, left - 1)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn trusted_parent(&mut self, row: &WalletTransaction, left: u32) -> Result<bool> {
        if let Some(known) = self.known.get(&row.txid) {
            return Ok(*known);
        }
        let trusted = self.trusted_within(row, left)?;
        self.known.insert(row.txid, trusted);
        Ok(trusted)
    }

    /// Whether its lock time allows it in the next block, by the node's clock.
    fn is_final(&self, row: &WalletTransaction) -> bool {
        let reached = if row.lock_time < LOCK_TIME_THRESHOLD { u64::from(self.synced.height) + 1 } else { self.now };
        u64::from(row.lock_time) < reached || row.lock_time == 0
    }
}

/// Whether a transaction can be replaced (BIP 125), as far as the mempool knows its ancestors.
pub fn replaceable(shared: &Shared, row: &WalletTransaction) -> Result<Replaceable> {
    match row.state {
        TxState::Confirmed { .. } => Ok(Replaceable::No),
        _ if row.signals => Ok(Replaceable::Yes),
        TxState::InMempool => match shared.node.mempool_entries(&[row.txid])?.into_iter().next().flatten() {
            Some(entry) if entry.replaceable => Ok(Replaceable::Yes),
            Some(_) => Ok(Replaceable::No),
            None => Ok(Replaceable::Unknown),
        },
        _ => Ok(Replaceable::Unknown),
    }
}
