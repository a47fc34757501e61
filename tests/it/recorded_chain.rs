//! Blocks that a real bitcoind mined, and what it said of bad ones.

use outrigger_tests::{Client, Host, data_json, recorded_chain};
use serde_json::{Value, json};

/// A host that has the recorded chain.
fn loaded() -> (Host, Client) {
    let host = Host::start();
    let mut client = host.client();
    load(&mut client);
    (host, client)
}

/// Submits the recorded chain block by block.
pub fn load(client: &mut Client) {
    for (index, block) in recorded_chain().iter().enumerate() {
        assert_eq!(client.call("submitblock", json!([block])), Value::Null, "height {}", index + 1);
    }
}

#[test]
fn every_recorded_block_is_accepted_and_told_alike() {
    let (_host, mut client) = loaded();
    let recorded = data_json("chain.json");
    for block in recorded["blocks"].as_array().unwrap() {
        assert_eq!(client.call("getblockhash", json!([block["height"]])), block["hash"]);
        let told = client.call("getblock", json!([block["hash"]]));
        assert_eq!((&told["time"], &told["nTx"]), (&block["time"], &block["transactions"]));
    }
    let (info, expected) = (client.call("getblockchaininfo", json!([])), &recorded["getblockchaininfo"]);
    for (key, value) in expected.as_object().unwrap() {
        if info.get(key).is_some() && !["size_on_disk", "warnings", "verificationprogress"].contains(&key.as_str()) {
            assert_eq!(&info[key], value, "{key}");
        }
    }
    for key in ["bestblockhash", "chainwork", "mediantime", "blocks"] {
        assert_eq!(info[key], expected[key], "{key}");
    }
    let blocks = recorded_chain();
    let hash = client.call("getblockhash", json!([200]));
    assert_eq!(client.call("getblock", json!([hash, 0])), json!(blocks[199]));
}

#[test]
fn recorded_blocks_and_coins_are_counted_alike() {
    let (_host, mut client) = loaded();
    for block in data_json("block-stats.json")["rows"].as_array().unwrap() {
        assert_eq!(&client.call("getblockstats", json!([block["height"]])), block);
    }
    let recorded = data_json("chain.json")["gettxoutsetinfo"].clone();
    for kind in ["hash_serialized_3", "muhash", "none"] {
        let told = client.call("gettxoutsetinfo", json!([kind]));
        for (key, value) in told.as_object().unwrap() {
            assert!(["transactions", "disk_size"].contains(&key.as_str()) || *value == recorded[key], "{kind}: {told}");
        }
        let hashes = ["hash_serialized_3", "muhash"].map(|key| told.get(key).is_some());
        assert_eq!(hashes, [kind == "hash_serialized_3", kind == "muhash"]);
        assert_eq!(told["total_amount"].to_string(), recorded["total_amount"].to_string());
    }
}

#[test]
fn a_recorded_reorganisation_goes_the_same_way() {
    let (_host, mut client) = loaded();
    let recorded = data_json("reorg.json");
    for step in recorded["steps"].as_array().unwrap() {
        let name = step["block"].as_str().unwrap();
        let (branch, index) = name.split_at(1);
        let index = index.parse::<usize>().unwrap() - 1;
        let block = &recorded[format!("branch_{branch}")][index]["hex"];
        assert_eq!(client.call("submitblock", json!([block])), step["submitblock"], "{name}");
        assert_eq!(client.call("getbestblockhash", json!([])), step["bestblockhash"], "{name}");
        assert_eq!(client.call("getrawmempool", json!([])), step["mempool"], "{name}");
        assert_eq!(client.call("gettxoutsetinfo", json!(["muhash"]))["muhash"], step["muhash"], "{name}");
    }
    assert_eq!(client.call("getchaintips", json!([])), recorded["getchaintips"]);
    // And back again, by an operator's word.
    let first = recorded["branch_b"][0]["hash"].clone();
    client.call("invalidateblock", json!([first]));
    assert_eq!(client.call("getbestblockhash", json!([])), recorded["branch_a"][2]["hash"]);
    client.call("reconsiderblock", json!([first]));
    assert_eq!(client.call("getbestblockhash", json!([])), recorded["branch_b"][3]["hash"]);
}

fn hex(row: &Value) -> String {
    match row["hex"].as_str() {
        Some(hex) => hex.to_owned(),
        None => {
            let runs = row["hex_runs"].as_array().unwrap().iter();
            runs.map(|run| run[0].as_str().unwrap().repeat(run[1].as_u64().unwrap() as usize)).collect()
        }
    }
}

#[test]
fn bad_blocks_are_refused_with_the_same_reasons() {
    let (_host, mut client) = loaded();
    let tip = client.call("getbestblockhash", json!([]));
    let header = client.call("getblockheader", json!([tip]));
    client.call("setmocktime", json!([header["time"]]));
    let mut differ = Vec::new();
    for row in data_json("bad-blocks.json")["rows"].as_array().unwrap() {
        let block = hex(row);
        let name = row["name"].as_str().unwrap();
        let asked = [
            ("proposal", "getblocktemplate", json!([{"mode": "proposal", "data": block}])),
            ("submitblock", "submitblock", json!([block])),
            ("submitblock_again", "submitblock", json!([block])),
            ("proposal_again", "getblocktemplate", json!([{"mode": "proposal", "data": block}])),
        ];
        for (key, method, params) in asked {
            let verdict = match client.try_call(method, params) {
                Ok(verdict) => verdict,
                Err(error) => json!({"code": error.code, "message": error.message}),
            };
            if verdict != row[key] {
                differ.push(format!("{name}: {key}: {verdict} and not {}", row[key]));
            }
        }
        if row["accepted"] == json!(true) {
            client.call("invalidateblock", json!([client_hash(&block)]));
        }
        assert_eq!(client.call("getbestblockhash", json!([])), tip, "{name}");
    }
    assert!(differ.is_empty(), "{} verdicts differ:\n{}", differ.len(), differ.join("\n"));
}

/// The hash of a block in hexadecimal.
fn client_hash(block: &str) -> String {
    let header: bitcoin::block::Header = bitcoin::consensus::encode::deserialize_hex(&block[..160]).unwrap();
    header.block_hash().to_string()
}
