//! Block filters. `tests/it/compared.rs` compares the results and refusals of scans and filters with a bitcoind's.

use outrigger_sdk::testing::StubHost;
use serde_json::json;

use super::start;

#[test]
fn getblockfilter_of_a_disconnected_block_is_kept() {
    let host = StubHost::new();
    let plugin = start(&host);
    let hash = host.chain.mine(vec![]);
    host.chain.disconnect();
    assert!(plugin.call("getblockfilter", json!([hash])).is_ok());
}
