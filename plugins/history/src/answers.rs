//! The host's answers about data that the rows of the history do not contain.

use std::collections::{BTreeMap, BTreeSet};

use outrigger_sdk::service::ServiceError;
use outrigger_sdk::service::wallet::{HistoryBatchView, UnsettledStateView, WalletTransactionView};

/// If more answers than this are kept, the next request discards them first. The same descriptor occurs in many batches.
const KEPT: usize = 1_000;

/// The host's answers about the current batch and some earlier ones, by key.
pub struct Answers<K, V>(BTreeMap<K, V>);

impl<K: Ord + Copy, V> Answers<K, V> {
    pub fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// The answer about a key. One request covers the keys that `collect` finds in the transactions of the batch.
    pub fn of(
        &mut self,
        key: K,
        batch: HistoryBatchView<'_>,
        collect: impl Fn(&WalletTransactionView<'_>, &UnsettledStateView<'_>, &mut BTreeSet<K>),
        ask: impl FnOnce(Vec<K>) -> Result<Vec<V>, ServiceError>,
    ) -> Result<Option<&V>, ServiceError> {
        if !self.0.contains_key(&key) {
            let mut keys = BTreeSet::new();
            for row in batch.rows.iter() {
                let (transaction, unsettled) = row.open()?;
                collect(&transaction, &unsettled, &mut keys);
            }
            let answers = ask(keys.iter().copied().collect())?;
            if self.0.len() > KEPT {
                self.0.clear();
            }
            self.0.extend(keys.into_iter().zip(answers));
        }
        Ok(self.0.get(&key))
    }
}
