//! The descriptor functions differ in the keys that they recognise by hash: the test updates a PSBT whose outputs hide a key in
//! every way with one descriptor at a time. A wallet's knowledge of one input does not affect other inputs.

use std::collections::HashSet;

use bitcoin::secp256k1::{Secp256k1, SecretKey};
use bitcoin::{Network, PrivateKey};
use serde_json::{Value, json};

use super::super::ADDRESS;
use super::Both;
use super::fields::KEY;

const OTHER: &str = "02c6047f9441ed7d6d3045406e95c07cd85c778e4b8cef3ca7abac09b95c709ee5";
const THIRD: &str = "03f9308a019258c31049344f85f89d5229b531c845836f99b08601f113bce036f9";

/// Outputs of key 0.
const OUTPUTS: [&str; 9] = [
    "pkh({0})",
    "wpkh({0})",
    "sh(pkh({0}))",
    "sh(wpkh({0}))",
    "wsh(pkh({0}))",
    "wsh(and_v(v:pkh({0}),older(1)))",
    "wsh(multi(1,{0},{1}))",
    "tr({1},and_v(v:pkh({0}),older(1)))",
    "tr({1},pk({0}))",
];

/// Descriptors with key 0, and the number of outputs that show its origin before and since Bitcoin Core 32.
const DESCRIPTORS: [(&str, usize, usize); 23] = [
    ("pk({0})", 8, 8),
    ("sh(pk({0}))", 8, 8),
    ("wsh(pk({0}))", 8, 8),
    ("multi(1,{0},{1})", 2, 8),
    ("sh(multi(1,{1},{0}))", 2, 8),
    ("wsh(sortedmulti(1,{0},{1}))", 2, 8),
    ("sh(wsh(sortedmulti(2,{0},{1})))", 2, 8),
    ("rawtr({0})", 2, 8),
    ("tr({1},pk({0}))", 8, 8),
    ("tr({1},multi_a(1,{0},{2}))", 2, 8),
    ("tr({1},{pk({2}),sortedmulti_a(1,{2},{0})})", 2, 8),
    ("pkh({0})", 8, 8),
    ("wpkh({0})", 8, 8),
    ("sh(pkh({0}))", 8, 8),
    ("sh(wpkh({0}))", 8, 8),
    ("wsh(pkh({0}))", 8, 8),
    ("combo({0})", 8, 8),
    ("wsh(and_v(v:pk({0}),older(2)))", 8, 8),
    ("wsh(or_d(pk({1}),and_v(v:pkh({0}),older(2))))", 8, 8),
    ("sh(wsh(and_v(v:pkh({0}),older(2))))", 8, 8),
    ("tr({0})", 8, 8),
    ("tr({1},and_v(v:pk({0}),older(2)))", 3, 9),
    ("tr({1},{pk({2}),and_v(v:pkh({0}),older(2))})", 3, 9),
];

fn with_keys(text: &str) -> String {
    [KEY, OTHER, THIRD].iter().enumerate().fold(text.to_owned(), |text, (index, key)| {
        let key = if index == 0 { format!("[d34db33f/1h/2]{key}") } else { (*key).to_owned() };
        text.replace(&format!("{{{index}}}"), &key)
    })
}

/// Descriptors recognise the same keys by hash as on the node.
pub(super) fn check_descriptors(both: &mut Both) {
    let mut outputs = Vec::new();
    for text in OUTPUTS {
        let info = both.theirs.call("getdescriptorinfo", json!([with_keys(text)]));
        let address = both.theirs.call("deriveaddresses", json!([info["descriptor"]]))[0].clone();
        outputs.push(json!({address.as_str().unwrap(): 1}));
    }
    let plain = both.call("createpsbt", json!([[{"txid": "11".repeat(32), "vout": 0}], outputs]));
    // Add the scripts without the origins of keys.
    let texts = OUTPUTS.map(with_keys);
    let scripts = both.call("descriptorprocesspsbt", json!([plain, texts, "DEFAULT", false]))["psbt"].clone();
    let count = |psbt: &Value| {
        let with_key = |output: &&Value| {
            let derivations = [("bip32_derivs", KEY), ("taproot_bip32_derivs", &KEY[2..])];
            derivations.iter().any(|(member, key)| {
                let all = output[*member].as_array().into_iter().flatten();
                all.into_iter().any(|one| one["pubkey"] == *key && one["path"] == "m/1h/2")
            })
        };
        psbt["outputs"].as_array().unwrap().iter().filter(with_key).count()
    };
    let before = both.call("decodepsbt", json!([scripts]));
    assert_eq!(count(&before), 0, "{before}");
    for (text, known, since_32) in DESCRIPTORS {
        let text = with_keys(text);
        for method in ["utxoupdatepsbt", "descriptorprocesspsbt"] {
            let updated = both.call(method, json!([scripts, [text]]));
            let updated = if updated.is_object() { updated["psbt"].clone() } else { updated };
            let decoded = both.call("decodepsbt", json!([updated]));
            let expected = if both.has_version_two() { since_32 } else { known };
            assert_eq!(count(&decoded), expected, "{text}: {decoded}");
        }
    }
}

/// A wallet does not use its knowledge of one input for others.
pub(super) fn check_knowledge(both: &mut Both) {
    let mine = both.call("getnewaddress", json!(["", "bech32"]));
    let key = both.ours.call("getaddressinfo", json!([mine]))["pubkey"].as_str().unwrap().to_owned();
    let mut addresses = vec![mine];
    let mut descriptors = Vec::new();
    for text in [
        format!("wsh(multi(1,{key},{OTHER}))"),
        format!("sh(multi(1,{OTHER},{key}))"),
        format!("sh(wsh(pk({key})))"),
        format!("tr({THIRD},pk({key}))"),
    ] {
        let descriptor = both.call("getdescriptorinfo", json!([text]))["descriptor"].clone();
        addresses.push(both.call("deriveaddresses", json!([descriptor]))[0].clone());
        descriptors.push(descriptor);
    }
    let mut coins = Vec::new();
    for address in &addresses {
        let block = both.theirs.call("generatetoaddress", json!([1, address]))[0].clone();
        let coinbase = both.theirs.call("getblock", json!([block]))["tx"][0].clone();
        coins.push(json!({"txid": coinbase, "vout": 0}));
    }
    both.ours.call("generatetoaddress", json!([100, ADDRESS]));
    // A foreign address with a label in the wallet.
    both.call("setlabel", json!([ADDRESS, "somebody"]));
    addresses.push(json!(ADDRESS));
    let outputs: Vec<Value> = addresses.iter().map(|address| json!({address.as_str().unwrap(): 1})).collect();
    let reversed: Vec<&Value> = coins.iter().rev().collect();
    for inputs in [json!(coins), json!(reversed), json!(coins[1..]), json!(coins[..1])] {
        let plain = both.call("createpsbt", json!([inputs, outputs]));
        for with_origins in [false, true] {
            // Add all scripts, and their keys' origins if `with_origins`.
            let told = json!([plain, descriptors, "ALL", with_origins, false]);
            let told = both.call("descriptorprocesspsbt", told)["psbt"].clone();
            for (sign, finalize) in [(true, false), (true, true), (false, false)] {
                let answer = both.call("walletprocesspsbt", json!([told, sign, "ALL", true, finalize]));
                both.call("decodepsbt", json!([answer["psbt"]]));
                assert!(sign || answer["complete"] == false);
            }
        }
    }
}

/// The host's wallets sign for their taproot output keys as the node's.
pub(super) fn check_output_keys(both: &mut Both) {
    let (mut coins, mut parities) = (Vec::new(), HashSet::new());
    for seed in 1..=6_u8 {
        let private = PrivateKey::new(SecretKey::from_slice(&[seed; 32]).unwrap(), Network::Regtest);
        let public = private.public_key(&Secp256k1::new()).to_string();
        if !parities.insert(public[..2].to_owned()) {
            continue;
        }
        let output = both.call("getdescriptorinfo", json!([format!("rawtr({})", &public[2..])]));
        let address = both.call("deriveaddresses", json!([output["descriptor"]]))[0].clone();
        let block = both.theirs.call("generatetoaddress", json!([1, address]))[0].clone();
        let coinbase = both.theirs.call("getblock", json!([block]))["tx"][0].clone();
        coins.push((private.to_wif(), coinbase));
    }
    assert_eq!(parities.len(), 2);
    both.ours.call("generatetoaddress", json!([100, ADDRESS]));
    // A wallet cannot map a multisig's keys to its script.
    let forms = [("pkh", true), ("wpkh", true), ("rawtr", true), ("wsh(multi", false)];
    // Bitcoin Core 32 signs for the key in a multisig; the host does not.
    let known = if both.has_version_two() { &forms[..3] } else { &forms };
    for &(form, signs) in known {
        for (number, (wif, coinbase)) in coins.iter().enumerate() {
            let name = format!("{}{number}", &form[..3]);
            both.call("createwallet", json!([name, false, true]));
            let wallets = [&both.ours, &both.theirs].map(|client| client.wallet(&name));
            let [ours, theirs] = wallets;
            let mut wallets = Both { ours, theirs };
            let text = if signs { format!("{form}({wif})") } else { format!("{form}(1,{wif}))") };
            let checksum = both.call("getdescriptorinfo", json!([text]))["checksum"].clone();
            let text = format!("{text}#{}", checksum.as_str().unwrap());
            let imported = wallets.call("importdescriptors", json!([[{"desc": text, "timestamp": "now"}]]));
            assert_eq!(imported[0]["success"], true, "{imported}");
            let plain = both.call("createpsbt", json!([[{"txid": coinbase, "vout": 0}], [{ADDRESS: 1}]]));
            let updated = both.call("utxoupdatepsbt", json!([plain]));
            let signed = wallets.call("walletprocesspsbt", json!([updated]));
            assert_eq!(signed["complete"], signs, "{name}");
        }
    }
}
