//! The plugin of the benchmark `isolated`: walks over the rows of a wallet's history.

use std::time::Instant;

use outrigger_sdk::options::NoOptions;
use outrigger_sdk::service::Scope;
use outrigger_sdk::service::wallet::{HistoryQuery, HistoryRange};
use outrigger_sdk::wire::Blob;
use outrigger_sdk::{Call, Host, Plugin, RpcError, methods, plugin};
use serde_json::{Value, json};

pub struct RowWalk {
    host: Host,
}

#[plugin(id = "row-walk", summary = "Walks a wallet's history", services = ["wallet-read/1"])]
impl Plugin for RowWalk {
    fn new(host: Host, _: NoOptions) -> Result<Self, String> {
        Ok(Self { host })
    }
}

#[methods(category = "Benchmark")]
impl RowWalk {
    /// Times walks through the confirmed history of the wallet.
    ///
    /// * `rounds` - How many walks.
    ///
    /// # Result
    /// [n, ...]    (json array) Nanoseconds of each walk.
    #[method]
    fn walkrows(&self, call: &Call<'_>, rounds: i64) -> Result<Value, RpcError> {
        let once = |_| {
            let began = Instant::now();
            self.walk(call.scope)?;
            Ok(json!(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX)))
        };
        (0..rounds).map(once).collect()
    }

    /// Reads each row. Returns the sum of the amounts, so that the compiler cannot omit a read.
    fn walk(&self, scope: Scope) -> Result<u64, RpcError> {
        let range = HistoryRange::Confirmed { from_height: 0 };
        let mut query = HistoryQuery { range, reverse: false, after: None, limit: u32::MAX };
        let mut sum = 0_u64;
        loop {
            let batch = self.host.wallet.history(scope, query.clone())?;
            let batch = batch.view().map_err(|error| RpcError::internal(error.to_string()))?;
            for row in batch.rows {
                let transaction = row.open()?.0;
                let paid: u64 = transaction.outputs.iter().map(|output| output.value.to_sat()).sum();
                sum = sum.wrapping_add(transaction.debit_spendable.to_sat()).wrapping_add(paid);
            }
            match batch.next {
                Some(next) => query.after = Some(Blob(next.to_vec())),
                None => return Ok(std::hint::black_box(sum)),
            }
        }
    }
}

outrigger_sdk::export_plugin!(RowWalk);
