//! Blocks that are submitted, and blocks that are generated.

use std::collections::HashSet;

use outrigger_tests::{Client, Host, NOBODY, RECORDED, recorded};
use serde_json::{Value, json};

use super::request;
use crate::chain;

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
fn submitblock_and_proposals_refuse_recorded_bad_blocks_for_the_same_reasons() {
    for release in RECORDED {
        let (_host, mut client) = chain::loaded(release);
        let tip = client.call("getbestblockhash", json!([]));
        let header = client.call("getblockheader", json!([tip]));
        client.call("setmocktime", json!([header["time"]]));
        let mut differ = Vec::new();
        for row in recorded(release, "bad-blocks.json")["rows"].as_array().unwrap() {
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
        assert!(differ.is_empty(), "{release}: {} verdicts differ:\n{}", differ.len(), differ.join("\n"));
    }
}

fn client_hash(block: &str) -> String {
    let header: bitcoin::block::Header = bitcoin::consensus::encode::deserialize_hex(&block[..160]).unwrap();
    header.block_hash().to_string()
}

#[test]
fn generatetoaddress_signals_for_testdummy_until_it_is_in_force() {
    let host = Host::start();
    let mut client = host.client();
    // The tip's height, the deployment's status now and at the next block, and the template's fields.
    let rows = [
        (142, "defined", "defined", 0x2000_0000),
        (143, "defined", "started", 0x3000_0000),
        (287, "started", "locked_in", 0x3000_0000),
        (431, "locked_in", "active", 0x2000_0000),
        (432, "active", "active", 0x2000_0000),
    ];
    for (height, status, next, version) in rows {
        let count = height - client.call("getblockcount", json!([])).as_u64().unwrap();
        client.call("generatetoaddress", json!([count, NOBODY]));
        let info = client.call("getdeploymentinfo", json!([]));
        let names: Vec<&String> = info["deployments"].as_object().unwrap().keys().collect();
        assert_eq!(names, ["bip34", "bip66", "bip65", "csv", "segwit", "testdummy", "taproot"]);
        let testdummy = &info["deployments"]["testdummy"];
        let expected = (&json!(status), &json!(next), &json!(next == "active"));
        assert_eq!((&testdummy["bip9"]["status"], &testdummy["bip9"]["status_next"], &testdummy["active"]), expected);
        assert_eq!(testdummy.get("height"), (next == "active").then_some(&json!(432)));
        let template = client.call("getblocktemplate", request());
        let available = if version == 0x3000_0000 { json!({"testdummy": 28}) } else { json!({}) };
        assert_eq!((&template["version"], &template["vbavailable"]), (&json!(version), &available), "{height}");
        let rules: Vec<&str> = match next {
            "active" => vec!["csv", "!segwit", "testdummy", "taproot"],
            _ => vec!["csv", "!segwit", "taproot"],
        };
        assert_eq!((&template["rules"], &template["vbrequired"]), (&json!(rules), &json!(0)), "{height}");
    }
    for (height, version) in [(143, "20000000"), (144, "30000000"), (431, "30000000"), (432, "20000000")] {
        let hash = client.call("getblockhash", json!([height]));
        assert_eq!(client.call("getblockheader", json!([hash]))["versionHex"], json!(version), "{height}");
    }
}

#[test]
fn generateblock_handles_invalid_known_and_simultaneous_blocks() {
    let host = Host::start();
    let mut client = host.client();
    refuse_invalid_blocks_with_all_details(&mut client);
    let height = client.call("getblockcount", json!([])).as_u64().unwrap();
    make_blocks_at_once(&host, height);
    // Last, since it stops the clock.
    take_the_next_time_if_the_header_is_known(&mut client);
}

fn refuse_invalid_blocks_with_all_details(client: &mut Client) {
    let mined = client.call("generateblock", json!(["raw(51)", []]))["hash"].clone();
    let block = client.call("getblock", json!([mined, 2]));
    let refused = |client: &mut Client, tx: &Value| {
        let (code, message) = client.refused("generateblock", json!(["raw(51)", [tx]]));
        assert_eq!(code, -25);
        message
    };
    assert_eq!(
        refused(client, &block["tx"][0]["hex"]),
        "TestBlockValidity failed: bad-cb-multiple, more than one coinbase"
    );
    let spending = [json!({"txid": "77".repeat(32), "vout": 0})];
    let missing = client.call("createrawtransaction", json!([spending, [{"data": "00"}]]));
    let txid = client.call("decoderawtransaction", json!([missing]))["txid"].clone();
    assert_eq!(
        refused(client, &missing),
        format!(
            "TestBlockValidity failed: bad-txns-inputs-missingorspent, CheckTxInputs: inputs missing/spent in transaction {}",
            txid.as_str().unwrap()
        )
    );
}

fn make_blocks_at_once(host: &Host, before: u64) {
    const CLIENTS: usize = 6;
    const CALLS: usize = 20;
    const ADDRESS: &str = "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080";
    let hashes: HashSet<Value> = std::thread::scope(|scope| {
        let mine = |mut client: Client| {
            let own = |_| {
                let block = client.call("generateblock", json!([ADDRESS, []]))["hash"].clone();
                [block, client.call("generatetoaddress", json!([1, ADDRESS]))[0].clone()]
            };
            (0..CALLS / 2).flat_map(own).collect::<Vec<_>>()
        };
        let threads = (0..CLIENTS).map(|_| host.client()).map(|client| scope.spawn(move || mine(client)));
        threads.collect::<Vec<_>>().into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(hashes.len(), CLIENTS * CALLS, "each call made a block of its own");
    // Blocks may have the same parent.
    let made = host.client().call("getblockcount", json!([])).as_u64().unwrap() - before;
    assert!((CALLS as u64..=(CLIENTS * CALLS) as u64).contains(&made), "{made}");
}

fn take_the_next_time_if_the_header_is_known(client: &mut Client) {
    let mut time = 2_000_000_000;
    // A block whose first nonce has enough work: about every second block has.
    let header = loop {
        client.call("setmocktime", json!([time]));
        let made = client.call("generateblock", json!(["raw(51)", [], false]));
        let hex = made["hex"].as_str().unwrap();
        if hex.get(152..160) == Some("00000000") {
            break hex[..160].to_owned();
        }
        time += 1;
    };
    client.call("submitheader", json!([header]));
    let mined = client.call("generateblock", json!(["raw(51)", []]))["hash"].clone();
    assert_eq!(client.call("getbestblockhash", json!([])), mined);
    assert_eq!(client.call("getblockheader", json!([mined]))["time"], json!(time + 1));
}
