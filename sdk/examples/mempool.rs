//! Reading the mempool: sums the transactions that pay a feerate.
#![allow(clippy::unwrap_used, reason = "a broken expectation fails the example")]

use outrigger_sdk::bitcoin::{Amount, Transaction, absolute::LockTime, transaction::Version};
use outrigger_sdk::service::{Scope, ServiceError};
use outrigger_sdk::testing::StubHost;
use outrigger_sdk::{FeeRate, Host};

/// The total size in virtual bytes of the transactions that pay at least `feerate`.
fn paying(host: &Host, scope: Scope, feerate: FeeRate) -> Result<u64, ServiceError> {
    let ids = host.mempool.ids(scope)?;
    let mut size = 0;
    // One request for all entries. A transaction that has left the mempool has none.
    for entry in host.mempool.entries(scope, ids)?.into_iter().flatten() {
        if entry.fee >= feerate.fee(entry.virtual_size) {
            size += entry.virtual_size;
        }
    }
    Ok(size)
}

fn main() {
    let transaction = Transaction { version: Version::TWO, lock_time: LockTime::ZERO, input: vec![], output: vec![] };
    let size = transaction.vsize() as u64;
    let test = StubHost::new();
    test.mempool.add(transaction, Amount::from_sat(5 * size));
    assert_eq!(paying(&test.handle(), Scope::NONE, FeeRate::from_sat_per_kvb(5000)), Ok(size));
    assert_eq!(paying(&test.handle(), Scope::NONE, FeeRate::from_sat_per_kvb(5001)), Ok(0));
}
