//! The methods that `bench store` and `bench isolated` measure.
#![allow(clippy::indexing_slicing, clippy::cast_possible_truncation, reason = "a benchmark")]

use std::time::Instant;

use outrigger_sdk::service::store::KeyRange;
use outrigger_sdk::service::wallet::{HistoryQuery, HistoryRange};
use outrigger_sdk::store::Batch;
use outrigger_sdk::wire::Blob;
use outrigger_sdk::{Call, RpcError, methods};
use serde_json::Value;

use crate::Keeper;

/// The rows of a commit.
const BATCH: usize = 10_000;

/// The key of a row of the benchmark. Its neighbours are elsewhere in the store.
fn key(row: u64) -> [u8; 16] {
    let mixed = (row + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut key = [0; 16];
    key[..8].copy_from_slice(&mixed.to_be_bytes());
    key[8..].copy_from_slice(&row.to_be_bytes());
    key
}

#[methods(category = "Benchmark")]
impl Keeper {
    /// Fills the store with rows of 16 and 64 bytes.
    ///
    /// * `rows` - How many.
    #[method]
    fn keeperfill(call: &Call<'_>, rows: u64) -> Result<Value, RpcError> {
        for first in (0..rows).step_by(BATCH) {
            let mut batch = Batch::default();
            (first..rows.min(first + BATCH as u64)).for_each(|row| batch.put(&key(row), &[row as u8; 64]));
            batch.commit(call.host, call.scope)?;
        }
        Ok(Value::Null)
    }

    /// Reads rows by their keys, and gives the nanoseconds for each.
    ///
    /// * `rows` - How many rows there are.
    /// * `reads` - How many are read.
    /// * `together` - How many are read at a time.
    #[method]
    fn keepergets(call: &Call<'_>, rows: u64, reads: u64, together: u64) -> Result<f64, RpcError> {
        let began = Instant::now();
        let mut found = 0;
        for first in (0..reads).step_by(together as usize) {
            let keys =
                (first..first + together).map(|read| Blob(key(read.wrapping_mul(7919) % rows).to_vec())).collect();
            found += call.host.store.get(call.scope, keys)?.iter().flatten().count();
        }
        let each = began.elapsed().as_nanos() as f64 / found as f64;
        Ok(each)
    }

    /// Reads all rows in their order, and gives the nanoseconds for each.
    ///
    /// * `together` - How many are read at a time.
    #[method]
    fn keeperwalk(call: &Call<'_>, together: u32) -> Result<f64, RpcError> {
        let began = Instant::now();
        let (mut range, mut rows, mut bytes) = (KeyRange::default(), 0_u64, 0);
        loop {
            let answer = call.host.store.range(call.scope, range.clone(), together, false)?;
            let page = answer.view()?;
            let mut last = &[][..];
            for row in page.rows.iter() {
                (rows, bytes, last) = (rows + 1, bytes + row.value.len(), row.key);
            }
            if !page.more {
                break;
            }
            range.from = Some(Blob([last, &[0]].concat()));
        }
        assert_eq!(bytes as u64, rows * 64);
        let each = began.elapsed().as_nanos() as f64 / rows as f64;
        Ok(each)
    }

    /// Walks through the confirmed history of the wallet, and gives the nanoseconds of each walk.
    ///
    /// * `rounds` - How many walks.
    #[method]
    fn keeperhistory(call: &Call<'_>, rounds: u64) -> Result<Vec<u64>, RpcError> {
        let once = |_| {
            let began = Instant::now();
            walk(call)?;
            Ok(began.elapsed().as_nanos() as u64)
        };
        (0..rounds).map(once).collect()
    }
}

/// Reads each row. Returns the sum of the amounts, so that the compiler cannot omit a read.
fn walk(call: &Call<'_>) -> Result<u64, RpcError> {
    let range = HistoryRange::Confirmed { from_height: 0 };
    let mut query = HistoryQuery { range, reverse: false, after: None, limit: u32::MAX };
    let mut sum = 0_u64;
    loop {
        let batch = call.host.wallet.history(call.scope, query.clone())?;
        let batch = batch.view().map_err(|error| RpcError::internal(error.to_string()))?;
        for row in batch.rows.iter() {
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
