//! Payments to a wallet, and their sums by script. Kept until the next write.

use std::collections::{HashMap, HashSet};

use bitcoin::{Amount, Script, ScriptBuf, Txid};
use foldhash::fast::RandomState;
use outrigger_service::wallet::{
    Ownership, Received, ReceivedBy, ReceivedQuery, WalletOutputView, WalletTransaction, WalletTransactionView,
};
use outrigger_service::wire::{Reader, Viewed};
use outrigger_values::amount::Saturating;

use super::error::{Result, WalletError};
use super::labels::Labels;
use super::store::{Reading, Tables};

/// The most transactions for which memory is reserved up front.
const MAX_RESERVED: usize = 1 << 17;

pub struct Credits {
    /// In order position.
    transactions: Vec<Paying>,
    /// The outputs to the wallet, in the order of their transactions.
    outputs: Vec<Paid>,
    scripts: Vec<PaidScript>,
}

struct Paying {
    txid: Txid,
    /// The depth at height 0, and its change per block.
    depth: i64,
    per_block: i8,
    coinbase: bool,
    /// The number of outputs to the wallet.
    outputs: u32,
}

impl Paying {
    fn of(row: &WalletTransactionView<'_>, outputs: u32) -> Self {
        let (depth, next) = (row.state.depth(0), row.state.depth(1));
        Self { txid: row.txid, depth, per_block: (next - depth) as i8, coinbase: row.coinbase, outputs }
    }

    fn depth(&self, height: u32) -> i64 {
        self.depth + i64::from(self.per_block) * i64::from(height)
    }
}

struct Paid {
    /// An index into [`Credits::scripts`].
    script: u32,
    value: Amount,
}

struct PaidScript {
    script: ScriptBuf,
    ownership: Ownership,
    /// The number of outputs with this script.
    outputs: usize,
}

impl PaidScript {
    fn of(output: &WalletOutputView<'_>) -> Self {
        Self { script: output.script.to_owned(), ownership: output.ownership, outputs: 0 }
    }

    /// A sum without any payment yet.
    fn nothing(&self, label: Option<&str>) -> Received {
        Received {
            script: self.script.clone(),
            ownership: self.ownership,
            label: label.map(str::to_owned),
            amount: Amount::ZERO,
            depth: i64::MAX,
            txids: Vec::with_capacity(self.outputs),
        }
    }
}

impl Credits {
    pub fn read(tables: &Tables, txn: &Reading<'_>) -> Result<Self> {
        let rows = usize::try_from(tables.transactions.len(txn)?).map_or(MAX_RESERVED, |rows| rows.min(MAX_RESERVED));
        let mut credits =
            Self { transactions: Vec::with_capacity(rows), outputs: Vec::with_capacity(rows), scripts: Vec::new() };
        let mut places = HashMap::<&Script, u32, RandomState>::default();
        for entry in tables.transactions.iter(txn)? {
            let row = WalletTransaction::view(&mut Reader::new(entry?.1)).map_err(WalletError::Damaged)?;
            let mut outputs = 0;
            for output in row.outputs.iter().filter(|output| output.ownership != Ownership::None) {
                let script = *places.entry(output.script).or_insert_with(|| {
                    credits.scripts.push(PaidScript::of(&output));
                    credits.scripts.len() as u32 - 1
                });
                credits.outputs.push(Paid { script, value: output.value });
                outputs += 1;
            }
            if outputs > 0 {
                credits.transactions.push(Paying::of(&row, outputs));
            }
        }
        for paid in &credits.outputs {
            credits.scripts.get_mut(paid.script as usize).into_iter().for_each(|script| script.outputs += 1);
        }
        Ok(credits)
    }

    /// In bytes.
    pub fn size(&self) -> usize {
        let own = |script: &PaidScript| size_of::<PaidScript>() + script.script.len();
        self.transactions.len() * size_of::<Paying>()
            + self.outputs.len() * size_of::<Paid>()
            + self.scripts.iter().map(own).sum::<usize>()
    }

    pub fn sums(&self, query: &ReceivedQuery, height: u32, labels: &Labels) -> Vec<Received> {
        let only: Option<HashSet<&Script, RandomState>> = match &query.by {
            ReceivedBy::AddressBook => None,
            ReceivedBy::Scripts { scripts } => Some(scripts.iter().map(|script| script.as_script()).collect()),
        };
        let sum = |paid: &PaidScript| {
            let label = labels.get(&paid.script);
            let is_wanted = only.as_ref().map_or(label.is_some(), |only| only.contains(paid.script.as_script()));
            is_wanted.then(|| paid.nothing(label))
        };
        let mut sums: Vec<Option<Received>> = self.scripts.iter().map(sum).collect();
        let mut outputs = self.outputs.iter();
        for paying in &self.transactions {
            let paid = outputs.by_ref().take(paying.outputs as usize);
            let depth = paying.depth(height);
            if depth < if paying.coinbase { query.min_coinbase_depth } else { query.min_depth } {
                paid.for_each(drop);
                continue;
            }
            for output in paid {
                let Some(Some(sum)) = sums.get_mut(output.script as usize) else { continue };
                sum.amount = sum.amount.saturating_add(output.value);
                sum.depth = sum.depth.min(depth);
                sum.txids.push(paying.txid);
            }
        }
        sums.into_iter().flatten().filter(|sum| !sum.txids.is_empty()).collect()
    }
}
