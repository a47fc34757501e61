//! Writing transactions into an answer as they are stored, without decoding them in between.

use super::history::{HistoryBatch, UnsettledState};
use crate::wire::{Blob, Encoded, count, to_bytes};

/// The bytes of a row beside its transaction, where nothing is said of the moment: the length and the absence.
const ROW_OVERHEAD: usize = 5;

/// Writes a [`HistoryBatch`] from stored rows.
pub struct HistoryWriter {
    /// The number of transactions, which is known at the end, and the transactions.
    bytes: Vec<u8>,
    count: usize,
}

impl HistoryWriter {
    /// A batch with room for so many bytes. It grows where that is not enough.
    pub fn with_capacity(capacity: usize) -> Self {
        let mut bytes = Vec::with_capacity(capacity);
        bytes.extend_from_slice(&count(0));
        Self { bytes, count: 0 }
    }

    /// Appends a transaction, given as the encoding of a [`super::WalletTransaction`], and what the moment says of it.
    #[inline]
    pub fn push(&mut self, transaction: &[u8], unsettled: Option<&UnsettledState>) {
        self.count += 1;
        self.bytes.reserve(transaction.len() + ROW_OVERHEAD);
        self.bytes.extend_from_slice(&count(transaction.len()));
        self.bytes.extend_from_slice(transaction);
        self.bytes.push(u8::from(unsettled.is_some()));
        if let Some(unsettled) = unsettled {
            self.bytes.extend_from_slice(&to_bytes(unsettled));
        }
    }

    /// How many transactions there are so far.
    pub fn count(&self) -> usize {
        self.count
    }

    /// How many bytes they take.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// The batch, and where to go on after it.
    pub fn finish(mut self, next: Option<&[u8]>) -> Encoded<HistoryBatch> {
        if let Some(begin) = self.bytes.first_chunk_mut() {
            *begin = count(self.count);
        }
        self.bytes.extend_from_slice(&to_bytes(&next.map(|next| Blob(next.to_vec()))));
        Encoded::written(self.bytes)
    }
}
