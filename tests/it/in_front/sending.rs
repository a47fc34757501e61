//! Payments in front of a node: their coins, locktimes and sizes, and the node's refusals.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bitcoin::hex::FromHex;
use outrigger_tests::{Client, Host, Point, bitcoind};
use serde_json::{Value, json};

use super::{ADDRESS, start, start_behind_relay};

fn funded(host: &Host, coins: u32) -> Client {
    let mut wallet = host.new_wallet("w");
    wallet.fund(coins);
    wallet
}

/// Spends a coin in a transaction of version 3 with an output of the wallet. Returns the txid.
fn send_version_3(wallet: &mut Client, coin: &Value) -> Value {
    let mine = wallet.call("getrawchangeaddress", json!([]));
    let input = json!([{"txid": coin["txid"], "vout": coin["vout"]}]);
    let raw = wallet.call("createrawtransaction", json!([input, [{mine.as_str().unwrap(): 49.99}]]));
    let raw = format!("03{}", &raw.as_str().unwrap()[2..]);
    let signed = wallet.call("signrawtransactionwithwallet", json!([raw]));
    wallet.call("sendrawtransaction", json!([signed["hex"]]))
}

#[test]
fn payments_of_version_2_spend_no_unconfirmed_coins_of_version_3_and_the_reverse() {
    let Some(host) = start(&["-fallbackfee=0.0001"]) else { return };
    let mut wallet = funded(&host, 1);
    let coin = wallet.call("listunspent", json!([]))[0].clone();
    let three = send_version_3(&mut wallet, &coin);
    assert_eq!(wallet.call("getbalances", json!([]))["mine"]["trusted"].as_f64(), Some(49.99));
    let poor = (-6, "Insufficient funds".to_owned());
    assert_eq!(wallet.refused("sendtoaddress", json!([ADDRESS, 1])), poor);
    let words = "Can't spend unconfirmed version 3 pre-selected input with a version 2 tx".to_owned();
    let input = json!([{"txid": three, "vout": 0}]);
    let raw = wallet.call("createrawtransaction", json!([input, [{ADDRESS: 1}]]));
    assert_eq!(wallet.refused("fundrawtransaction", json!([raw])), (-4, words.clone()));
    let options = json!({"inputs": input, "fee_rate": 10});
    assert_eq!(wallet.refused("send", json!({"outputs": [{ADDRESS: 1}], "options": options})), (-4, words.clone()));
    assert_eq!(wallet.refused("walletcreatefundedpsbt", json!([input, [{ADDRESS: 1}]])), (-4, words.clone()));
    assert_eq!(wallet.refused("sendall", json!({"recipients": [ADDRESS], "options": options})), (-8, words));
    // A payment of version 3 spends it, and must then be small.
    let unfunded = |outputs: &Value| {
        let raw = host.client().call("createrawtransaction", json!([[], outputs]));
        format!("03{}", &raw.as_str().unwrap()[2..])
    };
    let funded = wallet.call("fundrawtransaction", json!([unfunded(&json!([{ADDRESS: 1}])), {"fee_rate": 10}]));
    let decoded = wallet.call("decoderawtransaction", json!([funded["hex"]]));
    assert_eq!((&decoded["version"], &decoded["vin"][0]["txid"]), (&json!(3), &three));
    let signed = wallet.call("signrawtransactionwithwallet", json!([funded["hex"]]));
    assert_eq!(wallet.call("testmempoolaccept", json!([[signed["hex"]]]))[0]["allowed"], true);
    let data = json!([{"data": "00".repeat(1000)}]);
    let (code, message) = wallet.refused("fundrawtransaction", json!([unfunded(&data), {"fee_rate": 10}]));
    assert!(
        code == -4 && message.contains("weight")
            || message == "Insufficient funds"
            || message.starts_with("The total exceeds"),
        "{message}"
    );
    // Its replacement has version 3 too. The replacement pays clearly more, since nodes with clusters compare by weight.
    let bumped = wallet.call("bumpfee", json!([three, {"fee_rate": 10_000}]));
    assert_eq!(bumped["errors"], json!([]), "{bumped}");
    let raw = wallet.call("gettransaction", json!([bumped["txid"], true, true]));
    assert_eq!(raw["decoded"]["version"], 3);
    // Once it is confirmed, other versions spend it too. A payment of version 3 spends no unconfirmed coins of other versions.
    host.client().call("generatetoaddress", json!([1, ADDRESS]));
    wallet.call("sendtoaddress", json!([ADDRESS, 1]));
    let (code, message) = wallet.refused("fundrawtransaction", json!([unfunded(&json!([{ADDRESS: 1}]))]));
    assert_eq!((code, message.as_str()), (-4, "Insufficient funds"));
}

#[test]
fn watch_only_payments_psbts_and_locktimes_match_those_of_the_node() {
    let Some(host) = start(&["-fallbackfee=0.0001"]) else { return };
    let mut wallet = funded(&host, 3);
    // A PSBT with a wrong final witness is not complete.
    let made = wallet.call("walletcreatefundedpsbt", json!([[], [{ADDRESS: 1}]]));
    let signed = wallet.call("walletprocesspsbt", json!([made["psbt"]]));
    assert_eq!(signed["complete"], true);
    let witness = wallet.call("decodepsbt", json!([signed["psbt"]]))["inputs"][0]["final_scriptwitness"].clone();
    let signature = Vec::<u8>::from_hex(witness[0].as_str().unwrap()).unwrap();
    let bytes = BASE64_STANDARD.decode(signed["psbt"].as_str().unwrap()).unwrap();
    let place = bytes.windows(signature.len()).position(|part| part == signature).unwrap();
    let mut wrong = bytes.clone();
    wrong[place + 20] ^= 1;
    let wrong = BASE64_STANDARD.encode(wrong);
    for (method, params) in [
        ("descriptorprocesspsbt", json!([wrong, []])),
        ("walletprocesspsbt", json!([wrong])),
        ("finalizepsbt", json!([wrong])),
    ] {
        let answer = wallet.call(method, params);
        assert_eq!((&answer["complete"], answer.get("hex")), (&json!(false), None), "{method}: {answer}");
    }
    for (method, params) in [
        ("descriptorprocesspsbt", json!([signed["psbt"], []])),
        ("walletprocesspsbt", json!([signed["psbt"]])),
        ("finalizepsbt", json!([signed["psbt"]])),
    ] {
        assert_eq!(wallet.call(method, params)["complete"], true, "{method}");
    }
    // send and sendall set the locktime to the tip's height.
    let locktime = |wallet: &mut Client, method: &str, options: Value| {
        let to = if method == "send" { json!([{ADDRESS: 1}]) } else { json!([ADDRESS]) };
        let mut all = json!({"add_to_wallet": false, "fee_rate": 2});
        all.as_object_mut().unwrap().extend(options.as_object().unwrap().clone());
        let answer = wallet.call(method, json!([to, null, null, null, all]));
        wallet.call("decoderawtransaction", json!([answer["hex"]]))["locktime"].as_u64().unwrap()
    };
    for method in ["send", "sendall"] {
        let found = locktime(&mut wallet, method, json!({}));
        assert!((4..=103).contains(&found), "{method}: {found}");
        assert_eq!(locktime(&mut wallet, method, json!({"locktime": 7})), 7, "{method}");
    }
    check_watched_signatures(&host);
}

/// Watch-only wallets count signatures of 72 bytes as the node does.
fn check_watched_signatures(host: &Host) {
    let mut keys = host.new_wallet("keys");
    let listed = keys.call("listdescriptors", json!([]))["descriptors"].clone();
    let parts: Vec<&str> = listed.as_array().unwrap().iter().map(|one| one["desc"].as_str().unwrap()).collect();
    let pkh = parts.iter().find(|text| text.starts_with("pkh(")).unwrap();
    let key = pkh.trim_start_matches("pkh(").split(')').next().unwrap();
    let others = ["1", "2"].map(|number| key.replace("/0/*", &format!("/0/{number}")));
    let forms = [
        format!("pkh({key})"),
        format!("wpkh({key})"),
        format!("sh(wpkh({key}))"),
        format!("sh(multi(2,{key},{},{}))", others[0], others[1]),
        format!("wsh(multi(2,{key},{},{}))", others[0], others[1]),
    ];
    let mut node = host.node_client();
    let watch = json!({"disable_private_keys": true, "blank": true});
    let request =
        |described: &Value, timestamp: Value| json!([{"desc": described, "timestamp": timestamp, "range": [0, 5]}]);
    let made = forms.iter().enumerate().map(|(number, form)| {
        let name = format!("watch{number}");
        let mut ours = host.client().create_wallet(&name, watch.clone());
        let described = ours.call("getdescriptorinfo", json!([form]))["descriptor"].clone();
        ours.import(&request(&described, json!("now")));
        let address = node.call("deriveaddresses", json!([described, [3, 3]]))[0].clone();
        host.client().call("generatetoaddress", json!([1, address]));
        (name, ours, described, address)
    });
    let made: Vec<_> = made.collect();
    host.client().call("generatetoaddress", json!([100, ADDRESS]));
    for (name, mut ours, described, address) in made {
        let mut theirs = node.create_wallet(&name, watch.clone());
        theirs.import(&request(&described, json!(0)));
        let coin = ours.call("listunspent", json!([]))[0].clone();
        for inputs in [json!([]), json!([{"txid": coin["txid"], "vout": coin["vout"]}])] {
            let options = json!({"fee_rate": 100, "changeAddress": address, "includeWatching": true});
            let params = json!([inputs, [{ADDRESS: 1}], 0, options]);
            let [one, other] =
                [&mut ours, &mut theirs].map(|wallet| wallet.call("walletcreatefundedpsbt", params.clone()));
            assert_eq!(one["fee"], other["fee"], "{described} {inputs}");
        }
        if described.as_str().unwrap().starts_with("pkh(") {
            check_watched_bump(&mut keys, [&mut ours, &mut theirs], &coin, &address);
        }
    }
}

/// The same for psbtbumpfee: `keys` spends a coin of two watch-only wallets, with change for them.
fn check_watched_bump(keys: &mut Client, watching: [&mut Client; 2], coin: &Value, address: &Value) {
    let inputs = json!([{"txid": coin["txid"], "vout": coin["vout"]}]);
    let outputs = json!([{ADDRESS: 1}, {address.as_str().unwrap(): 48.9999}]);
    let raw = keys.call("createrawtransaction", json!([inputs, outputs]));
    let signed = keys.call("signrawtransactionwithwallet", json!([raw]));
    let paid = keys.call("sendrawtransaction", json!([signed["hex"]]));
    keys.call("syncwithvalidationinterfacequeue", json!([]));
    let params = json!([paid, {"fee_rate": 100, "original_change_index": 1}]);
    let [ours, theirs] = watching.map(|wallet| wallet.call("psbtbumpfee", params.clone())["fee"].clone());
    assert_eq!(ours, theirs);
}

#[test]
fn host_learns_of_payments_without_reading_the_mempool_and_reports_refused_replacements() {
    let Some((host, relay)) = start_behind_relay(&["-fallbackfee=0.0001"]) else { return };
    let mut wallet = funded(&host, 3);
    // The wallet knows its payments without a read of the whole mempool, unless they replace others.
    let known = |wallet: &mut Client, txid: &Value| wallet.call("gettransaction", json!([txid]))["txid"] == *txid;
    let read = || relay.count("getrawmempool");
    let paid = wallet.call("sendtoaddress", json!([ADDRESS, 1]));
    // A node without notifications is polled, and the host reads the mempool if its figures changed. From here on they match the digest.
    let before = read();
    let chained = wallet.call("sendtoaddress", json!([ADDRESS, 120]));
    assert!(known(&mut wallet, &paid) && known(&mut wallet, &chained));
    let raw = wallet.call("createrawtransaction", json!([[], [{ADDRESS: 1}]]));
    let funded = wallet.call("fundrawtransaction", json!([raw]));
    let signed = wallet.call("signrawtransactionwithwallet", json!([funded["hex"]]));
    let passed = host.client().call("sendrawtransaction", json!([signed["hex"]]));
    assert!(known(&mut wallet, &passed));
    assert_eq!(read(), before);
    let bumped = wallet.call("bumpfee", json!([passed]));
    assert!(known(&mut wallet, &bumped["txid"]));
    assert!(read() > before);
    assert_eq!(wallet.call("gettransaction", json!([passed]))["confirmations"], 0);
    let mempool = host.client().call("getrawmempool", json!([]));
    assert!(!mempool.as_array().unwrap().contains(&passed));
    // The wallet does not spend the change of an unconfirmed replacement.
    host.client().call("generatetoaddress", json!([1, ADDRESS]));
    // bumpfee reports why the node refused the replacement.
    let paid = wallet.call("sendtoaddress", json!([ADDRESS, 1]));
    let held = relay.hold("sendrawtransaction", Point::Request);
    let bumped = std::thread::scope(|scope| {
        let bumped = scope.spawn(|| wallet.call("bumpfee", json!([paid])));
        held.recv().unwrap().answer(|host| {
            let body =
                r#"{"result":null,"error":{"code":-26,"message":"insufficient fee, rejecting replacement"},"id":0}"#;
            let head = "HTTP/1.1 500 Internal Server Error\r\nContent-Type: application/json\r\nContent-Length:";
            std::io::Write::write_all(host, format!("{head} {}\r\n\r\n{body}", body.len()).as_bytes())
        });
        bumped.join().unwrap()
    });
    assert_eq!(bumped["errors"], json!(["insufficient fee, rejecting replacement"]), "{bumped}");
}

#[test]
fn listings_ask_the_node_once_for_all_pending_payments() {
    let Some((host, relay)) = start_behind_relay(&["-fallbackfee=0.0001"]) else { return };
    let mut wallet = funded(&host, 10);
    let mine = wallet.call("getnewaddress", json!([]));
    let is_untold = bitcoind::release(&mut host.client()) >= 32;
    for coin in wallet.call("listunspent", json!([])).as_array().unwrap() {
        // These payments do not signal replaceability.
        let input = json!([{"txid": coin["txid"], "vout": coin["vout"], "sequence": 0xffff_ffff_u32}]);
        let raw = wallet.call("createrawtransaction", json!([input, [{mine.as_str().unwrap(): 49.99}], 0, false]));
        let signed = wallet.call("signrawtransactionwithwallet", json!([raw]));
        wallet.call("sendrawtransaction", json!([signed["hex"]]));
    }
    for (method, params) in
        [("listtransactions", json!(["*", 30])), ("listsinceblock", json!([])), ("listunspent", json!([0]))]
    {
        let before = relay.count("getmempoolentry");
        let listed = wallet.call(method, params);
        // Since Bitcoin Core 32 mempool entries do not show whether a payment is replaceable.
        let asks = usize::from(method == "listunspent" || !is_untold);
        assert_eq!(relay.count("getmempoolentry"), before + asks, "{method}");
        let entries = listed.get("transactions").unwrap_or(&listed).as_array().unwrap();
        let waiting: Vec<_> = entries.iter().filter(|entry| entry["confirmations"] == 0).collect();
        assert!(waiting.len() >= 10, "{method}");
        assert!(
            waiting.iter().all(|entry| method == "listunspent" || is_untold || entry["bip125-replaceable"] == "no"),
            "{method}"
        );
    }
}
