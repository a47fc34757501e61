//! listtransactions, and the walk through the history that it shares with listsinceblock.

use outrigger_sdk::params::{int32, text};
use outrigger_sdk::service::wallet::{HistoryQuery, HistoryRange, WalletTransaction};

use crate::entry::{Selection, entries};
use crate::error::HistoryError;
use crate::{Question, to_json};

/// How many transactions are asked for at a time.
const BATCH: u32 = 256;

/// Walks a range of the history, until it ends or `visit` says that it has enough.
pub fn walk(
    question: &Question<'_>,
    range: HistoryRange,
    reverse: bool,
    mut visit: impl FnMut(WalletTransaction) -> Result<bool, HistoryError>,
) -> Result<(), HistoryError> {
    let mut after = None;
    loop {
        let query = HistoryQuery { range, reverse, after, limit: BATCH };
        let batch = question.host.wallet.history(question.scope, query)?;
        for transaction in batch.transactions {
            if !visit(transaction)? {
                return Ok(());
            }
        }
        match batch.next {
            Some(next) => after = Some(next),
            None => return Ok(()),
        }
    }
}

/// listtransactions. Walks back from the newest until enough entries are there, and gives them oldest first; so within
/// one transaction their order is reversed.
pub fn list_transactions(question: &Question<'_>) -> Result<Vec<u8>, HistoryError> {
    let wallet = question.wallet()?;
    let params = question.params;
    let label = params.given(0).map(text).transpose()?;
    if label == Some("") {
        return Err(HistoryError::EmptyLabel);
    }
    let label = label.filter(|label| *label != "*");
    let count = params.given(1).map_or(Ok(10), int32)?;
    let skip = params.given(2).map_or(Ok(0), int32)?;
    let lens = question.lens(&wallet, params.get(3))?;
    let count = usize::try_from(count).map_err(|_| HistoryError::NegativeCount)?;
    let skip = usize::try_from(skip).map_err(|_| HistoryError::NegativeSkip)?;
    let wanted = count.saturating_add(skip);
    let mut found: Vec<Vec<u8>> = Vec::new();
    if wanted > 0 {
        walk(question, HistoryRange::All, true, |transaction| {
            for entry in entries(lens, &transaction, Selection { label, any_depth: false }, true) {
                found.push(to_json(entry)?);
            }
            Ok(found.len() < wanted)
        })?;
    }
    let mut kept: Vec<_> = found.into_iter().skip(skip).take(count).collect();
    kept.reverse();
    Ok([b"[".as_slice(), &kept.join(b",".as_slice()), b"]"].concat())
}
