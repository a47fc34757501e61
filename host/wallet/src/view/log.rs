//! The wallet's log, with the payments of each entry's transaction.

use std::ops::Bound;

use bitcoin::{Amount, SignedAmount};
use outrigger_service::wallet::{
    LogCategory, LogEntry, LogPayment, MAX_LOG_ENTRIES, Ownership, WalletLog, WalletTransactionView,
};
use outrigger_service::wire::from_bytes;
use outrigger_standard::address;
use outrigger_values::amount::Saturating;

use super::WalletView;
use crate::error::Result;
use crate::labels::Labels;
use crate::log::log_number;
use crate::store::{LOG_STATE, LogRow, LogStateRow, get};

/// An answer with at least this many payments takes no further entry.
const MAX_PAYMENTS: usize = 4_000;
/// The depth at which a coinbase can be spent.
const COINBASE_DEPTH: i64 = 101;

impl WalletView {
    pub fn log(&self, after: u64, limit: u32) -> Result<WalletLog> {
        let (wallet, limit) = (self.wallet.name.clone(), limit.clamp(1, MAX_LOG_ENTRIES) as usize);
        let LogStateRow { last, dropped } = get(self.t().meta, &self.txn, LOG_STATE)?.unwrap_or_default();
        let (labels, mut entries, mut payments) = (self.all_labels()?, Vec::new(), 0);
        let after = after.to_be_bytes();
        for row in self.t().log.range(&self.txn, &(Bound::Excluded(after.as_slice()), Bound::Unbounded))? {
            if entries.len() >= limit || payments >= MAX_PAYMENTS {
                break;
            }
            let (key, row) = row?;
            let entry = self.log_entry(log_number(key)?, from_bytes(row)?, labels)?;
            payments += entry.payments.len();
            entries.push(entry);
        }
        Ok(WalletLog { wallet, entries, last, dropped })
    }

    fn log_entry(&self, number: u64, row: LogRow, labels: &Labels) -> Result<LogEntry> {
        let transaction = self.t().transaction_view(&self.txn, &row.txid)?;
        let LogRow { kind, txid, block, height, time } = row;
        let fee = transaction.as_ref().and_then(fee);
        let payments = transaction.map_or_else(Vec::new, |transaction| self.payments(&transaction, fee, labels));
        Ok(LogEntry { number, kind, txid, block, height, time, fee, payments })
    }

    /// The sent payments of a transaction, then the received ones. Includes change only if the wallet spends nothing.
    fn payments(
        &self,
        transaction: &WalletTransactionView<'_>,
        fee: Option<SignedAmount>,
        labels: &Labels,
    ) -> Vec<LogPayment> {
        let depth = transaction.state.depth(self.synced.height);
        let received = match transaction.coinbase {
            false => LogCategory::Receive,
            true if depth < 1 => LogCategory::Orphan,
            true if depth < COINBASE_DEPTH => LogCategory::Immature,
            true => LogCategory::Generate,
        };
        let outputs = || {
            (0_u32..).zip(transaction.outputs.iter()).filter_map(|(vout, output)| {
                let (ours, label) = (output.ownership != Ownership::None, labels.get(output.script));
                let is_change = ours && label.is_none();
                (fee.is_none() || !is_change).then_some((vout, output, ours, label))
            })
        };
        let network = self.wallet.shared.network;
        let payment = |(vout, category): (u32, LogCategory), script: &bitcoin::Script, label: Option<&str>, amount| {
            let (address, label) = (address::from_script(script, network), label.map(str::to_owned));
            LogPayment { vout, script: script.to_owned(), address, label, category, amount }
        };
        let sent = outputs().filter(|_| fee.is_some()).map(|(vout, output, _, label)| {
            let amount = SignedAmount::ZERO.saturating_sub(signed(output.value));
            payment((vout, LogCategory::Send), output.script, label, amount)
        });
        let kept = outputs()
            .filter(|(_, _, ours, _)| *ours)
            .map(|(vout, output, _, label)| payment((vout, received), output.script, label, signed(output.value)));
        sent.chain(kept).collect()
    }
}

/// The negated fee of a transaction that spends from the wallet; `None` for others.
fn fee(transaction: &WalletTransactionView<'_>) -> Option<SignedAmount> {
    let debit = transaction.debit_spendable.saturating_add(transaction.debit_watch_only);
    (debit > Amount::ZERO).then(|| signed(transaction.total_output).saturating_sub(signed(debit)))
}

/// Converts an amount. At most 2.1 * 10^15 satoshi exist, so each amount fits.
fn signed(amount: Amount) -> SignedAmount {
    amount.to_signed().unwrap_or(SignedAmount::MAX)
}
