//! The host's wallets follow the node's chain and mempool.

use bitcoin::{Amount, Denomination};
use outrigger_tests::Client;
use serde_json::{Value, json};

use super::{ADDRESS, start};

const FEE: Amount = Amount::from_sat(1_000);

/// The number of rounds that compare the wallet's answers with passed calls.
fn rounds() -> usize {
    std::env::var("OUTRIGGER_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(60)
}

/// The wallet's last block. `known` is an earlier block, which keeps the answer short.
fn last_block(wallet: &mut Client, known: &Value) -> Value {
    wallet.call("listsinceblock", json!([known]))["lastblock"].clone()
}

/// A signed transaction that spends a coin of the wallet and pays an address.
fn spent(wallet: &mut Client, coin: &Value, to: &Value, amount: Amount) -> Value {
    let outputs = json!([{to.as_str().unwrap(): amount.to_string_in(Denomination::Bitcoin)}]);
    let raw = wallet.call("createrawtransaction", json!([[coin], outputs]));
    wallet.call("signrawtransactionwithwallet", json!([raw]))["hex"].clone()
}

#[test]
fn wallet_answers_never_lag_behind_passed_calls() {
    let Some(host) = start(&[]) else { return };
    let mut node = host.node_client();
    let mut wallet = host.new_wallet("w");
    let mut client = host.client();
    let mine = wallet.fund(1);
    let mut coin = json!({"txid": wallet.call("listunspent", json!([]))[0]["txid"], "vout": 0});
    let mut left = Amount::from_int_btc(50);
    let mut seen = json!("");
    for round in 0..rounds() {
        // Pass a transaction that spends the previous one's coin.
        left -= FEE;
        let signed = spent(&mut wallet, &coin, &mine, left);
        let sent = client.call("sendrawtransaction", json!([signed]));
        let newest = wallet.call("listtransactions", json!(["*", 1]))[0].clone();
        assert_eq!((&newest["txid"], &newest["confirmations"]), (&sent, &json!(0)), "round {round}");
        coin["txid"] = sent.clone();
        // Mine a block through the host, or on the node and show it in a passed answer.
        let before = std::mem::take(&mut seen);
        seen = if round % 2 == 0 {
            client.call("generatetoaddress", json!([1, ADDRESS]))[0].clone()
        } else {
            node.call("generatetoaddress", json!([1, ADDRESS]));
            client.call("getbestblockhash", json!([]))
        };
        assert_eq!(last_block(&mut wallet, &before), seen, "round {round}");
        assert_eq!(wallet.call("gettransaction", json!([sent]))["confirmations"], json!(1), "round {round}");
    }
}

#[test]
fn syncwithvalidationinterfacequeue_waits_for_the_wallets_of_the_host() {
    let Some(host) = start(&[]) else { return };
    let (mut node, mut client, mut wallet) = (host.node_client(), host.client(), host.new_wallet("w"));
    let mine = wallet.fund(1);
    let mut coin = json!({"txid": wallet.call("listunspent", json!([]))[0]["txid"], "vout": 0});
    let mut left = Amount::from_int_btc(50);
    for round in 0..10 {
        left -= FEE;
        let signed = spent(&mut wallet, &coin, &mine, left);
        wallet.call("lockunspent", json!([false, [coin]]));
        // Mine on the node, not through the host.
        let sent = node.call("sendrawtransaction", json!([signed]));
        client.call("syncwithvalidationinterfacequeue", json!([]));
        // The call itself does not wait.
        assert_eq!(wallet.call("listlockunspent", json!([])), json!([]), "round {round}");
        coin["txid"] = sent;
    }
}

#[test]
fn block_widens_a_range_twice_in_reverse_order_for_a_wallet_at_the_tip_and_far_behind() {
    let Some(host) = start(&["-blockfilterindex=1", "-fallbackfee=0.0001"]) else { return };
    let (mut node, mut client) = (host.node_client(), host.client());
    let mut payer = node.create_wallet("payer", json!({}));
    payer.mine(103);
    let mut source = host.new_wallet("source");
    let descriptors = source.call("listdescriptors", json!([]))["descriptors"].clone();
    let is_receiving = |one: &&Value| one["desc"].as_str().unwrap().starts_with("wpkh") && one["internal"] == false;
    let text = descriptors.as_array().unwrap().iter().find(is_receiving).unwrap()["desc"].clone();
    for name in ["near", "far"] {
        client.call("createwallet", json!([name, true, true]));
        let range = json!([{"desc": text, "timestamp": "now", "active": true, "range": [0, 5]}]);
        client.wallet(name).import(&range);
    }
    client.call("unloadwallet", json!(["far"]));
    let keypool = 1000;
    // Each address becomes known only after a later payment in the block has widened the range.
    let indexes = [2 * keypool + 4, keypool + 5, 5];
    let addresses = node.call("deriveaddresses", json!([text, [0, indexes[0]]]));
    let coins = payer.call("listunspent", json!([]));
    let payments: Vec<Value> = indexes
        .iter()
        .zip(coins.as_array().unwrap())
        .map(|(&index, coin)| {
            let input = json!([{"txid": coin["txid"], "vout": coin["vout"]}]);
            let to = addresses[index as usize].as_str().unwrap();
            let raw = payer.call("createrawtransaction", json!([input, [{to: 49.999}]]));
            payer.call("signrawtransactionwithwallet", json!([raw]))["hex"].clone()
        })
        .collect();
    node.call("generateblock", json!([ADDRESS, payments]));
    node.call("generatetoaddress", json!([150, ADDRESS]));
    let seen = client.call("getbestblockhash", json!([]));
    client.call("loadwallet", json!(["far"]));
    for name in ["near", "far"] {
        let mut wallet = client.wallet(name);
        assert_eq!(last_block(&mut wallet, &json!("")), seen);
        assert_eq!(wallet.call("getwalletinfo", json!([]))["txcount"], 3, "{name}");
    }
}
