//! getblocktemplate, submitblock and their kin.

use std::sync::mpsc;

use bitcoin::ScriptBuf;
use outrigger_tests::{Client, Host, HostOptions, miner};
use serde_json::{Value, json};

/// How many long polls wait at once.
const POLLS: u64 = 2_000;
/// The files that are left to the other tests, where that many are not to be had.
const SPARE_FILES: u64 = 256;

fn request() -> Value {
    json!([{"rules": ["segwit"], "capabilities": ["coinbasetxn", "coinbasevalue", "longpoll", "workid"]}])
}

fn anyone() -> ScriptBuf {
    ScriptBuf::from_bytes(vec![0x51])
}

#[test]
fn a_template_has_every_key_in_its_order() {
    let host = Host::start();
    let mut wallet = host.new_wallet("w");
    let address = wallet.call("getnewaddress", json!([]));
    wallet.call("generatetoaddress", json!([101, address]));
    let txid = wallet.call("sendtoaddress", json!([address, 1.5]));
    let template = wallet.call("getblocktemplate", request());
    let keys: Vec<&String> = template.as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        [
            "capabilities",
            "version",
            "rules",
            "vbavailable",
            "vbrequired",
            "previousblockhash",
            "transactions",
            "coinbaseaux",
            "coinbasevalue",
            "longpollid",
            "target",
            "mintime",
            "mutable",
            "noncerange",
            "sigoplimit",
            "sizelimit",
            "weightlimit",
            "curtime",
            "bits",
            "height",
            "default_witness_commitment"
        ]
    );
    let entry = &template["transactions"][0];
    let keys: Vec<&String> = entry.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["data", "txid", "hash", "depends", "fee", "sigops", "weight"]);
    assert_eq!((&entry["txid"], &entry["depends"]), (&txid, &json!([])));
    let fee = entry["fee"].as_u64().unwrap();
    assert_eq!(template["coinbasevalue"].as_u64(), Some(5_000_000_000 + fee));
    assert_eq!((&template["height"], &template["bits"]), (&json!(102), &json!("207fffff")));
    assert_eq!(template["rules"], json!(["csv", "!segwit", "taproot"]));
    let tip = wallet.call("getbestblockhash", json!([]));
    assert!(template["longpollid"].as_str().unwrap().starts_with(tip.as_str().unwrap()));
    assert_eq!(wallet.call("getblocktemplate", request()), template);
}

#[test]
fn generatetoaddress_signals_for_testdummy_until_it_is_in_force() {
    let host = Host::start();
    let mut client = host.client();
    let address = "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080";
    // The tip's height, its status and the next block's, and what a template has.
    let rows = [
        (142, "defined", "defined", 0x2000_0000),
        (143, "defined", "started", 0x3000_0000),
        (287, "started", "locked_in", 0x3000_0000),
        (431, "locked_in", "active", 0x2000_0000),
        (432, "active", "active", 0x2000_0000),
    ];
    for (height, status, next, version) in rows {
        let count = height - client.call("getblockcount", json!([])).as_u64().unwrap();
        client.call("generatetoaddress", json!([count, address]));
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
fn getblockchaininfo_of_a_development_chain_has_verified_all_of_it() {
    let host = Host::start();
    let mut client = host.client();
    let made = client.call("generateblock", json!(["raw(51)", [], false]));
    let hex = made["hex"].as_str().unwrap();
    assert_eq!(client.call("submitheader", json!([hex[..160]])), Value::Null);
    let info = client.call("getblockchaininfo", json!([]));
    assert_eq!((&info["blocks"], &info["headers"], &info["verificationprogress"]), (&json!(0), &json!(1), &json!(1)));
    let tips = client.call("getchaintips", json!([]));
    assert_eq!((&tips[0]["status"], &tips[1]["status"]), (&json!("headers-only"), &json!("active")));
}

#[test]
fn getchaintips_says_how_far_each_branch_was_looked_at() {
    let host = Host::start();
    let mut client = host.client();
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
fn sendrawtransaction_reads_its_bounds_before_the_transaction() {
    let host = Host::start();
    let mut client = host.client();
    let bound = (-8, "Fee rates larger than or equal to 1BTC/kvB are not accepted".to_owned());
    let undecodable = (-22, "TX decode failed. Make sure the tx has at least one input.".to_owned());
    let mut refused = |params: Value| client.refused("sendrawtransaction", params);
    assert_eq!(refused(json!(["zz", 2, -1])), bound);
    assert_eq!(refused(json!(["zz", 0.1, -1])), (-3, "Amount out of range".into()));
    assert_eq!(refused(json!(["zz", 0.1, 0])), undecodable);
    // No inputs and no outputs, which is a transaction that is refused.
    assert_eq!(refused(json!(["02000000000000000000"])), (-26, "bad-txns-vin-empty".into()));
    let tried = client.call("testmempoolaccept", json!([["02000000000000000000"]]));
    assert_eq!(tried[0]["reject-reason"], json!("bad-txns-vin-empty"));
}

#[test]
fn a_miner_lives_by_templates_alone() {
    let host = Host::start();
    let mut client = host.client();
    for height in 1..=110 {
        let template = client.call("getblocktemplate", request());
        let block = miner::build(&template, anyone());
        assert_eq!(client.call("submitblock", json!([miner::hex(&block)])), Value::Null);
        assert_eq!(client.call("getblockcount", json!([])), json!(height));
    }
}

#[test]
fn a_coinbase_without_its_witness_is_completed() {
    let host = Host::start();
    let mut client = host.client();
    let template = client.call("getblocktemplate", request());
    let mut block = miner::build(&template, anyone());
    block.txdata[0].input[0].witness.clear();
    assert_eq!(client.call("submitblock", json!([miner::hex(&block), {"workid": "x"}])), Value::Null);
    assert_eq!(client.call("submitblock", json!([miner::hex(&block)])), json!("duplicate"));
}

#[test]
fn proposals_are_judged_and_not_kept() {
    let host = Host::start();
    let mut client = host.client();
    let template = client.call("getblocktemplate", request());
    let good = miner::assemble(&template, anyone());
    let mut propose = |block: &bitcoin::Block| {
        client.call("getblocktemplate", json!([{"mode": "proposal", "data": miner::hex(block)}]))
    };
    assert_eq!(propose(&good), Value::Null);
    let mut block = good.clone();
    block.header.bits = bitcoin::CompactTarget::from_consensus(0x1d00_ffff);
    assert_eq!(propose(&block), json!("bad-diffbits"));
    let mut block = good.clone();
    block.header.merkle_root = bitcoin::hashes::Hash::all_zeros();
    assert_eq!(propose(&block), json!("bad-txnmrklroot"));
    let mut block = good.clone();
    block.header.prev_blockhash = bitcoin::hashes::Hash::all_zeros();
    assert_eq!(propose(&block), json!("inconclusive-not-best-prevblk"));
    let mut block = good.clone();
    block.txdata[0].output[0].value += bitcoin::Amount::ONE_SAT;
    miner::set_merkle_root(&mut block);
    assert_eq!(propose(&block), json!("bad-cb-amount"));
    assert_eq!(
        client.refused("getblocktemplate", json!([{"mode": "proposal"}])),
        (-3, "Missing data String key for proposal".into())
    );
    let undecodable = json!([{"mode": "proposal", "data": "00"}]);
    assert_eq!(client.refused("getblocktemplate", undecodable), (-22, "Block decode failed".into()));
    assert_eq!(client.call("getblockcount", json!([])), json!(0));
}

#[test]
fn a_long_poll_wakes_with_a_new_block_and_at_a_stop() {
    let mut host = Host::start();
    let mut client = host.client();
    let longpollid = client.call("getblocktemplate", request())["longpollid"].clone();
    let poll = json!([{"rules": ["segwit"], "longpollid": longpollid}]);
    let (sender, answers) = mpsc::channel();
    for _ in 0..3 {
        let (mut waiting, poll, sender) = (host.client(), poll.clone(), sender.clone());
        std::thread::spawn(move || sender.send(waiting.try_call("getblocktemplate", poll)).unwrap());
    }
    let template = client.call("getblocktemplate", request());
    let block = miner::build(&template, anyone());
    assert!(answers.try_recv().is_err(), "a long poll did not wait");
    assert_eq!(client.call("submitblock", json!([miner::hex(&block)])), Value::Null);
    for _ in 0..3 {
        let woken = answers.recv().unwrap().unwrap();
        assert_eq!(woken["previousblockhash"], json!(block.block_hash().to_string()));
    }
    // An id of another tip does not wait at all.
    assert_eq!(client.call("getblocktemplate", poll)["height"], json!(2));
    let longpollid = client.call("getblocktemplate", request())["longpollid"].clone();
    let mut waiting = host.client();
    let poll = json!([{"rules": ["segwit"], "longpollid": longpollid}]);
    let thread = std::thread::spawn(move || waiting.try_call("getblocktemplate", poll));
    // The poll is known to wait once the plugin has counted its call.
    while calls_of_mining(&mut client) < 9 {}
    client.call("stop", json!([]));
    let error = thread.join().unwrap().unwrap_err();
    assert_eq!((error.code, error.message.as_str()), (-9, "Shutting down"));
    assert!(host.wait().success());
}

#[test]
fn thousands_of_long_polls_wake_with_one_template_and_hold_nobody_up() {
    let polls = open_files().saturating_sub(SPARE_FILES).min(POLLS);
    let set = vec!["rpc.threads=2".into(), format!("rpc.queue_depth={POLLS}")];
    let host = Host::start_with(HostOptions { set, ..HostOptions::default() });
    let mut client = host.client();
    let template = client.call("getblocktemplate", request());
    let poll = json!([{"rules": ["segwit"], "longpollid": template["longpollid"]}]);
    let body = json!({"id": 1, "method": "getblocktemplate", "params": poll}).to_string();
    let before = calls_of_mining(&mut client);
    let waiting: Vec<_> = (0..polls).map(|_| client.begin(&body)).collect();
    while calls_of_mining(&mut client) < before + polls {}
    // They hold no thread: other calls are answered while all of them wait.
    assert_eq!(client.call("getblocktemplate", request())["longpollid"], template["longpollid"]);
    let block = miner::build(&template, anyone());
    assert_eq!(client.call("submitblock", json!([miner::hex(&block)])), Value::Null);
    let answers: Vec<String> = waiting.into_iter().map(|poll| poll.finish().body).collect();
    let first: Value = serde_json::from_str(&answers[0]).unwrap();
    // One that had not waited would have been answered with the first height.
    assert_eq!(first["result"]["height"], json!(2));
    assert!(answers.iter().all(|answer| *answer == answers[0]), "not all were answered by the same template");
}

/// How many files this process may have open, once it has asked for as many as it can get.
fn open_files() -> u64 {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, limit);
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

pub fn calls_of_mining(client: &mut Client) -> u64 {
    let plugins = client.call("listplugins", json!([]));
    let mining = plugins.as_array().unwrap().iter().find(|plugin| plugin["id"] == "mining").unwrap();
    mining["calls"].as_u64().unwrap()
}

#[test]
fn clients_that_leave_take_their_calls_along() {
    let host = Host::start_with(HostOptions { set: vec!["rpc.threads=2".into()], ..HostOptions::default() });
    let address = "bcrt1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqdku202";
    for _ in 0..2 {
        host.client()
            .post_and_leave(&json!({"method": "generatetoaddress", "params": [10_000_000, address]}).to_string());
    }
    // Both threads were taken; an answer shows that the calls ended with their clients.
    let mut client = host.client();
    client.call("getblockcount", json!([]));
    client.call("getblockcount", json!([]));
}

#[test]
fn bad_requests_are_refused_in_their_order() {
    let host = Host::start();
    let mut client = host.client();
    for (params, code, message) in [
        (json!([5]), -1, "JSON value is not an object as expected"),
        (json!([{"mode": 5}]), -8, "Invalid mode"),
        (json!([{"mode": "nosuch"}]), -8, "Invalid mode"),
        (json!([{"rules": ["segwit"], "longpollid": "ab"}]), -8, "longpollid must be of length 64 (not 2, for 'ab')"),
    ] {
        assert_eq!(client.refused("getblocktemplate", params.clone()), (code, message.to_owned()), "{params}");
    }
    assert_eq!(client.refused("submitblock", json!([])).0, -1);
}

#[test]
fn a_block_that_cannot_be_generated_is_told_of_with_all_details() {
    let host = Host::start();
    let mut client = host.client();
    let mined = client.call("generateblock", json!(["raw(51)", []]))["hash"].clone();
    let block = client.call("getblock", json!([mined, 2]));
    let refused = |client: &mut Client, tx: &Value| {
        let (code, message) = client.refused("generateblock", json!(["raw(51)", [tx]]));
        assert_eq!(code, -25);
        message
    };
    assert_eq!(
        refused(&mut client, &block["tx"][0]["hex"]),
        "TestBlockValidity failed: bad-cb-multiple, more than one coinbase"
    );
    let spending = [json!({"txid": "77".repeat(32), "vout": 0})];
    let missing = client.call("createrawtransaction", json!([spending, [{"data": "00"}]]));
    let txid = client.call("decoderawtransaction", json!([missing]))["txid"].clone();
    assert_eq!(
        refused(&mut client, &missing),
        format!(
            "TestBlockValidity failed: bad-txns-inputs-missingorspent, CheckTxInputs: inputs missing/spent in transaction {}",
            txid.as_str().unwrap()
        )
    );
}

#[test]
fn long_polls_have_a_bound_of_their_own() {
    let set = vec!["rpc.max_long_calls=0".to_owned()];
    let host = Host::start_with(HostOptions { set, ..HostOptions::default() });
    let mut client = host.client();
    let template = client.call("getblocktemplate", json!([{"rules": ["segwit"]}]));
    let poll = json!([{"rules": ["segwit"], "longpollid": template["longpollid"]}]);
    let reply = client.post(&json!({"id": 1, "method": "getblocktemplate", "params": poll}).to_string());
    assert_eq!((reply.status, reply.body.as_str()), (503, "Work queue depth exceeded"));
    // What does not wait is answered as ever.
    let again = client.call("getblocktemplate", json!([{"rules": ["segwit"]}]));
    assert_eq!(again["longpollid"], template["longpollid"]);
    // Nor is work refused that may take long: it may have been done by then.
    let block = miner::build(&template, anyone());
    assert_eq!(client.call("submitblock", json!([miner::hex(&block)])), Value::Null);
}
