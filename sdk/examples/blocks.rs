//! Reading blocks: counts the transactions of the last blocks.
#![allow(clippy::unwrap_used, reason = "a broken expectation fails the example")]

use outrigger_sdk::Host;
use outrigger_sdk::service::chain::BlockRef;
use outrigger_sdk::service::{Scope, ServiceError};
use outrigger_sdk::testing::StubHost;

/// The number of transactions in the last `blocks` blocks.
fn recent(host: &Host, scope: Scope, blocks: u32) -> Result<u32, ServiceError> {
    let tip = host.chain.tip(scope)?;
    let mut transactions = 0;
    for height in (tip.height + 1).saturating_sub(blocks)..=tip.height {
        // Within a call, all reads see the same state, so there is a block at each height up to the tip's.
        let block = host.chain.block_info(scope, BlockRef::Height { height })?;
        transactions += block.and_then(|block| block.transactions).unwrap_or(0);
    }
    Ok(transactions)
}

fn main() {
    let test = StubHost::new();
    test.chain.mine(vec![]);
    test.chain.mine(vec![]);
    // A method passes `call.scope`; outside of calls, as here, each function sees the newest state.
    assert_eq!(recent(&test.handle(), Scope::NONE, 2), Ok(2));
    assert_eq!(recent(&test.handle(), Scope::NONE, 100), Ok(3));
}
