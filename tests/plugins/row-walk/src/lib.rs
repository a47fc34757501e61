//! What the benchmark `isolated` runs inside of a host: walks over the rows of a wallet's history.

use std::time::Instant;

use outrigger_sdk::service::Scope;
use outrigger_sdk::service::wallet::{HistoryQuery, HistoryRange};
use outrigger_sdk::wire::Blob;
use outrigger_sdk::{Call, Host, Plugin, Reply, RpcError};
use serde_json::{Map, Value, json};

pub struct RowWalk {
    host: Host,
}

impl Plugin for RowWalk {
    fn new(host: Host, _: Map<String, Value>) -> Result<Self, String> {
        Ok(Self { host })
    }

    fn call(&self, call: Call<'_>, reply: Reply) {
        reply.send(call.params.integer_or(0, 1).and_then(|rounds| self.time(call.scope, rounds)));
    }
}

impl RowWalk {
    fn time(&self, scope: Scope, rounds: i64) -> Result<Value, RpcError> {
        let once = |_| {
            let began = Instant::now();
            self.walk(scope)?;
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

outrigger_sdk::export_plugin!(RowWalk, include_str!("../manifest.json"));
