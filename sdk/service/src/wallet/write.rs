//! Writing transactions into an answer as they are stored, with the labels that their outputs have now.

use bitcoin::Script;

use super::history::{HistoryBatch, UnsettledState, WalletOutput, WalletTransaction};
use crate::wire::{Blob, Encoded, Reader, Viewed, WireError, count, to_bytes};

/// The bytes of a row beside its transaction, where nothing is said of the moment: the length and the absence.
const ROW_OVERHEAD: usize = 5;

/// The length of the fields around an output's script, in bytes: value and script length before it, its owner behind it.
const AROUND_SCRIPT: usize = 13;
/// The length of an output's flag of change, and of a label that is not there, in bytes.
const UNLABELLED: usize = 2;

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

    /// Appends a transaction, given as the encoding of a [`WalletTransaction`] whose outputs have no label and are change where
    /// they are the wallet's, and what the moment says of it. `label` gives the label of a script, none where it has none.
    ///
    /// # Errors
    /// When the transaction is damaged.
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

/// The outputs of an encoded transaction: where each begins, and its script.
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
