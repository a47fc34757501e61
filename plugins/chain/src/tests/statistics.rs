//! What is counted over blocks and over the mempool, and what is told of rules and indexes.

use bitcoin::OutPoint;
use outrigger_sdk::testing::TestHost;
use serde_json::json;

use super::{GENESIS, check, check_refusals, funded, keys, pay, start};

#[test]
fn transactions_are_counted_in_all_and_in_a_window() {
    let (host, outpoint) = funded();
    let plugin = start(&host);
    let block_time = |hash| host.chain.get(hash).unwrap().header.time;
    let first = host.chain.mine(vec![]);
    let second = host.chain.mine(vec![pay(outpoint, 1000, &[0x51])]);
    let third = host.chain.mine(vec![]);
    let stats = plugin.call("getchaintxstats", json!([])).unwrap();
    let expected = "time txcount window_final_block_hash window_final_block_height window_block_count window_interval \
        window_tx_count txrate";
    assert_eq!(keys(&stats), expected.split_whitespace().collect::<Vec<_>>());
    assert_eq!((&stats["time"], &stats["txcount"]), (&json!(block_time(third)), &json!(5)));
    assert_eq!((&stats["window_final_block_hash"], &stats["window_final_block_height"]), (&json!(third), &json!(3)));
    // The default is a month, and no more than there is above the first block.
    assert_eq!((&stats["window_block_count"], &stats["window_tx_count"]), (&json!(2), &json!(3)));
    let median = |hash| plugin.call("getblockheader", json!([hash])).unwrap()["mediantime"].as_u64().unwrap();
    let interval = median(third) - median(first);
    assert_eq!(stats["window_interval"], json!(interval));
    assert_eq!(stats["txrate"].as_f64().unwrap(), 3.0 / interval as f64);
    let stats = plugin.call("getchaintxstats", json!([1, second])).unwrap();
    assert_eq!((&stats["txcount"], &stats["window_tx_count"]), (&json!(4), &json!(2)));
    let stats = plugin.call("getchaintxstats", json!([0])).unwrap();
    assert_eq!(keys(&stats).last().unwrap().as_str(), "window_block_count");
    let count = "Invalid block count: should be between 0 and the block's height - 1";
    check_refusals(
        &plugin,
        "getchaintxstats",
        &[
            (json!([3]), -8, count),
            (json!([-1]), -8, count),
            (json!([5, GENESIS]), -8, count),
            (json!([1, "11".repeat(32)]), -5, "Block not found"),
        ],
    );
    plugin.call("invalidateblock", json!([third])).unwrap();
    check_refusals(&plugin, "getchaintxstats", &[(json!([1, third]), -8, "Block is not in main chain")]);
}

#[test]
fn rules_indexes_and_difficulty_are_told() {
    let host = TestHost::new();
    let plugin = start(&host);
    let tip = host.chain.mine(vec![]);
    assert_eq!(plugin.call_json("getdifficulty", json!([])).unwrap(), "4.656542373906925e-10");
    let info = plugin.call("getdeploymentinfo", json!([])).unwrap();
    assert_eq!((&info["hash"], &info["height"]), (&json!(tip), &json!(1)));
    assert_eq!(keys(&info["deployments"]), ["bip34", "bip66", "bip65", "csv", "segwit", "taproot"]);
    assert_eq!(info["deployments"]["bip34"], json!({"type": "buried", "active": true, "height": 1}));
    assert_eq!(info["deployments"]["taproot"]["bip9"]["status"], json!("active"));
    assert_eq!(plugin.call("getdeploymentinfo", json!([GENESIS])).unwrap()["height"], json!(0));
    check_refusals(&plugin, "getdeploymentinfo", &[(json!(["11".repeat(32)]), -5, "Block not found")]);
    let index = json!({"txindex": {"synced": true, "best_block_height": 1}});
    let cases = [(json!([]), index.clone()), (json!(["txindex"]), index), (json!(["coinstatsindex"]), json!({}))];
    check(&plugin, "getindexinfo", &cases);
}

#[test]
fn relatives_in_the_mempool_are_followed_over_generations() {
    let (host, outpoint) = funded();
    let plugin = start(&host);
    let first = pay(outpoint, 3000, &[0x51]);
    let second = pay(OutPoint::new(first.compute_txid(), 0), 2000, &[0x51]);
    let third = pay(OutPoint::new(second.compute_txid(), 0), 1000, &[0x51]);
    let ids = [&first, &second, &third].map(|transaction| transaction.compute_txid());
    for transaction in [first, second, third] {
        host.mempool.add(transaction, 500);
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
        check_refusals(&plugin, method, &[(json!(["11".repeat(32)]), -5, "Transaction not in mempool")]);
    }
}
