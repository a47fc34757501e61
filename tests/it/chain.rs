//! The chain group: blocks, coins, transactions and the mempool, many compared with recordings of bitcoind.

use outrigger_tests::{Client, ELSEWHERE, Host, HostOptions, RECORDED, recorded, recorded_chain};
use serde_json::{Value, json};

/// A host that emulates a release, with the chain recorded from that release.
pub fn loaded(release: u32) -> (Host, Client) {
    let host = Host::start_with(HostOptions::of_release(release));
    let mut client = host.client();
    load(&mut client, release);
    (host, client)
}

pub fn load(client: &mut Client, release: u32) {
    for (index, block) in recorded_chain(release).iter().enumerate() {
        assert_eq!(client.call("submitblock", json!([block])), Value::Null, "height {}", index + 1);
    }
}

#[test]
fn getblock_and_getblockstats_and_gettxoutsetinfo_and_getchaintips_match_the_recorded_chain() {
    for release in RECORDED {
        let (_host, mut client) = loaded(release);
        compare_blocks(&mut client, release);
        compare_statistics(&mut client, release);
        // This step is last, since it changes the chain.
        follow_the_recorded_reorganisation(&mut client, release);
    }
}

fn compare_blocks(client: &mut Client, release: u32) {
    let recording = recorded(release, "chain.json");
    for block in recording["blocks"].as_array().unwrap() {
        assert_eq!(client.call("getblockhash", json!([block["height"]])), block["hash"]);
        let told = client.call("getblock", json!([block["hash"]]));
        assert_eq!((&told["time"], &told["nTx"]), (&block["time"], &block["transactions"]));
    }
    let (info, expected) = (client.call("getblockchaininfo", json!([])), &recording["getblockchaininfo"]);
    for (key, value) in expected.as_object().unwrap() {
        if info.get(key).is_some() && !["size_on_disk", "warnings", "verificationprogress"].contains(&key.as_str()) {
            assert_eq!(&info[key], value, "{key}");
        }
    }
    for key in ["bestblockhash", "chainwork", "mediantime", "blocks"] {
        assert_eq!(info[key], expected[key], "{key}");
    }
    let blocks = recorded_chain(release);
    let hash = client.call("getblockhash", json!([200]));
    assert_eq!(client.call("getblock", json!([hash, 0])), json!(blocks[199]));
}

fn compare_statistics(client: &mut Client, release: u32) {
    for block in recorded(release, "block-stats.json")["rows"].as_array().unwrap() {
        assert_eq!(&client.call("getblockstats", json!([block["height"]])), block);
    }
    let recording = recorded(release, "chain.json")["gettxoutsetinfo"].clone();
    for kind in ["hash_serialized_3", "none"] {
        let told = client.call("gettxoutsetinfo", json!([kind]));
        for (key, value) in told.as_object().unwrap() {
            assert!(
                ["transactions", "disk_size"].contains(&key.as_str()) || *value == recording[key],
                "{kind}: {told}"
            );
        }
        assert_eq!(told.get("hash_serialized_3").is_some(), kind != "none");
        assert_eq!(told["total_amount"].to_string(), recording["total_amount"].to_string());
    }
}

fn follow_the_recorded_reorganisation(client: &mut Client, release: u32) {
    let recording = recorded(release, "reorg.json");
    for step in recording["steps"].as_array().unwrap() {
        let name = step["block"].as_str().unwrap();
        let (branch, index) = name.split_at(1);
        let index = index.parse::<usize>().unwrap() - 1;
        let block = &recording[format!("branch_{branch}")][index]["hex"];
        assert_eq!(client.call("submitblock", json!([block])), step["submitblock"], "{name}");
        assert_eq!(client.call("getbestblockhash", json!([])), step["bestblockhash"], "{name}");
        assert_eq!(client.call("getrawmempool", json!([])), step["mempool"], "{name}");
        let coins = client.call("gettxoutsetinfo", json!([]));
        // The recording of release 32 has only `muhash`, which the embedded chain does not compute.
        if release == 29 {
            assert_eq!(coins["hash_serialized_3"], step["hash_serialized_3"], "{name}");
        }
    }
    assert_eq!(client.call("getchaintips", json!([])), recording["getchaintips"]);
    // Switch branches with invalidateblock and back with reconsiderblock.
    let first = recording["branch_b"][0]["hash"].clone();
    client.call("invalidateblock", json!([first]));
    assert_eq!(client.call("getbestblockhash", json!([])), recording["branch_a"][2]["hash"]);
    client.call("reconsiderblock", json!([first]));
    assert_eq!(client.call("getbestblockhash", json!([])), recording["branch_b"][3]["hash"]);
}

#[test]
fn getchaintips_status_says_how_far_each_branch_was_validated() {
    let host = Host::start();
    let mut client = host.client();
    let made = client.call("generateblock", json!(["raw(51)", [], false]));
    let hex = made["hex"].as_str().unwrap();
    assert_eq!(client.call("submitheader", json!([hex[..160]])), Value::Null);
    let info = client.call("getblockchaininfo", json!([]));
    assert_eq!((&info["blocks"], &info["headers"], &info["verificationprogress"]), (&json!(0), &json!(1), &json!(1)));
    let tips = client.call("getchaintips", json!([]));
    assert_eq!((&tips[0]["status"], &tips[1]["status"]), (&json!("headers-only"), &json!("active")));
    let blocks: Vec<Value> =
        ["raw(51)", "raw(52)"].iter().map(|to| client.call("generateblock", json!([to, [], false]))).collect();
    let statuses = |client: &mut Client| {
        let tips = client.call("getchaintips", json!([]));
        let status = |block: &Value| {
            tips.as_array().unwrap().iter().find(|tip| tip["hash"] == block["hash"]).unwrap()["status"].clone()
        };
        [status(&blocks[0]), status(&blocks[1])]
    };
    assert_eq!(client.call("submitblock", json!([blocks[0]["hex"]])), Value::Null);
    assert_eq!(client.call("submitblock", json!([blocks[1]["hex"]])), json!("inconclusive"));
    assert_eq!(statuses(&mut client), [json!("active"), json!("valid-headers")]);
    client.call("invalidateblock", json!([blocks[0]["hash"]]));
    assert_eq!(statuses(&mut client), [json!("invalid"), json!("active")]);
    client.call("reconsiderblock", json!([blocks[0]["hash"]]));
    let mut both = statuses(&mut client).map(|status| status.to_string());
    both.sort();
    assert_eq!(both, ["\"active\"", "\"valid-fork\""]);
}

#[test]
fn sendrawtransaction_accepts_a_created_transaction_and_refuses_its_conflict() {
    let host = Host::start();
    let mut wallet = host.new_wallet("w");
    let address = wallet.call("getnewaddress", json!([]));
    let hashes = wallet.call("generatetoaddress", json!([101, address]));
    let block = wallet.call("getblock", json!([hashes[0], 2]));
    let coinbase = &block["tx"][0];
    let raw = wallet.call("getrawtransaction", json!([coinbase["txid"], true]));
    assert_eq!((&raw["txid"], &raw["blockhash"]), (&coinbase["txid"], &hashes[0]));
    let unknown = wallet.refused("getrawtransaction", json!(["ab".repeat(32)]));
    assert_eq!(unknown.0, -5);
    let inputs = json!([{"txid": coinbase["txid"], "vout": 0}]);
    let made =
        wallet.call("createrawtransaction", json!([inputs, [{address.as_str().unwrap(): 49.99}, {"data": "beef"}]]));
    let decoded = wallet.call("decoderawtransaction", json!([made]));
    assert_eq!(decoded["vout"][0]["value"].to_string(), "49.99000000");
    assert_eq!(decoded["vout"][1]["scriptPubKey"]["type"], json!("nulldata"));
    let signed = wallet.call("signrawtransactionwithwallet", json!([made]))["hex"].clone();
    let txid = wallet.call("sendrawtransaction", json!([signed]));
    assert_eq!(wallet.call("getrawmempool", json!([])), json!([txid]));
    assert_eq!(wallet.call("getmempoolinfo", json!([]))["size"], json!(1));
    assert_eq!(wallet.call("getrawtransaction", json!([txid])), signed);
    let spent = wallet.call("createrawtransaction", json!([inputs, [{address.as_str().unwrap(): 49.9999}]]));
    let spent = wallet.call("signrawtransactionwithwallet", json!([spent]))["hex"].clone();
    let conflict = wallet.refused("sendrawtransaction", json!([spent]));
    assert_eq!(conflict.0, -26, "{conflict:?}");
    wallet.call("generatetoaddress", json!([1, address]));
    assert_eq!(wallet.refused("sendrawtransaction", json!([signed])).0, -27);
    assert_eq!(wallet.refused("sendrawtransaction", json!([spent])), (-25, "bad-txns-inputs-missingorspent".into()));
    assert_eq!(wallet.call("gettxout", json!([coinbase["txid"], 0])), Value::Null);
}

/// The state that must survive a restart. No wallet is loaded, so none resubmits transactions.
fn state(client: &mut Client) -> Vec<Value> {
    vec![
        client.call("getrawmempool", json!([])),
        client.call("getrawmempool", json!([true])),
        client.call("getmempoolinfo", json!([])),
        client.call("getprioritisedtransactions", json!([])),
    ]
}

fn sequence(client: &mut Client) -> u64 {
    client.call("getrawmempool", json!([false, true]))["mempool_sequence"].as_u64().unwrap()
}

#[test]
fn getrawmempool_sequence_and_getmempoolinfo_count_as_bitcoind_and_the_mempool_survives_a_restart() {
    let host = Host::start();
    let mut client = host.client();
    let mut wallet = client.create_wallet("w", json!({"load_on_startup": false}));
    let address = wallet.mine(101);
    for amount in 1..=5 {
        wallet.call("sendtoaddress", json!([address, amount]));
    }
    // The sequence starts at 1 and counts added and removed transactions, but no blocks.
    assert_eq!([sequence(&mut client), sequence(&mut client)], [6, 6]);
    let info = client.call("getmempoolinfo", json!([]));
    assert_eq!((&info["unbroadcastcount"], &info["maxmempool"]), (&json!(5), &json!(300_000_000)));
    let entries = client.call("getrawmempool", json!([true]));
    assert!(entries.as_object().unwrap().values().all(|entry| entry["unbroadcast"] == json!(true)));
    let txid = client.call("getrawmempool", json!([]))[2].clone();
    client.call("prioritisetransaction", json!([txid, 0, 12_345]));
    client.call("prioritisetransaction", json!(["11".repeat(32), 0, -7]));
    let before = state(&mut client);
    assert_eq!(before[0].as_array().unwrap().len(), 5);
    assert_eq!(before[3].as_object().unwrap().len(), 2);
    let host = host.restart();
    let mut client = host.client();
    assert_eq!(state(&mut client), before);
    let started = sequence(&mut client);
    let mined = client.call("generatetoaddress", json!([1, ELSEWHERE]));
    assert_eq!(sequence(&mut client), started + 5);
    client.call("invalidateblock", json!([mined[0]]));
    // Transactions from a disconnected block do not count as unbroadcast.
    let info = client.call("getmempoolinfo", json!([]));
    assert_eq!((&info["size"], &info["unbroadcastcount"]), (&json!(5), &json!(0)));
    let txid = client.call("getrawmempool", json!([]))[0].clone();
    assert_eq!(client.call("getmempoolentry", json!([txid]))["unbroadcast"], json!(false));
}
