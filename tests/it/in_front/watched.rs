//! Watch-only wallets of host and node with the same descriptors and coins: times, inputs of unknown weight, and inputs that are not
//! the wallets'.

use std::collections::HashSet;

use bitcoin::hex::FromHex;
use outrigger_tests::{Client, Host, XPRV, bitcoind};
use serde_json::{Value, json};

use super::twins::Wallets;
use super::{ADDRESS, answer, start};

/// An output that anyone can spend (BIP 433). Its descriptor is just its address.
const ANCHOR: &str = "bcrt1pfeesnyr2tx";
const DAY: u64 = 86_400;
/// The time of the first block, in Unix seconds.
const BEGIN: u64 = 1_700_000_000;

/// The code and message of a refusal, or `made` alone for a payment.
fn refusal(answer: &Value) -> Value {
    if answer.is_array() { answer.clone() } else { json!("made") }
}

/// A host and its node, and a watch-only wallet of each; a further wallet of the node pays.
struct Watched {
    host: Host,
    node: Client,
    payer: Client,
    wallets: [Client; 2],
}

impl Watched {
    fn start() -> Option<Self> {
        let host = start(&["-keypool=20", "-fallbackfee=0.0001"])?;
        let mut node = host.node_client();
        node.call("setmocktime", json!([BEGIN]));
        let mut payer = node.create_wallet("payer", json!({}));
        payer.mine(103);
        let clients = [host.client(), host.node_client()];
        let watch = json!({"disable_private_keys": true, "blank": true});
        let wallets = clients.map(|mut client| client.create_wallet("watch", watch.clone()));
        Some(Self { host, node, payer, wallets })
    }

    fn descriptor(&mut self, text: &str) -> String {
        self.node.call("getdescriptorinfo", json!([text]))["descriptor"].as_str().unwrap().to_owned()
    }

    /// The node pays and mines the payment with this block time.
    fn pay(&mut self, address: &str, amount: u32, time: u64) {
        self.node.call("setmocktime", json!([time]));
        self.payer.call("sendtoaddress", json!([address, amount]));
        self.mine();
    }

    fn mine(&mut self) {
        self.node.call("generatetoaddress", json!([1, ADDRESS]));
        self.node.call("syncwithvalidationinterfacequeue", json!([]));
        // The host passes this call on, so that no wallet answers from an older block.
        self.host.client().call("getblockcount", json!([]));
    }

    fn import(&mut self, descriptor: &str, timestamp: &Value) {
        for wallet in &mut self.wallets {
            wallet.import(&json!([{"desc": descriptor, "timestamp": timestamp}]));
        }
    }

    /// Checks that both wallets answer the same by the part that `shown` takes of a result.
    #[track_caller]
    fn check(&mut self, method: &str, params: &Value, shown: impl Fn(&Value) -> Value) -> Value {
        let [ours, theirs] = self.wallets.each_mut().map(|wallet| shown(&answer(wallet, method, params)));
        assert_eq!(ours, theirs, "{method} {params}");
        ours
    }
}

#[test]
fn watch_only_wallets_show_the_birth_time_and_payment_times_of_the_node() {
    let Some(mut watched) = Watched::start() else { return };
    let birth = |info: &Value| info.get("birthtime").cloned().unwrap_or_default();
    let times = |listed: &Value| {
        let entries = listed.as_array().unwrap().iter();
        // The host has no mock time here, so `timereceived` may differ.
        entries.map(|entry| json!([entry["amount"], entry["time"]])).collect()
    };
    assert_eq!(watched.check("getwalletinfo", &json!([]), birth), Value::Null);
    let descriptors = [0, 1].map(|index| watched.descriptor(&format!("wpkh({XPRV}/1/{index})")));
    for (descriptor, days) in descriptors.iter().zip([10, 20]) {
        let address = watched.node.call("deriveaddresses", json!([descriptor]))[0].as_str().unwrap().to_owned();
        watched.pay(&address, 5 + days, BEGIN + u64::from(days) * DAY);
    }
    watched.node.call("setmocktime", json!([BEGIN + 30 * DAY]));
    (0..12).for_each(|_| watched.mine());
    descriptors.iter().for_each(|descriptor| watched.import(descriptor, &json!("now")));
    assert_ne!(watched.check("getwalletinfo", &json!([]), birth), Value::Null);
    assert_eq!(watched.check("listtransactions", &json!([]), times), json!([]));
    // The later payment is found first.
    for first in [105, 1] {
        watched.wallets.iter_mut().for_each(|wallet| drop(wallet.call("rescanblockchain", json!([first]))));
        watched.check("listtransactions", &json!([]), times);
        let days = if first == 1 { 10 } else { 20 };
        assert_eq!(watched.check("getwalletinfo", &json!([]), birth), json!(BEGIN + days * DAY));
    }
}

#[test]
fn watch_only_wallets_refuse_payments_and_psbts_in_the_nodes_words() {
    let Some(mut watched) = Watched::start() else { return };
    // Weights given for inputs of others.
    let block = watched.node.call("getblockhash", json!([1]));
    let known = watched.node.call("getblock", json!([block]))["tx"][0].clone();
    for txid in [json!("11".repeat(32)), known] {
        let input = json!({"txid": txid, "vout": 0});
        let weights = json!([{"txid": txid, "vout": 0, "weight": 500}]);
        let options = json!({"changeAddress": ADDRESS, "input_weights": weights});
        for inputs in [json!([]), json!([input])] {
            let raw = watched.node.call("createrawtransaction", json!([inputs, [{ADDRESS: 1}]]));
            let told = watched.check("fundrawtransaction", &json!([raw, options]), refusal);
            assert!(inputs != json!([]) || told[1].as_str().unwrap().starts_with("Not found pre-selected input"));
        }
    }
    check_unweighed_coins(&mut watched);
    // walletprocesspsbt of a wallet without descriptors does not compare sighash types.
    let clients = [watched.host.client(), watched.host.node_client()];
    watched.wallets = clients.map(|mut client| client.create_wallet("blank", json!({"blank": true})));
    // One SIGHASH_ALL input that spends an unknown output, and no outputs.
    let transaction = format!("0200000001{}00000000{}00{}", "11".repeat(32), "00fdffffff", "00000000");
    let hex = format!("70736274ff0100{:02x}{transaction}000103040100000000", transaction.len() / 2);
    let psbt = base64::Engine::encode(&base64::prelude::BASE64_STANDARD, Vec::<u8>::from_hex(&hex).unwrap());
    for params in [json!([psbt]), json!([psbt, true, "NONE"]), json!([psbt, false])] {
        let processed = watched.check("walletprocesspsbt", &params, Clone::clone);
        assert_eq!(processed["complete"], json!(false), "{processed}");
    }
    let descriptor = watched.node.with_checksum(&format!("wpkh({XPRV}/1/0)"));
    watched.import(&descriptor, &json!("now"));
    let message = "Specified sighash value does not match value stored in PSBT";
    let told = watched.check("walletprocesspsbt", &json!([psbt]), Clone::clone);
    // Since Bitcoin Core 30 the wallet compares only inputs that it knows.
    if bitcoind::release(&mut watched.node) < 30 {
        assert_eq!(told, json!([-22, message]));
    }
    check_named_weights(&mut Wallets::of(watched.host));
}

/// Coins whose inputs have no known weight.
fn check_unweighed_coins(watched: &mut Watched) {
    let solvable = watched.descriptor(&format!("wpkh({XPRV}/1/0)"));
    let anchor = watched.descriptor(&format!("addr({ANCHOR})"));
    let address = watched.node.call("deriveaddresses", json!([solvable]))[0].as_str().unwrap().to_owned();
    [&solvable, &anchor].into_iter().for_each(|descriptor| watched.import(descriptor, &json!("now")));
    watched.pay(ANCHOR, 2, BEGIN + DAY);
    watched.pay(&address, 3, BEGIN + DAY);
    let missing = json!([-4, "Missing solving data for estimating transaction size"]);
    let change = |from: Value| json!({"changeAddress": ADDRESS, "subtractFeeFromOutputs": from, "fee_rate": 10});
    // Since Bitcoin Core 31 the refusal names the fee.
    let tells_fee = bitcoind::release(&mut watched.node) >= 31;
    for (amount, from, expected) in [
        (json!(1), json!([]), json!("made")),
        (json!(3), json!([]), missing.clone()),
        (json!(4.9999), json!([]), missing.clone()),
        (json!(5), json!([]), json!([-4, "Insufficient funds"])),
        (json!(5), json!([0]), missing.clone()),
        (json!(6), json!([0]), json!([-4, "Insufficient funds"])),
    ] {
        let outputs = json!([{ADDRESS: amount}]);
        let funded = json!([[], outputs, 0, change(from.clone())]);
        let raw = watched.node.call("createrawtransaction", json!([[], outputs]));
        let told = watched.check("walletcreatefundedpsbt", &funded, refusal);
        let of_raw = watched.check("fundrawtransaction", &json!([raw, change(from.clone())]), refusal);
        if !tells_fee || amount != json!(5) || from != json!([]) {
            assert_eq!((&told, &of_raw), (&expected, &expected), "{amount} {from}");
        }
        let options = json!({"change_address": ADDRESS});
        watched.check("send", &json!([outputs, null, "unset", 1, options]), refusal);
    }
    let coins = watched.wallets[0].call("listunspent", json!([]));
    let coin = |solvable: bool| {
        let found = coins.as_array().unwrap().iter().find(|coin| coin["solvable"] == solvable).unwrap();
        json!({"txid": found["txid"], "vout": found["vout"]})
    };
    let size = "Unable to determine the size of the transaction, the wallet contains unsolvable descriptors";
    for (options, expected) in [
        (json!({}), json!([-4, size])),
        (json!({"send_max": true}), json!("made")),
        (json!({"inputs": [coin(true)]}), json!("made")),
        (json!({"inputs": [coin(false)]}), json!([-4, size])),
    ] {
        let params = json!([[ADDRESS], null, "unset", 1, options]);
        assert_eq!(watched.check("sendall", &params, refusal), expected, "{options}");
    }
}

/// The wallets look for an input that is named only with its weight among their transactions.
fn check_named_weights(wallets: &mut Wallets) {
    wallets.fund(2);
    // A payment to another wallet, with change.
    let txid = wallets.ours.call("sendtoaddress", json!([ADDRESS, 5]));
    wallets.mine(1, ADDRESS);
    let is_later = bitcoind::release(&mut wallets.theirs) > 29;
    let mut refused = HashSet::new();
    for (vout, amount, named) in (0..3)
        .flat_map(|vout| [1, 60].map(|amount| (vout, amount)))
        .flat_map(|(vout, amount)| [false, true].map(|named| (vout, amount, named)))
    {
        let input = json!([{"txid": txid, "vout": vout, "weight": 300}]);
        let inputs = if named { &input } else { &json!([]) };
        let raw = wallets.check("createrawtransaction", json!([inputs, [{ADDRESS: amount}]])).unwrap();
        for options in
            [json!({"input_weights": input}), json!({"input_weights": input, "add_inputs": false}), json!({})]
        {
            let [ours, theirs] =
                wallets.ask("fundrawtransaction", &json!([raw, options])).map(|answer| answer.map(drop));
            assert_eq!(ours, theirs, "{vout} {amount} {named} {options}");
            refused.extend(ours.err().map(|(_, message)| message.split(" COutPoint").next().unwrap().to_owned()));
        }
    }
    let of_others = ["Invalid pre-selected input", "Not solvable pre-selected input"];
    let of_others = if is_later { &["Not found pre-selected input"][..] } else { &of_others };
    for message in of_others.iter().chain(&["Unable to find UTXO for external input"]) {
        assert!(refused.contains(*message), "{refused:?}");
    }
}
