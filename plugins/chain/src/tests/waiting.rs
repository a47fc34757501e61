//! Calls that wait for a block, and proofs of transactions. `tests/it/compared.rs` compares their answers with a bitcoind's.

use outrigger_sdk::service::events::Event;
use outrigger_sdk::testing::StubHost;
use serde_json::json;

use super::{GENESIS, funded, pay, start};

#[test]
fn waits_for_blocks_end_at_a_shutdown_and_when_their_client_disconnects() {
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

#[test]
fn wait_and_proof_rpcs_refuse_bad_arguments() {
    let (host, outpoint) = funded();
    let plugin = start(&host);
    let spending = pay(outpoint, 4_999_990_000, &[0x51]);
    let txid = spending.compute_txid();
    host.chain.mine(vec![spending]);
    let other = host.chain.get(host.chain.mine(vec![])).unwrap().txdata[0].compute_txid();
    let range = "JSON integer out of range";
    let wrong = [(json!([-1]), -1, "Negative timeout"), (json!([1_u64 << 31]), -1, range)];
    plugin.refuses("waitfornewblock", &wrong);
    plugin.refuses("waitforblockheight", &[(json!([1_u64 << 31]), -1, range), (json!([0, 1_u64 << 40]), -1, range)]);
    plugin.refuses(
        "waitforblock",
        &[
            (json!(["aa", -1]), -8, "blockhash must be of length 64 (not 2, for 'aa')"),
            (json!([GENESIS, -1]), -1, "Negative timeout"),
            (json!([GENESIS, 1_u64 << 32]), -1, range),
        ],
    );
    let twice = format!("Invalid parameter, duplicated txid: {txid}");
    let missing = "Not all transactions found in specified or retrieved block";
    plugin.refuses(
        "gettxoutproof",
        &[
            (json!([[]]), -8, "Parameter 'txids' cannot be empty"),
            (json!([["aa"]]), -8, "txid must be of length 64 (not 2, for 'aa')"),
            (json!([[txid, txid]]), -8, &twice),
            (json!([["11".repeat(32)]]), -5, "Transaction not yet in block"),
            (json!([[txid], "11".repeat(32)]), -5, "Block not found"),
            (json!([[txid], GENESIS]), -5, missing),
            (json!([[txid, other]]), -5, missing),
        ],
    );
    let proof = plugin.call("gettxoutproof", json!([[txid]])).unwrap();
    let (header, tree) = proof.as_str().unwrap().split_at(160);
    plugin.refuses(
        "verifytxoutproof",
        &[
            (json!([""]), -8, "proof must be hexadecimal string (not '')"),
            (json!(["aa"]), -1, "DataStream::read(): end of data: iostream error"),
            (json!([format!("ff{}{tree}", &header[2..])]), -5, "Block not found in chain"),
        ],
    );
}
