//! gettransaction and listsinceblock through payments and reorganisations.

use bitcoin::ScriptBuf;
use bitcoin::consensus::encode::serialize_hex;
use outrigger_tests::{Host, miner};
use serde_json::{Value, json};

#[test]
fn a_payment_is_told_with_amount_fee_and_both_sides() {
    let host = Host::start();
    let mut alice = host.new_wallet("alice");
    let mut bob = host.new_wallet("bob");
    let mining = alice.call("getnewaddress", json!([]));
    alice.call("generatetoaddress", json!([101, mining]));
    let shop = bob.call("getnewaddress", json!(["shop"]));
    let txid = alice.call("sendtoaddress", json!([shop, 1.25, "for bread", "bakery"]));
    let sent = alice.call("gettransaction", json!([txid]));
    assert_eq!(sent["amount"].to_string(), "-1.25000000");
    let fee = sent["fee"].to_string();
    assert!(fee.starts_with("-0.0000"), "{fee}");
    assert_eq!(
        (&sent["comment"], &sent["to"], &sent["trusted"]),
        (&json!("for bread"), &json!("bakery"), &json!(true))
    );
    assert_eq!(sent["details"][0]["fee"].to_string(), fee);
    let received = bob.call("gettransaction", json!([txid, null, true]));
    assert_eq!(received["amount"].to_string(), "1.25000000");
    assert_eq!((received.get("fee"), &received["confirmations"]), (None, &json!(0)));
    assert_eq!((&received["details"][0]["label"], &received["trusted"]), (&json!("shop"), &json!(false)));
    assert_eq!(received["decoded"], bob.call("decoderawtransaction", json!([received["hex"]])));
    assert_eq!(bob.call("gettransaction", json!([txid])).get("decoded"), None);
    let block = alice.call("generatetoaddress", json!([1, mining]))[0].clone();
    let received = bob.call("gettransaction", json!([txid]));
    assert_eq!((&received["confirmations"], &received["blockhash"]), (&json!(1), &block));
    assert_eq!((&received["blockheight"], &received["blockindex"]), (&json!(102), &json!(1)));
    assert_eq!(received["lastprocessedblock"], json!({"hash": block, "height": 102}));
    let unknown = (-5, "Invalid or non-wallet transaction id".to_owned());
    assert_eq!(bob.refused("gettransaction", json!(["ab".repeat(32)])), unknown);
}

#[test]
fn coinbases_mature_at_101_confirmations() {
    let host = Host::start();
    let mut wallet = host.new_wallet("w");
    let address = wallet.call("getnewaddress", json!([]));
    wallet.call("generatetoaddress", json!([1, address]));
    let txid = wallet.call("listsinceblock", json!([]))["transactions"][0]["txid"].clone();
    let elsewhere = "bcrt1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqdku202";
    wallet.call("generatetoaddress", json!([99, elsewhere]));
    let immature = wallet.call("gettransaction", json!([txid]));
    assert_eq!((&immature["confirmations"], &immature["details"][0]["category"]), (&json!(100), &json!("immature")));
    assert_eq!(immature["amount"].to_string(), "0.00000000");
    wallet.call("generatetoaddress", json!([1, elsewhere]));
    let mature = wallet.call("gettransaction", json!([txid]));
    assert_eq!((&mature["generated"], &mature["details"][0]["category"]), (&json!(true), &json!("generate")));
    assert_eq!(mature["amount"].to_string(), "50.00000000");
}

#[test]
fn a_reorganisation_is_told_in_removed() {
    let host = Host::start();
    let mut wallet = host.new_wallet("w");
    let address = wallet.call("getnewaddress", json!([]));
    let elsewhere = "bcrt1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqdku202";
    wallet.call("generatetoaddress", json!([101, address]));
    let before = wallet.call("getbestblockhash", json!([]));
    let txid = wallet.call("sendtoaddress", json!([address, 2]));
    let stale = wallet.call("generatetoaddress", json!([1, address]))[0].clone();
    let since = wallet.call("listsinceblock", json!([before]));
    assert_eq!(since["transactions"].as_array().unwrap().len(), 3, "{since}");
    assert_eq!((&since["removed"], &since["lastblock"]), (&json!([]), &stale));

    wallet.call("invalidateblock", json!([stale]));
    assert_eq!(wallet.call("gettransaction", json!([txid]))["confirmations"], json!(0));
    assert_eq!(wallet.call("getrawmempool", json!([])), json!([txid]));
    wallet.call("generatetoaddress", json!([2, elsewhere]));

    let since = wallet.call("listsinceblock", json!([stale]));
    let of = |list: &Value| -> Vec<(Value, Value)> {
        let list = list.as_array().unwrap().iter();
        list.map(|entry| (entry["category"].clone(), entry["confirmations"].clone())).collect()
    };
    // The coinbase of the stale block is an orphan now, the payment was mined again.
    let (send, receive, orphan) = (json!("send"), json!("receive"), json!("orphan"));
    assert_eq!(
        of(&since["transactions"]),
        [(send.clone(), json!(2)), (receive.clone(), json!(2)), (orphan.clone(), json!(0))]
    );
    assert_eq!(of(&since["removed"]), [(orphan, json!(0)), (send, json!(2)), (receive, json!(2))]);
    assert_eq!(wallet.call("listsinceblock", json!([stale, 1, null, false])).get("removed"), None);
    let tip = wallet.call("getbestblockhash", json!([]));
    assert_eq!(since["lastblock"], tip);
    assert_eq!(wallet.call("listsinceblock", json!([tip, 3]))["lastblock"], before);
}

#[test]
fn a_block_of_which_only_the_header_is_known_is_a_place_to_list_from_but_not_to_read() {
    let host = Host::start();
    let mut wallet = host.new_wallet("w");
    let address = wallet.call("getnewaddress", json!([]));
    let template = wallet.call("getblocktemplate", json!([{"rules": ["segwit"]}]));
    let block = miner::build(&template, ScriptBuf::from_bytes(vec![0x51]));
    wallet.call("submitheader", json!([serialize_hex(&block.header)]));
    wallet.call("generatetoaddress", json!([1, address]));
    let hash = block.block_hash().to_string();
    let unreadable = (-32603, "Can't read block from disk".to_owned());
    assert_eq!(wallet.refused("listsinceblock", json!([hash])), unreadable);
    let since = wallet.call("listsinceblock", json!([hash, 1, null, false]));
    assert_eq!(since["transactions"][0]["category"], json!("immature"));
}
