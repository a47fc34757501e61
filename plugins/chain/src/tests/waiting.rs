//! Calls that wait for a block. `tests/it/compared.rs` compares their answers, and proofs of transactions, with a bitcoind's.

use outrigger_sdk::service::events::Event;
use outrigger_sdk::testing::StubHost;
use serde_json::json;

use super::start;

#[test]
fn waitforblock_and_its_kin_end_at_a_shutdown_and_when_their_client_leaves() {
    let host = StubHost::new();
    let plugin = start(&host);
    let [waiting, canceled] = [(); 2].map(|()| plugin.begin("waitforblockheight", json!([2])));
    plugin.cancel(&canceled);
    let first = host.chain.mine(vec![]);
    plugin.tell(Event::TipChanged { hash: first, height: 1 });
    assert!(waiting.answer().is_none());
    plugin.tell(Event::ShuttingDown);
    assert_eq!(waiting.answer(), Some(Ok(json!({"hash": first, "height": 1}))));
    assert!(plugin.begin("waitfornewblock", json!([])).answer().is_some());
    plugin.stop();
}
