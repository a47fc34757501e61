//! Sums up what scripts of the wallet received. The rows are read where they lie: passing them on would take longer than the sums.

use std::collections::{HashMap, HashSet};

use bitcoin::{Script, Txid};
use foldhash::fast::RandomState;
use outrigger_service::Result as ServiceResult;
use outrigger_service::wallet::{Ownership, Received, ReceivedBy, ReceivedQuery, WalletOutputView, WalletTransaction};
use outrigger_service::wire::{Encoded, Reader, Viewed};
use outrigger_values::amount::Saturating;

use super::WalletView;
use crate::error::{Result, WalletError};
use crate::ownership::{is_long_label, label};

impl WalletView {
    /// What scripts of the wallet received.
    ///
    /// # Errors
    /// `Storage`.
    pub fn received(&self, query: &ReceivedQuery) -> ServiceResult<Encoded<Vec<Received>>> {
        Ok(self.read_received(query)?)
    }

    fn read_received(&self, query: &ReceivedQuery) -> Result<Encoded<Vec<Received>>> {
        let only: Option<HashSet<&Script, RandomState>> = match &query.by {
            ReceivedBy::AddressBook => None,
            ReceivedBy::Scripts { scripts } => Some(scripts.iter().map(|script| script.as_script()).collect()),
        };
        let is_wanted = |output: &WalletOutputView<'_>| {
            output.ownership != Ownership::None
                && only.as_ref().map_or(output.label.is_some(), |only| only.contains(output.script))
        };
        let mut found = Found::default();
        let mut places = HashMap::<&Script, usize, RandomState>::default();
        for entry in self.t().transactions.iter(&self.txn)? {
            let row = WalletTransaction::view(&mut Reader::new(entry?.1)).map_err(WalletError::Damaged)?;
            let depth = row.state.depth(self.synced.height);
            if depth < if row.coinbase { query.min_coinbase_depth } else { query.min_depth } {
                continue;
            }
            for output in row.outputs.iter().filter(is_wanted) {
                let place = *places.entry(output.script).or_insert(found.sums.len());
                match found.sums.get_mut(place) {
                    Some(sum) => {
                        sum.amount = sum.amount.saturating_add(output.value);
                        sum.depth = sum.depth.min(depth);
                    }
                    None => found.sums.push(sum_of(&output, depth)),
                }
                found.outputs.push((place, row.txid));
            }
        }
        let mut received = found.listed();
        for sum in received.iter_mut().filter(|sum| is_long_label(sum.label.as_deref())) {
            sum.label = label(self.t(), &self.txn, &sum.script)?;
        }
        Ok(Encoded::new(&received))
    }
}

/// What scripts received.
#[derive(Default)]
struct Found {
    /// The sums, without transactions.
    sums: Vec<Received>,
    /// The place of each output's sum, and its transaction: one list grows faster than one for each script.
    outputs: Vec<(usize, Txid)>,
}

/// The sum of one output, with the label that its row has.
fn sum_of(output: &WalletOutputView<'_>, depth: i64) -> Received {
    Received {
        script: output.script.to_owned(),
        ownership: output.ownership,
        label: output.label.map(str::to_owned),
        amount: output.value,
        depth,
        txids: Vec::new(),
    }
}

impl Found {
    /// The sums, with their transactions.
    fn listed(self) -> Vec<Received> {
        let Self { mut sums, outputs } = self;
        let mut counts = vec![0_usize; sums.len()];
        for (place, _) in &outputs {
            counts.get_mut(*place).into_iter().for_each(|count| *count += 1);
        }
        for (sum, count) in sums.iter_mut().zip(counts) {
            sum.txids.reserve_exact(count);
        }
        for (place, txid) in outputs {
            sums.get_mut(place).into_iter().for_each(|sum| sum.txids.push(txid));
        }
        sums
    }
}
