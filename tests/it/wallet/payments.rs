//! Payments, and their coins and balances.

use outrigger_tests::{Client, ELSEWHERE, Host, HostOptions, NOBODY, all_groups};
use serde_json::{Value, json};

use super::fund;

#[test]
fn payments_and_balances_are_exact() {
    let host = Host::start();
    let mut alice = host.new_wallet("alice");
    let mining = alice.mine(101);
    check_sendtoaddress(&host, &mut alice, &mining);
    check_sendmany(&host, &mut alice, &mining);
    check_reused_addresses(&host, &mut alice, &mining);
}

fn check_sendtoaddress(host: &Host, alice: &mut Client, mining: &Value) {
    let mut bob = host.new_wallet("bob");
    let balances = alice.call("getbalances", json!([]));
    assert_eq!(balances["mine"]["trusted"].to_string(), "50.00000000");
    assert_eq!(balances["mine"]["immature"].to_string(), "5000.00000000");
    for kind in ["legacy", "p2sh-segwit", "bech32", "bech32m"] {
        let address = bob.call("getnewaddress", json!(["", kind]));
        let txid = alice.call("sendtoaddress", json!([address, "0.1"]));
        let entry = alice.call("getmempoolentry", json!([txid]));
        let fee = alice.call("gettransaction", json!([txid]))["fee"].to_string();
        assert_eq!(fee, format!("-{}", entry["fees"]["base"]), "{kind}");
    }
    assert_eq!(bob.call("getbalances", json!([]))["mine"]["untrusted_pending"].to_string(), "0.40000000");
    alice.call("generatetoaddress", json!([1, mining]));
    assert_eq!(bob.call("getbalances", json!([]))["mine"]["trusted"].to_string(), "0.40000000");
    assert_eq!(bob.call("listunspent", json!([])).as_array().unwrap().len(), 4);
    let back = alice.call("getnewaddress", json!([]));
    let all = bob.call("sendtoaddress", json!({"address": back, "amount": 0.4, "subtractfeefromamount": true}));
    assert_eq!(bob.call("getbalances", json!([]))["mine"]["trusted"].to_string(), "0.00000000");
    assert_eq!(alice.call("gettransaction", json!([all]))["confirmations"], json!(0));
    assert_eq!(bob.refused("sendtoaddress", json!([back, 1])).0, -6);
    assert_eq!(bob.refused("sendtoaddress", json!(["nonsense", 1])).0, -5);
    assert_eq!(bob.refused("sendtoaddress", json!([back, -1])), (-3, "Amount out of range".into()));
}

/// sendmany pays several addresses, and subtracts the fee from the named ones.
fn check_sendmany(host: &Host, alice: &mut Client, mining: &Value) {
    let mut carol = host.new_wallet("carol");
    let [first, second, third] =
        ["legacy", "bech32", "bech32m"].map(|kind| carol.call("getnewaddress", json!(["", kind])));
    let [first, second, third] = [&first, &second, &third].map(|address| address.as_str().unwrap());
    let amounts = json!({first: 1, second: "0.5", third: 0.25, "data": "0102"});
    let txid = alice.call("sendmany", json!(["", amounts, 6, "wages", [first, 2]]));
    let entry = alice.call("getmempoolentry", json!([txid]));
    let sent = alice.call("gettransaction", json!([txid]));
    assert_eq!(
        (sent["comment"].clone(), sent["fee"].to_string()),
        (json!("wages"), format!("-{}", entry["fees"]["base"]))
    );
    alice.call("generatetoaddress", json!([1, mining]));
    let fee = sent["fee"].to_string().replace("-0.", "").parse::<u64>().unwrap();
    let received = carol.call("getbalances", json!([]))["mine"]["trusted"].to_string();
    assert_eq!(received.replace('.', "").parse::<u64>().unwrap(), 175_000_000 - fee);
    // JSON readers disagree about an address that is named twice.
    let twice = format!(r#"{{"method":"sendmany","params":["",{{"{first}":1,"{first}":2}}],"id":1}}"#);
    let refusal = format!("Invalid parameter, duplicated address: {first}");
    assert!(alice.post(&twice).body.contains(&refusal));
}

/// getbalances and listunspent separate reused addresses, as bitcoind 29 did after the same steps.
fn check_reused_addresses(host: &Host, alice: &mut Client, mining: &Value) {
    let mut careful = host.client().create_wallet("careful", json!({"avoid_reuse": true}));
    let [used, fresh] = [(); 2].map(|()| careful.call("getnewaddress", json!([])));
    alice.call("sendtoaddress", json!([used, 10]));
    alice.call("sendtoaddress", json!([fresh, 1]));
    alice.call("generatetoaddress", json!([1, mining]));
    // A descriptor's text is the same in every answer.
    let coin = careful.call("listunspent", json!([1, 9, [used]]))[0].clone();
    let received = careful.call("listtransactions", json!(["*", 10]));
    let of_coin = received.as_array().unwrap().iter().find(|entry| entry["txid"] == coin["txid"]).unwrap();
    assert_eq!(coin["parent_descs"], of_coin["parent_descs"]);
    assert_eq!((coin["parent_descs"].as_array().unwrap().len(), &coin["reused"]), (1, &json!(false)));

    let inputs = json!([{"txid": coin["txid"], "vout": coin["vout"]}]);
    let raw = careful.call("createrawtransaction", json!([inputs, [{ELSEWHERE: 9.999}]]));
    let signed = careful.call("signrawtransactionwithwallet", json!([raw]));
    careful.call("sendrawtransaction", json!([signed["hex"]]));
    alice.call("sendtoaddress", json!([used, 5]));
    alice.call("generatetoaddress", json!([1, mining]));
    let mine = careful.call("getbalances", json!([]))["mine"].to_string();
    let told = r#"{"trusted":1.00000000,"untrusted_pending":0.00000000,"immature":0.00000000,"used":5.00000000}"#;
    assert_eq!(mine, told);
    assert_eq!(careful.call("getbalance", json!(["*", 0, false, false])).to_string(), "6.00000000");
    assert_eq!(careful.call("getwalletinfo", json!([]))["balance"].to_string(), "1.00000000");
    assert_eq!(careful.call("listunspent", json!([1, 9, [used]]))[0]["reused"], json!(true));
    assert_eq!(careful.refused("sendtoaddress", json!([ELSEWHERE, 3])), (-6, "Insufficient funds".into()));
    careful.call("sendmany", json!(["", {ELSEWHERE: 1.5}]));
    careful.call("sendtoaddress", json!([ELSEWHERE, 3, "", "", false, true, null, "unset", false]));
}

#[test]
fn sendtoaddress_sets_a_locktime_and_listlockunspent_knows_spent_coins_at_once() {
    let host = Host::start();
    let mut client = host.new_wallet("w");
    let address = client.mine(110);
    let tip = client.call("getbestblockhash", json!([]));
    let tip = client.call("getblockheader", json!([tip]));
    let time = tip["time"].as_u64().unwrap();
    let locktime = |client: &mut Client, age: u64| {
        client.call("setmocktime", json!([time + age]));
        let txid = client.call("sendtoaddress", json!([address, 1]));
        client.call("gettransaction", json!({"txid": txid, "verbose": true}))["decoded"]["locktime"].as_u64().unwrap()
    };
    // The locktime is the tip's height unless the tip is old. One in ten is up to 99 blocks lower.
    assert!((11..=110).contains(&locktime(&mut client, 28_800)));
    assert_eq!(locktime(&mut client, 28_801), 0);

    let coins = client.call("listunspent", json!([]));
    let coins = coins.as_array().unwrap();
    // Several coins, since the wallet may have followed by chance.
    assert!(coins.len() >= 8, "{coins:?}");
    for coin in coins {
        let list = json!([{"txid": coin["txid"], "vout": coin["vout"]}]);
        client.call("lockunspent", json!([false, list]));
        let raw = client.call("createrawtransaction", json!([list, [{address.as_str().unwrap(): 49.99}]]));
        let signed = client.call("signrawtransactionwithwallet", json!([raw]));
        client.call("sendrawtransaction", json!([signed["hex"]]));
        assert_eq!(client.call("listlockunspent", json!([])), json!([]));
    }
}

#[test]
fn sendtoaddress_needs_a_feerate_where_no_fallback_is_configured() {
    let text = all_groups().replace("fallbackfee = 0.00001", "fallbackfee = 0");
    let host = Host::start_with(HostOptions::configured(&text));
    let mut client = host.new_wallet("w");
    fund(&mut client, "bech32");
    let message = "Fee estimation failed. Fallbackfee is disabled. Wait a few blocks or enable -fallbackfee.";
    assert_eq!(client.refused("sendtoaddress", json!([NOBODY, 1])), (-6, message.into()));
    assert_eq!(client.refused("sendmany", json!(["", {NOBODY: 1}])), (-6, message.into()));
    client.call("sendtoaddress", json!({"address": NOBODY, "amount": 1, "fee_rate": 2}));
}
