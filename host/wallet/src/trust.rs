//! Whether the unconfirmed outputs of a transaction are trusted, and whether the transaction can be replaced.

use std::cell::RefMut;
use std::collections::HashMap;

use bitcoin::{OutPoint, Txid};
use outrigger_service::wallet::{Ownership, Replaceable, TxState, WalletTransactionView};

use super::Shared;
use super::error::Result;
use super::store::{Reading, Tables};

/// The maximum number of generations of unconfirmed ancestors to check. The mempool's limit is far lower.
const MAX_ANCESTORS: u32 = 500;

/// Verdicts of one snapshot, so that each transaction is read once: whether the wallet can spend each output. Empty for a
/// transaction that is not trusted.
#[derive(Default)]
pub struct Verdicts(HashMap<Txid, Vec<bool>>);

impl Verdicts {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

pub struct TrustResolver<'a> {
    t: &'a Tables,
    txn: &'a Reading<'a>,
    /// Whether outputs of the wallet's own unconfirmed transactions may be trusted (`spendzeroconfchange`).
    own_unconfirmed: bool,
    verdicts: RefMut<'a, Verdicts>,
}

impl<'a> TrustResolver<'a> {
    pub fn new(t: &'a Tables, txn: &'a Reading<'a>, shared: &Shared, verdicts: RefMut<'a, Verdicts>) -> Self {
        let own_unconfirmed = shared.settings.spending.spend_unconfirmed_change;
        Self { t, txn, own_unconfirmed, verdicts }
    }

    /// Whether a transaction is trusted (`CachedTxIsTrusted` in Bitcoin Core): it is confirmed; or, if the settings
    /// allow it, it is ours and in the mempool, and spends only spendable outputs of trusted transactions. Reads
    /// its row only if `state` and `from_us` (whether it spends from the wallet) do not decide.
    pub fn trusted(&mut self, txid: &Txid, state: &TxState, from_us: bool) -> Result<bool> {
        match state {
            TxState::Confirmed { .. } => Ok(true),
            TxState::InMempool if from_us && self.own_unconfirmed => Ok(!self.verdict(txid, MAX_ANCESTORS)?.is_empty()),
            _ => Ok(false),
        }
    }

    fn verdict(&mut self, txid: &Txid, left: u32) -> Result<&[bool]> {
        if !self.verdicts.0.contains_key(txid) {
            let verdict = match self.t.transaction_view(self.txn, txid)? {
                Some(row) => self.judge(&row, left)?,
                None => Vec::new(),
            };
            self.verdicts.0.insert(*txid, verdict);
        }
        Ok(self.verdicts.0.entry(*txid).or_default())
    }

    fn judge(&mut self, row: &WalletTransactionView<'_>, left: u32) -> Result<Vec<bool>> {
        let trusted = match row.state {
            TxState::Confirmed { .. } => true,
            TxState::InMempool if row.is_from_us() && left > 0 => self.spends_trusted(row, left - 1)?,
            _ => false,
        };
        let outputs = row.outputs.iter().filter(|_| trusted);
        Ok(outputs.map(|output| output.ownership == Ownership::Spendable).collect())
    }

    /// Whether a transaction spends only spendable outputs of trusted transactions.
    fn spends_trusted(&mut self, row: &WalletTransactionView<'_>, left: u32) -> Result<bool> {
        for OutPoint { txid, vout } in row.inputs.iter() {
            if self.verdict(&txid, left)?.get(vout as usize) != Some(&true) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Whether a transaction can be replaced (BIP 125); `Unknown` if only the node may know.
pub fn replaceable(state: &TxState, signals: bool) -> Replaceable {
    match state {
        TxState::Confirmed { .. } => Replaceable::No,
        _ if signals => Replaceable::Yes,
        _ => Replaceable::Unknown,
    }
}
