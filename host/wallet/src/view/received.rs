//! Sums of received payments by script.

use std::collections::{HashMap, HashSet};

use bitcoin::{Amount, Script};
use foldhash::fast::RandomState;
use outrigger_service::wallet::{Ownership, Received, ReceivedBy, ReceivedQuery, WalletTransaction};
use outrigger_service::wire::{Encoded, Reader, Viewed};
use outrigger_values::amount::Saturating;

use super::WalletView;
use crate::error::Result;

impl WalletView {
    /// The sums in the order of each script's first counted payment.
    pub fn received(&self, query: &ReceivedQuery) -> Result<Encoded<Vec<Received>>> {
        let labels = self.all_labels()?;
        let only: Option<HashSet<&Script, RandomState>> = match &query.by {
            ReceivedBy::AddressBook => None,
            ReceivedBy::Scripts { scripts } => Some(scripts.iter().map(|script| script.as_script()).collect()),
        };
        let (mut sums, mut places) =
            (Vec::<Received>::new(), HashMap::<&Script, Option<usize>, RandomState>::default());
        for entry in self.t().transactions.iter(&self.txn)? {
            let row = WalletTransaction::view(&mut Reader::new(entry?.1))?;
            let depth = row.state.depth(self.synced.height);
            if depth < if row.coinbase { query.min_coinbase_depth } else { query.min_depth } {
                continue;
            }
            for output in row.outputs.iter().filter(|output| output.ownership != Ownership::None) {
                // `None` for a script that the query does not ask for.
                let place = *places.entry(output.script).or_insert_with(|| {
                    let label = labels.get(output.script);
                    let is_wanted = only.as_ref().map_or(label.is_some(), |only| only.contains(output.script));
                    is_wanted.then(|| {
                        sums.push(Received {
                            script: output.script.to_owned(),
                            ownership: output.ownership,
                            label: label.map(str::to_owned),
                            amount: Amount::ZERO,
                            depth: i64::MAX,
                            txids: Vec::new(),
                        });
                        sums.len() - 1
                    })
                });
                let Some(sum) = place.and_then(|place| sums.get_mut(place)) else { continue };
                sum.amount = sum.amount.saturating_add(output.value);
                sum.depth = sum.depth.min(depth);
                sum.txids.push(row.txid);
            }
        }
        Ok(Encoded::new(&sums))
    }
}
