//! The transactions of a wallet in memory, and lists in batches.

use outrigger_service::wallet::{HistoryRange, HistoryRow, Replaceable, TxState, UnsettledState, WalletTransaction};
use outrigger_service::wire::{Blob, Framed};
use outrigger_service::{ErrorKind, Result};

/// A transaction that the wallet knows.
#[derive(Clone, Debug)]
pub struct KnownTransaction {
    /// The transaction.
    pub transaction: WalletTransaction,
    /// Its state while it is not settled.
    pub unsettled: Option<UnsettledState>,
    /// Its serialisation.
    pub raw: Vec<u8>,
}

impl KnownTransaction {
    pub(super) fn row(&self) -> HistoryRow {
        HistoryRow { transaction: Framed(self.transaction.clone()), unsettled: self.unsettled.clone() }
    }

    pub(super) fn replaceable(&self) -> Replaceable {
        self.unsettled.as_ref().map_or(Replaceable::No, |unsettled| unsettled.replaceable)
    }
}

pub(super) fn in_range(transaction: &WalletTransaction, range: HistoryRange) -> bool {
    match (range, transaction.state) {
        (HistoryRange::Confirmed { from_height }, TxState::Confirmed { height, .. })
        | (HistoryRange::Conflicted { from_height }, TxState::Conflicted { height, .. }) => height >= from_height,
        (HistoryRange::Unconfirmed, TxState::InMempool | TxState::Inactive | TxState::Abandoned) => true,
        (HistoryRange::All, _) => true,
        _ => false,
    }
}

pub(super) fn order(transaction: &WalletTransaction, range: HistoryRange) -> (u32, u64) {
    match (range, transaction.state) {
        (HistoryRange::Confirmed { .. }, TxState::Confirmed { height, index, .. }) => (height, u64::from(index)),
        (HistoryRange::Conflicted { .. }, TxState::Conflicted { height, .. }) => (height, transaction.order_position),
        _ => (0, transaction.order_position),
    }
}

/// The most rows of a history batch: few, so that tests get several batches.
pub(super) const MAX_BATCH: u32 = 3;

/// The position at which the next batch begins.
fn position(after: Option<&Blob>) -> Result<usize> {
    match after {
        None => Ok(0),
        Some(bytes) => {
            let bytes: [u8; 8] = bytes.0.as_slice().try_into().map_err(|_| ErrorKind::Malformed)?;
            usize::try_from(u64::from_le_bytes(bytes)).map_err(|_| ErrorKind::Malformed.into())
        }
    }
}

pub(super) fn batch<T>(items: Vec<T>, after: Option<&Blob>, limit: u32) -> Result<(Vec<T>, Option<Blob>)> {
    let (begin, total) = (position(after)?, items.len());
    let batch: Vec<T> = items.into_iter().skip(begin).take(limit as usize).collect();
    let end = begin + batch.len();
    let next = (end < total).then(|| Blob((end as u64).to_le_bytes().to_vec()));
    Ok((batch, next))
}
