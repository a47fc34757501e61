//! Whether a transaction's unconfirmed outputs may be relied on, and whether it can be replaced.

use std::cell::RefMut;
use std::collections::HashMap;

use bitcoin::{OutPoint, Txid};
use outrigger_service::wallet::{Ownership, Replaceable, Synced, TxState, WalletTransactionView};

use super::Shared;
use super::error::Result;
use super::store::{Reading, Tables};

/// How long a chain of unconfirmed ancestors is followed. The mempool's own limit is far below.
const MAX_ANCESTORS: u32 = 500;
/// Lock times below are heights, others seconds.
const LOCK_TIME_THRESHOLD: u32 = 500_000_000;

/// The verdicts on the transactions of one snapshot. A view keeps them for all batches of its call, so each transaction is read
/// once.
#[derive(Default)]
pub struct Verdicts(HashMap<Txid, Verdict>);

/// What spenders of a transaction have to know of it.
#[derive(Default)]
struct Verdict {
    trusted: bool,
    /// For each output, whether the wallet can spend it; empty where the transaction is not trusted.
    spendable: Vec<bool>,
}

/// Judges transactions in one snapshot.
pub struct TrustResolver<'a> {
    t: &'a Tables,
    txn: &'a Reading<'a>,
    synced: Synced,
    now: u64,
    /// Whether outputs of the wallet's own unconfirmed transactions are ever trusted (`spendzeroconfchange`).
    own_unconfirmed: bool,
    verdicts: RefMut<'a, Verdicts>,
}

impl<'a> TrustResolver<'a> {
    /// A resolver for a snapshot of a wallet that stands at `synced`.
    pub fn new(
        t: &'a Tables,
        txn: &'a Reading<'a>,
        synced: Synced,
        shared: &Shared,
        verdicts: RefMut<'a, Verdicts>,
    ) -> Self {
        let own_unconfirmed = shared.settings.spending.spend_unconfirmed_change;
        Self { t, txn, synced, now: shared.node.time(), own_unconfirmed, verdicts }
    }

    /// Whether a transaction is trusted: it is confirmed; or, unless the settings forbid, it is final, in the mempool and ours, and spends nothing but
    /// spendable outputs of trusted transactions (`CachedTxIsTrusted` in Bitcoin Core). Its row is read only where its state and
    /// `from_us`, whether it spends anything of the wallet, do not decide.
    pub fn trusted(&mut self, txid: &Txid, state: &TxState, from_us: bool) -> Result<bool> {
        match state {
            TxState::Confirmed { .. } => Ok(true),
            TxState::InMempool if from_us && self.own_unconfirmed => Ok(self.verdict(txid, MAX_ANCESTORS)?.trusted),
            _ => Ok(false),
        }
    }

    fn verdict(&mut self, txid: &Txid, left: u32) -> Result<&Verdict> {
        if !self.verdicts.0.contains_key(txid) {
            let verdict = match self.t.transaction_view(self.txn, txid)? {
                Some(row) => self.judge(&row, left)?,
                None => Verdict::default(),
            };
            self.verdicts.0.insert(*txid, verdict);
        }
        Ok(self.verdicts.0.entry(*txid).or_default())
    }

    fn judge(&mut self, row: &WalletTransactionView<'_>, left: u32) -> Result<Verdict> {
        let trusted = match row.state {
            TxState::Confirmed { .. } => true,
            TxState::InMempool if self.is_final(row) && row.is_from_us() && left > 0 => {
                self.spends_trusted(row, left - 1)?
            }
            _ => false,
        };
        let outputs = row.outputs.iter().filter(|_| trusted);
        Ok(Verdict { trusted, spendable: outputs.map(|output| output.ownership == Ownership::Spendable).collect() })
    }

    /// Whether a transaction spends nothing but spendable outputs of trusted transactions.
    fn spends_trusted(&mut self, row: &WalletTransactionView<'_>, left: u32) -> Result<bool> {
        for OutPoint { txid, vout } in row.inputs.iter() {
            let parent = self.verdict(&txid, left)?;
            if !parent.trusted || parent.spendable.get(vout as usize) != Some(&true) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether its lock time allows it in the next block, by the node's clock.
    fn is_final(&self, row: &WalletTransactionView<'_>) -> bool {
        let reached = if row.lock_time < LOCK_TIME_THRESHOLD { u64::from(self.synced.height) + 1 } else { self.now };
        u64::from(row.lock_time) < reached || row.lock_time == 0
    }
}

/// Whether a transaction can be replaced (BIP 125), as far as the wallet knows without the node.
pub fn replaceable(state: &TxState, signals: bool) -> Replaceable {
    match state {
        TxState::Confirmed { .. } => Replaceable::No,
        _ if signals => Replaceable::Yes,
        _ => Replaceable::Unknown,
    }
}
