//! Statistics of blocks, the UTXO set and the mempool; deployments and indexes.

use bitcoin::{Amount, OutPoint};
use outrigger_sdk::testing::StubHost;
use serde_json::json;

use super::{GENESIS, check, funded, keys, pay, start};

#[test]
fn getchaintxstats_bad_arguments_are_refused_in_order() {
    let host = StubHost::new();
    let plugin = start(&host);
    let [_, _, third] = [(); 3].map(|()| host.chain.mine(vec![]));
    let count = "Invalid block count: should be between 0 and the block's height - 1";
    plugin.refuses(
        "getchaintxstats",
        &[
            (json!([3]), -8, count),
            (json!([-1]), -8, count),
            (json!([5, GENESIS]), -8, count),
            (json!([1, "11".repeat(32)]), -5, "Block not found"),
        ],
    );
    plugin.call("invalidateblock", json!([third])).unwrap();
    plugin.refuses("getchaintxstats", &[(json!([1, third]), -8, "Block is not in main chain")]);
}

#[test]
fn getblockstats_bad_arguments_are_refused_in_order() {
    let host = StubHost::new();
    let plugin = start(&host);
    host.chain.mine(vec![]);
    plugin.refuses(
        "getblockstats",
        &[
            (json!([null]), -3, "JSON value of type null is not of expected type string"),
            (json!([-1, [5]]), -8, "Target block height -1 is negative"),
            (json!([2]), -8, "Target block height 2 after current tip 1"),
            (json!([1.5]), -1, "JSON integer out of range"),
            (json!(["5", [5]]), -8, "hash_or_height must be of length 64 (not 1, for '5')"),
            (json!(["11".repeat(32)]), -5, "Block not found"),
            (json!([1, [5]]), -3, "JSON value of type number is not of expected type string"),
            (json!([1, ["x", "height", "nosuch"]]), -8, "Invalid selected statistic 'nosuch'"),
        ],
    );
}

#[test]
fn gettxoutsetinfo_sums_up_coins_in_batches() {
    let (host, outpoint) = funded();
    let plugin = start(&host);
    let mut many = pay(outpoint, 1, &[0x51]);
    many.output = vec![many.output[0].clone(); 10_000];
    let tip = host.chain.mine(vec![many]);
    let info = plugin.call_json("gettxoutsetinfo", json!(["none", null, false])).unwrap();
    // Each script, including the coinbase's, has one byte.
    let expected = format!(
        r#"{{"height":1,"bestblock":"{tip}","txouts":10001,"bogosize":{},"total_amount":50.00010000,"transactions":2,"disk_size":0}}"#,
        10_001 * 51
    );
    assert_eq!(info, expected);
    assert_eq!(keys(&plugin.call("gettxoutsetinfo", json!([])).unwrap())[4], "hash_serialized_3");
    let index = "Querying specific block heights requires coinstatsindex";
    plugin.refuses(
        "gettxoutsetinfo",
        &[
            (json!(["NONE"]), -8, "'NONE' is not a valid hash_type"),
            (
                json!(["muhash"]),
                -8,
                "'muhash' is not a valid hash_type: the embedded chain has hash_serialized_3 and none",
            ),
            (json!(["hash_serialized_2", 5]), -8, "'hash_serialized_2' is not a valid hash_type"),
            (json!(["none", 5]), -8, index),
            (json!([null, {}]), -8, index),
        ],
    );
}

#[test]
fn getdeploymentinfo_getindexinfo_and_getdifficulty_answer_as_release_29() {
    let host = StubHost::new();
    let plugin = start(&host);
    let tip = host.chain.mine(vec![]);
    assert_eq!(plugin.call_json("getdifficulty", json!([])).unwrap(), "4.656542373906925e-10");
    let info = plugin.call("getdeploymentinfo", json!([])).unwrap();
    assert_eq!((&info["hash"], &info["height"]), (&json!(tip), &json!(1)));
    assert_eq!(keys(&info["deployments"]), ["csv", "segwit", "taproot"]);
    assert_eq!(info["deployments"]["csv"], json!({"type": "buried", "active": true, "height": 0}));
    assert_eq!(plugin.call("getdeploymentinfo", json!([GENESIS])).unwrap()["height"], json!(0));
    plugin.refuses("getdeploymentinfo", &[(json!(["11".repeat(32)]), -5, "Block not found")]);
    let index = json!({"synced": true, "best_block_height": 1});
    let both = json!({"txindex": index, "basic block filter index": index});
    let cases =
        [(json!([]), both), (json!(["txindex"]), json!({"txindex": index})), (json!(["coinstatsindex"]), json!({}))];
    check(&plugin, "getindexinfo", &cases);
}

#[test]
fn getmempoolancestors_and_getmempooldescendants_follow_all_generations() {
    let (host, outpoint) = funded();
    let plugin = start(&host);
    let first = pay(outpoint, 3000, &[0x51]);
    let second = pay(OutPoint::new(first.compute_txid(), 0), 2000, &[0x51]);
    let third = pay(OutPoint::new(second.compute_txid(), 0), 1000, &[0x51]);
    let ids = [&first, &second, &third].map(|transaction| transaction.compute_txid());
    for transaction in [first, second, third] {
        host.mempool.add(transaction, Amount::from_sat(500));
    }
    let sorted = |mut pair: [bitcoin::Txid; 2]| {
        pair.sort();
        json!(pair)
    };
    let ancestors =
        [(json!([ids[0]]), json!([])), (json!([ids[1]]), json!([ids[0]])), (json!([ids[2]]), sorted([ids[0], ids[1]]))];
    check(&plugin, "getmempoolancestors", &ancestors);
    let descendants = [(json!([ids[0]]), sorted([ids[1], ids[2]])), (json!([ids[2], false]), json!([]))];
    check(&plugin, "getmempooldescendants", &descendants);
    let entry = plugin.call("getmempoolentry", json!([ids[2]])).unwrap();
    let shown = json!({ids[2].to_string(): entry});
    check(&plugin, "getmempooldescendants", &[(json!([ids[1], true]), shown)]);
    for method in ["getmempoolancestors", "getmempooldescendants"] {
        plugin.refuses(method, &[(json!(["11".repeat(32)]), -5, "Transaction not in mempool")]);
    }
}
