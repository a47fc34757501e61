//! Differences between releases: the host's wallets answer as those of the node behind it, whichever its release is.

use outrigger_tests::{Client, XPRV, XPUB};
use serde_json::{Value, json};

use super::twins::Wallets;
use super::{ADDRESS, start};

const ROOT: [&str; 2] = [XPRV, XPUB];
/// Descriptors with `#` for the mark of hardened steps, and whether a wallet without private keys can watch them.
const FORMS: [(&str, bool); 13] = [
    ("wpkh([d34db33f/84#]KEY/0/*)", true),
    ("pkh([d34db33f/84#]KEY/0/*)", true),
    ("multi(1,[d34db33f/44#]KEY/0/*)", true),
    ("sh(wsh(sortedmulti(1,[d34db33f/44#]KEY/0/*,[d34db33f/45h]KEY/1/*)))", true),
    ("wsh(pk([d34db33f/44#]KEY/0/*))", true),
    ("wsh(or_d(pk([d34db33f/44#]KEY/0/*),and_v(v:pkh([d34db33f/45h]KEY/1/*),older(10))))", true),
    ("sh(wsh(or_d(pk([d34db33f/44#]KEY/0/*),and_v(v:pkh([d34db33f/45#]KEY/1/*),older(10)))))", true),
    ("tr([d34db33f/44#]KEY/0/*,and_v(v:pk([d34db33f/45#]KEY/1/*),older(10)))", true),
    ("tr([d34db33f/44#]KEY/0/*,{pk([d34db33f/45#]KEY/1/*),multi_a(1,[d34db33f/46#]KEY/2/*)})", true),
    ("wpkh(KEY/84#/0#/*)", false),
    ("wsh(and_v(v:pk([d34db33f/44#]KEY/1#/0/*),older(5)))", false),
    ("wsh(and_v(v:pk(KEY/1/*#),older(5)))", false),
    ("tr(KEY/1#/*,and_v(v:pk([d34db33f/44#]KEY/2#/*),older(5)))", false),
];

/// Everything that a wallet shows of its only descriptor.
fn descriptor_texts(wallet: &mut Client, text: &str, address: &Value, private: bool) -> Vec<Value> {
    wallet.import(&json!([{"desc": text, "timestamp": "now", "range": [0, 9]}]));
    let mut texts = Vec::new();
    for params in [json!([]), json!([true])].iter().take(1 + usize::from(private)) {
        texts.push(wallet.call("listdescriptors", params.clone())["descriptors"][0]["desc"].clone());
    }
    texts.push(wallet.call("gethdkeys", json!([]))[0]["descriptors"].clone());
    if !address.is_null() {
        let info = wallet.call("getaddressinfo", json!([address]));
        texts.extend(["desc", "parent_desc", "hdkeypath"].map(|key| info[key].clone()));
    }
    texts
}

#[test]
fn wallet_shows_descriptors_as_the_node_does() {
    let Some(host) = start(&["-keypool=20"]) else { return };
    let mut node = host.node_client();
    for (number, (form, watched)) in FORMS.iter().enumerate() {
        for (side, mark) in ["h", "'"].iter().enumerate() {
            let name = format!("w{number}_{side}");
            let text = form.replace('#', mark).replace("KEY", ROOT[usize::from(*watched)]);
            let text = node.with_checksum(&text);
            // A bare script has no address.
            let address =
                node.try_call("deriveaddresses", json!([text, [0, 0]])).map_or(Value::Null, |all| all[0].clone());
            let [ours, theirs] = [&mut host.client(), &mut node].map(|client| {
                client.call("createwallet", json!([name, watched, true]));
                descriptor_texts(&mut client.wallet(&name), &text, &address, !watched)
            });
            assert_eq!(ours, theirs, "{text}");
        }
    }
}

#[test]
fn wallet_replaces_and_limits_payments_as_the_node_does() {
    let Some(mut wallets) = Wallets::start() else { return };
    wallets.fund(2);
    // psbtbumpfee and bumpfee of payments with and without the signal for replacement.
    for replaceable in [false, true] {
        let pay = json!([ADDRESS, 1, "", "", false, replaceable, null, "unset", null, 5]);
        let txid = wallets.ours.call("sendtoaddress", pay);
        let asked = json!([txid, {"fee_rate": 20}]);
        let bumped = wallets.each(|wallet| {
            let bumped = wallet.try_call("psbtbumpfee", asked.clone());
            let fees = bumped.map(|bumped| json!([bumped["origfee"], bumped["fee"]]).to_string());
            fees.map_err(|failure| (failure.code, failure.message))
        });
        assert_eq!(bumped[0], bumped[1], "replaceable {replaceable}");
        if bumped[1].is_ok() {
            wallets.ours.call("bumpfee", asked);
        } else {
            wallets.check("bumpfee", asked).unwrap_err();
            assert!(!replaceable);
        }
    }
    wallets.fund(1);
    // Spend outputs of one unconfirmed transaction until both wallets refuse: at the same payment, with the same text.
    const OUTPUTS: usize = 70;
    let amounts: serde_json::Map<String, Value> =
        (0..OUTPUTS).map(|_| (wallets.address("", "bech32"), json!(0.5))).collect();
    let parent = wallets.ours.call("sendmany", json!(["", amounts]));
    let clusters = wallets.ours.call("getmempoolinfo", json!([]))["limitclustercount"].as_u64();
    let outpoints = (0..OUTPUTS).map(|vout| json!([{"txid": parent, "vout": vout}]));
    for (paid, outpoint) in outpoints.enumerate() {
        let options = json!({"add_inputs": false, "fee_rate": 5});
        let asked = json!([outpoint, [{ADDRESS: 0.1}], 0, options]);
        // The fees differ, since Bitcoin Knots chooses change of another type.
        let [ours, theirs] = wallets.ask("walletcreatefundedpsbt", &asked).map(|made| made.map(drop));
        assert_eq!(ours, theirs, "after {paid} payments");
        if ours.is_err() {
            assert_eq!(paid as u64 + 1, clusters.unwrap_or(25));
            return;
        }
        wallets.ours.call("send", json!([[{ADDRESS: 0.1}], null, null, 5, {"add_inputs": false, "inputs": outpoint}]));
    }
    panic!("no payment was refused");
}
