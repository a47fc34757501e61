//! The embedded chain and a real bitcoind with the same blocks give byte-identical answers to the same calls.

use outrigger_tests::{
    Bitcoind, Client, Host, HostOptions, NOBODY, RECORDED, XPUB, bitcoind, data_json, recorded_chain, wait_until,
};
use serde_json::{Value, json};

/// A host and a node with the recorded chain, at the time of its tip; `None`, with a message, if no bitcoind is installed.
fn both() -> Option<(Host, Bitcoind)> {
    let program = bitcoind::installed()?;
    let (node, _) = Bitcoind::start_with(program, &["-txindex=1", "-blockfilterindex=1"]);
    let host = Host::start_with(HostOptions::with(&[&format!("release={}", bitcoind::release(&mut node.client()))]));
    let recorded = data_json("chain.json");
    let time = &recorded["blocks"].as_array().unwrap().last().unwrap()["time"];
    for mut client in [host.client(), node.client()] {
        client.call("setmocktime", json!([time]));
        for block in recorded_chain(RECORDED[0]) {
            assert_eq!(client.call("submitblock", json!([block])), Value::Null);
        }
    }
    // The node's indexes follow its chain in background threads.
    let mut client = node.client();
    let height = json!(recorded_chain(RECORDED[0]).len());
    wait_until("the indexes are up to date", || {
        let indexes = client.call("getindexinfo", json!([]));
        indexes.as_object().unwrap().values().all(|index| index["best_block_height"] == height)
    });
    Some((host, node))
}

/// Removes the members that Bitcoin Knots adds to an answer of Bitcoin Core 29.
pub fn as_core(answer: &mut Value) {
    match answer {
        Value::Array(elements) => elements.iter_mut().for_each(as_core),
        Value::Object(members) => {
            for added in ["header_version", "isactive", "txcount", "use_txids"] {
                members.shift_remove(added);
            }
            members.values_mut().for_each(as_core);
        }
        _ => {}
    }
}

/// The client's answer to a call: the result, or the code and message of the error.
pub fn told(client: &mut Client, method: &str, params: &Value) -> String {
    match client.try_call(method, params.clone()) {
        Ok(mut result) => {
            as_core(&mut result);
            result.to_string()
        }
        Err(error) => format!("{} {}", error.code, error.message),
    }
}

#[track_caller]
fn check(host: &Host, node: &Bitcoind, calls: &[(&str, Value)]) {
    let (mut ours, mut theirs) = (host.client(), node.client());
    let mut different = Vec::new();
    for (method, params) in calls {
        let answers = [&mut ours, &mut theirs].map(|client| told(client, method, params));
        if answers[0] != answers[1] {
            different.push(format!("{method} {params}: {answers:?}"));
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}

/// The hash and the txids of a block of the recorded chain.
fn transactions(client: &mut Client, height: u32) -> (Value, Vec<Value>) {
    let hash = client.call("getblockhash", json!([height]));
    let block = client.call("getblock", json!([hash]));
    (hash, block["tx"].as_array().unwrap().clone())
}

#[test]
fn getblock_and_gettxoutproof_and_scantxoutset_and_waitforblock_and_related_methods_answer_as_bitcoind() {
    let Some((host, node)) = both() else { return };
    for compare in [compare_blocks, compare_proofs, compare_filters, compare_scans, compare_peers, compare_keys] {
        compare(&host, &node);
    }
    // This step is last, since it mines only on the host.
    compare_waits(&host, &node);
}

/// gettxoutproof and verifytxoutproof.
fn compare_proofs(host: &Host, node: &Bitcoind) {
    let mut client = host.client();
    for height in (0..=300).step_by(20) {
        let (hash, txids) = transactions(&mut client, height);
        for some in [&txids[..], &txids[..1], &txids[txids.len() - 1..], &txids[txids.len() / 2..]] {
            check(host, node, &[("gettxoutproof", json!([some])), ("gettxoutproof", json!([some, hash]))]);
            let Ok(proof) = client.try_call("gettxoutproof", json!([some])) else { continue };
            let proof = proof.as_str().unwrap();
            let end = proof.len();
            let changed = |at: usize, digits: &str| format!("{}{digits}{}", &proof[..at], &proof[at + digits.len()..]);
            // Offsets of the header, the transaction count, the hash count (twice) and the flags.
            let spoilt = [
                changed(8, "ff"),
                changed(160, "00"),
                changed(160, "fe"),
                changed(168, "00"),
                changed(168, "fd01"),
                changed(end - 2, "00"),
            ];
            let calls = spoilt.into_iter().chain([proof.to_owned(), format!("{proof}00"), proof[..end - 2].to_owned()]);
            let calls: Vec<_> = calls.map(|proof| ("verifytxoutproof", json!([proof]))).collect();
            check(host, node, &calls);
        }
    }
    let (hash, txids) = transactions(&mut client, 250);
    let (_, others) = transactions(&mut client, 260);
    let none = "11".repeat(32);
    let calls = [
        json!([[]]),
        json!([[none]]),
        json!([[none], none]),
        json!([[txids[0], none]]),
        json!([[none, txids[0]], hash]),
        json!([[txids[0], others[0]]]),
        json!([[txids[0], txids[0]]]),
        json!([["zz"]]),
        json!([[5]]),
        json!([[txids[0]], "zz"]),
        json!([txids[0]]),
        json!([[txids[0]], Value::Null]),
    ];
    check(host, node, &calls.map(|params| ("gettxoutproof", params)));
    let calls = ["", "zz", "aa", &"00".repeat(80), &"ff".repeat(90)].map(|text| ("verifytxoutproof", json!([text])));
    check(host, node, &calls);
}

/// waitforblock and related methods.
fn compare_waits(host: &Host, node: &Bitcoind) {
    let best = host.client().call("getbestblockhash", json!([]));
    let none = "11".repeat(32);
    let calls = [
        ("waitfornewblock", json!([1])),
        ("waitfornewblock", json!([-1])),
        ("waitfornewblock", json!([0.5])),
        ("waitfornewblock", json!(["a"])),
        ("waitforblock", json!([best])),
        ("waitforblock", json!([none, 1])),
        ("waitforblock", json!(["aa", -1])),
        ("waitforblock", json!([none, -1])),
        ("waitforblockheight", json!([300])),
        ("waitforblockheight", json!([301, 1])),
        ("waitforblockheight", json!([301, -5])),
        ("waitforblockheight", json!([-5])),
    ];
    check(host, node, &calls);
    let mut client = host.client();
    let height = client.begin_call("waitforblockheight", json!([301]));
    let other = client.begin_call("waitfornewblock", json!([]));
    let mut mine = || client.call("generatetoaddress", json!([1, NOBODY]))[0].clone();
    let first = mine();
    assert_eq!(height.answer()["result"], json!({"hash": first, "height": 301}));
    // The call may read the tip after the first block.
    std::thread::scope(|scope| {
        let answer = scope.spawn(|| other.answer()["result"].clone());
        let mut mined = vec![first];
        while !answer.is_finished() {
            mined.push(mine());
        }
        assert!(mined.contains(&answer.join().unwrap()["hash"]));
    });
}

/// getpeerinfo and related methods.
fn compare_peers(host: &Host, node: &Bitcoind) {
    let calls = [
        ("syncwithvalidationinterfacequeue", json!([])),
        ("getconnectioncount", json!([])),
        ("getpeerinfo", json!([])),
        ("listbanned", json!([])),
        ("getnodeaddresses", json!([])),
        ("getnodeaddresses", json!([0, "Onion"])),
        ("getnodeaddresses", json!([-1])),
        ("getnodeaddresses", json!([1, "foo"])),
        ("ping", json!([])),
    ];
    check(host, node, &calls);
}

/// createmultisig and signmessagewithprivkey.
fn compare_keys(host: &Host, node: &Bitcoind) {
    let keys = [
        "03789ed0bb717d88f7d321a368d905e7430207ebbd82bd342cf11ae157a7ace5fd",
        "03dbc6764b8884a92e871274b87583e6d5c2a58819473e17e107ef3f6aa5a61626",
    ];
    let hybrid = "0711db93e1dcdb8a016b49840f8c53bc1eb68a382e97b1482ecad7b148a6909a5cb2e0eaddfb84ccf9744464f82e160bfa9b8b64f9d4c03f999b8643f656b412a3";
    let wif = "cMahea7zqjxrtgAbB7LSGbcQUr1uX1ojuat9jZodMN87K7XCyj5v";
    let calls = [
        ("createmultisig", json!([1, [keys[0], hybrid], "bech32"])),
        ("createmultisig", json!([17, vec![keys[0]; 20], "p2sh-segwit"])),
        ("createmultisig", json!([2, [keys[1], keys[0]]])),
        ("createmultisig", json!([1, [5]])),
        ("createmultisig", json!([1, []])),
        ("createmultisig", json!(["1", keys])),
        ("signmessagewithprivkey", json!([wif, "hello"])),
        ("signmessagewithprivkey", json!([wif, ""])),
        ("signmessagewithprivkey", json!(["91avARGdfge8E4tZfYLoxeJ5sGBdNJQH4kvjJoQFacbgwmaKkrx", "hello"])),
        ("signmessagewithprivkey", json!(["5HueCGU8rMjxEXxiPuD5BDku4MkFqeZyd4dZ1jvhTVqvbTLvyTJ", "hello"])),
        ("signmessagewithprivkey", json!(["xx", "hello"])),
        ("signmessagewithprivkey", json!([5, "hello"])),
    ];
    check(host, node, &calls);
}

/// scantxoutset and related methods.
fn compare_scans(host: &Host, node: &Bitcoind) {
    let mut client = host.client();
    let key = "03789ed0bb717d88f7d321a368d905e7430207ebbd82bd342cf11ae157a7ace5fd";
    let wif = "cMahea7zqjxrtgAbB7LSGbcQUr1uX1ojuat9jZodMN87K7XCyj5v";
    // The recorded chain's scripts, of every type, as descriptors.
    let mut scripts = std::collections::BTreeSet::new();
    let mut hashes = Vec::new();
    for height in 100..=300 {
        let hash = client.call("getblockhash", json!([height]));
        let block = client.call("getblock", json!([hash, 2]));
        hashes.push(hash);
        for output in block["tx"].as_array().unwrap().iter().flat_map(|tx| tx["vout"].as_array().unwrap()) {
            scripts.insert(format!("raw({})", output["scriptPubKey"]["hex"].as_str().unwrap()));
            if let Some(address) = output["scriptPubKey"]["address"].as_str() {
                scripts.insert(format!("addr({address})"));
            }
        }
    }
    let scripts: Vec<String> = scripts.into_iter().collect();
    assert!(scripts.len() > 100, "{}", scripts.len());
    let mut calls = Vec::new();
    for some in scripts.chunks(scripts.len() / 4) {
        calls.push(("scantxoutset", json!(["start", some])));
        calls.push(("scanblocks", json!(["start", some, 150, 250, "basic", {"filter_false_positives": true}])));
        calls.push(("getdescriptoractivity", json!([hashes, some])));
    }
    let objects = [
        json!([]),
        json!([5]),
        json!([{}]),
        json!([{"desc": 5}]),
        json!([{"desc": format!("combo({key})")}, format!("combo({wif})"), {"desc": format!("wpkh({XPUB}/0/*)"), "range": [5, 9]}]),
        json!([{"desc": "raw(51)", "range": "x"}]),
        json!([{"desc": format!("wpkh({XPUB}/*)"), "range": [2, 1]}]),
        json!([{"desc": format!("wpkh({XPUB}/*)"), "range": 2_000_000}]),
        json!([format!("wpkh({XPUB}/0h/*)")]),
        Value::Null,
    ];
    for objects in objects {
        calls.push(("scantxoutset", json!(["start", objects])));
        calls.push(("scanblocks", json!(["start", objects])));
        calls.push(("getdescriptoractivity", json!([[], objects])));
    }
    // In scantxoutset, bitcoind treats null as absent. In scanblocks, releases after 29 report an absent array as a null.
    let is_later = bitcoind::release(&mut node.client()) >= 30;
    calls.retain(|(method, params)| !params[1].is_null() || *method == "scanblocks" && !is_later);
    for method in ["scantxoutset", "scanblocks"] {
        calls.extend(["status", "abort", "foo"].map(|action| (method, json!([action]))));
        calls.push((method, json!([5])));
    }
    calls.push(("scantxoutset", json!(["start"])));
    if !is_later {
        calls.push(("scanblocks", json!(["start"])));
    }
    for rest in [
        json!([301]),
        json!([-1]),
        json!([0, 301]),
        json!([3, 2]),
        json!([0, 1, "foo"]),
        json!([0, 1, "basic", {"filter_false_positives": 1}]),
        json!([300]),
    ] {
        let rest = rest.as_array().unwrap();
        calls.push(("scanblocks", [&[json!("start"), json!([])], rest.as_slice()].concat().into()));
    }
    for params in [json!([["aa"], []]), json!([["11".repeat(32)], []]), json!([[5], []]), json!([[hashes[0]], [], 5])] {
        calls.push(("getdescriptoractivity", params));
    }
    check(host, node, &calls);
}

/// getblockfilter.
fn compare_filters(host: &Host, node: &Bitcoind) {
    let mut client = host.client();
    // The last filter comes first, since its header depends on all earlier ones.
    let mut calls = vec![("getindexinfo", json!([])), ("getindexinfo", json!(["basic block filter index"]))];
    for height in (0..=300).rev() {
        calls.push(("getblockfilter", json!([client.call("getblockhash", json!([height]))])));
    }
    let none = "11".repeat(32);
    calls.extend(
        [json!(["aa", "foo"]), json!([none, "foo"]), json!([none, "basic"]), json!([5])]
            .map(|params| ("getblockfilter", params)),
    );
    check(host, node, &calls);
}

/// getblock, getrawtransaction and related methods.
fn compare_blocks(host: &Host, node: &Bitcoind) {
    let mut client = host.client();
    let mut calls = vec![("getblockcount", json!([])), ("getchaintips", json!([])), ("getchaintxstats", json!([]))];
    for height in (0..=300).step_by(30) {
        let (hash, txids) = transactions(&mut client, height);
        calls.push(("getblockhash", json!([height])));
        calls.extend([json!([hash]), json!([hash, false])].map(|params| ("getblockheader", params)));
        for verbosity in [json!(0), json!(false), json!(1), json!(true), json!(2), json!(3)] {
            calls.push(("getblock", json!([hash, verbosity])));
        }
        calls.extend([json!([0, hash]), json!([10, hash])].map(|params| ("getchaintxstats", params)));
        for txid in txids.iter().take(3) {
            calls.extend([json!([txid, 0]), json!([txid, 0, false])].map(|params| ("gettxout", params)));
            for verbosity in [json!(null), json!(true), json!(2)] {
                calls.push(("getrawtransaction", json!([txid, verbosity])));
                calls.push(("getrawtransaction", json!([txid, verbosity, hash])));
            }
        }
    }
    check(host, node, &calls);
}
