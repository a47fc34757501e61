//! Copies stored transactions into an answer without decoding them, and inserts the current labels of their outputs.

use bitcoin::Script;

use super::history::{HistoryBatch, UnsettledState, WalletOutput, WalletTransaction};
use crate::wire::{Blob, Encoded, Reader, Viewed, WireError, count, to_bytes};

/// The bytes of a row without an [`UnsettledState`], beside its transaction: the transaction's length (4) and the absence flag (1).
const ROW_OVERHEAD: usize = 5;

/// The bytes around an output's script: value (8) and script length (4) before it, ownership (1) after it.
const AROUND_SCRIPT: usize = 13;
/// The bytes of an output's change flag (1) and of an absent label (1).
const UNLABELLED: usize = 2;

/// Writes a [`HistoryBatch`] from stored rows.
pub struct HistoryWriter {
    /// The encoded batch. [`HistoryWriter::finish`] fills in the number of transactions at its beginning.
    bytes: Vec<u8>,
    count: usize,
}

impl HistoryWriter {
    /// An empty batch whose buffer has room for `capacity` bytes and grows if necessary.
    pub fn with_capacity(capacity: usize) -> Self {
        let mut bytes = Vec::with_capacity(capacity);
        bytes.extend_from_slice(&count(0));
        Self { bytes, count: 0 }
    }

    /// Appends a transaction. `transaction` is the encoding of a [`WalletTransaction`] whose outputs have no labels and count as change
    /// if the wallet owns them. `unsettled` is the transaction's current state, `None` if it is settled. `label` returns the label of a
    /// script; an output with a label is not change.
    ///
    /// # Errors
    /// `transaction` is not a valid encoding.
    #[inline]
    pub fn push<'l>(
        &mut self,
        transaction: &[u8],
        unsettled: Option<&UnsettledState>,
        label: impl Fn(&Script) -> Option<&'l str>,
    ) -> Result<(), WireError> {
        self.count += 1;
        self.bytes.reserve(transaction.len() + ROW_OVERHEAD);
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(&count(0));
        let mut copied = 0;
        for (at, script) in scripts(transaction)? {
            let Some(label) = label(script) else { continue };
            let unlabelled = at + script.len() + AROUND_SCRIPT;
            self.bytes.extend_from_slice(transaction.get(copied..unlabelled).unwrap_or_default());
            self.bytes.extend_from_slice(&[0, 1]);
            self.bytes.extend_from_slice(&count(label.len()));
            self.bytes.extend_from_slice(label.as_bytes());
            copied = unlabelled + UNLABELLED;
        }
        self.bytes.extend_from_slice(transaction.get(copied..).unwrap_or_default());
        let length = count(self.bytes.len() - begin - size_of::<u32>());
        if let Some(place) = self.bytes.get_mut(begin..).and_then(<[u8]>::first_chunk_mut) {
            *place = length;
        }
        self.bytes.push(u8::from(unsettled.is_some()));
        if let Some(unsettled) = unsettled {
            self.bytes.extend_from_slice(&to_bytes(unsettled));
        }
        Ok(())
    }

    /// The number of transactions so far.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The size of the batch so far, in bytes.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Completes the batch. `next` is the position at which the next batch starts; `None` at the end of the history.
    pub fn finish(mut self, next: Option<&[u8]>) -> Encoded<HistoryBatch> {
        if let Some(begin) = self.bytes.first_chunk_mut() {
            *begin = count(self.count);
        }
        self.bytes.extend_from_slice(&to_bytes(&next.map(|next| Blob(next.to_vec()))));
        Encoded::written(self.bytes)
    }
}

/// The outputs of an encoded transaction: the offset and the script of each.
fn scripts(transaction: &[u8]) -> Result<impl Iterator<Item = (usize, &Script)>, WireError> {
    let mut reader = Reader::new(transaction);
    let outputs = WalletTransaction::view(&mut reader)?.outputs.bytes();
    let begin = transaction.len() - reader.left() - outputs.len();
    let mut reader = Reader::new(outputs);
    Ok(std::iter::from_fn(move || {
        let at = begin + outputs.len() - reader.left();
        let output = (reader.left() > 0).then(|| WalletOutput::view(&mut reader).ok()).flatten()?;
        Some((at, output.script))
    }))
}
