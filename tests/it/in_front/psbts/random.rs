//! The host signs random PSBTs as the node.
//!
//! `OUTRIGGER_PSBTS` sets the number of random transactions, `OUTRIGGER_PSBTS_SEED` the random seed.

use bitcoin::bip32::{DerivationPath, Xpriv, Xpub};
use bitcoin::secp256k1::{Secp256k1, SecretKey};
use bitcoin::{Network, PrivateKey};
use serde_json::{Value, json};

use super::super::{ADDRESS, start};
use super::Both;
use crate::kills::{Numbers, setting};

/// A key in private and public form.
struct Key {
    private: String,
    public: String,
}

fn keys(seed: u8) -> [Key; 3] {
    let curve = Secp256k1::new();
    let single = PrivateKey::new(SecretKey::from_slice(&[seed; 32]).unwrap(), Network::Regtest);
    let master = Xpriv::new_master(Network::Regtest, &[seed; 32]).unwrap();
    let path: DerivationPath = "m/48h/1h".parse().unwrap();
    let account = master.derive_priv(&curve, &path).unwrap();
    let account = Xpub::from_priv(&curve, &account);
    let origin = "[d34db33f/84h/7]";
    [
        Key { private: single.to_wif(), public: single.public_key(&curve).to_string() },
        Key {
            private: format!("{master}/48h/1h/2/*"),
            public: format!("[{}/48h/1h]{account}/2/*", master.fingerprint(&curve)),
        },
        Key {
            private: format!("{origin}{master}/5"),
            public: format!("{origin}{}/5", Xpub::from_priv(&curve, &master)),
        },
    ]
}

/// Kinds of outputs, of three keys each.
const KINDS: [&str; 17] = [
    "pkh({0})",
    "wpkh({1})",
    "sh(wpkh({2}))",
    "sh(multi(2,{0},{1},{2}))",
    "wsh(multi(2,{2},{1},{0}))",
    "wsh(sortedmulti(1,{0},{1}))",
    "sh(wsh(multi(3,{0},{1},{2})))",
    "sh(pkh({1}))",
    "wsh(pk({0}))",
    "wsh(or_d(pk({0}),and_v(v:pkh({1}),older(10))))",
    "wsh(thresh(2,pk({0}),s:pk({1}),sln:older(5)))",
    "tr({0})",
    "tr({1},pk({0}))",
    "tr({2},{pk({0}),{multi_a(2,{1},{0}),and_v(v:pk({1}),after(20))}})",
    "tr({0},sortedmulti_a(1,{1},{2}))",
    "tr({2},and_v(v:pkh({1}),older(5)))",
    "rawtr({1})",
];

fn descriptor(kind: &str, keys: &[Key; 3], private: u64) -> String {
    let mut text = kind.to_owned();
    for (index, key) in keys.iter().enumerate() {
        let form = if private >> index & 1 == 1 { &key.private } else { &key.public };
        text = text.replace(&format!("{{{index}}}"), form);
    }
    text
}

/// The number of wildcard indexes in use.
const INDEXES: u64 = 2;

/// Updates, signs in turn, combines and finalises random transactions with all kinds of outputs.
fn sign_random(arguments: &[&'static str], count: u64) {
    let Some(host) = start(arguments) else { return };
    let mut both = Both::of(&host);
    let keys = keys(7);
    let mut coins = Vec::new();
    for kind in KINDS {
        let plain = descriptor(kind, &keys, 0);
        let info = both.theirs.call("getdescriptorinfo", json!([plain]));
        let text = format!("{plain}#{}", info["checksum"].as_str().unwrap());
        let ranged = info["isrange"] == json!(true);
        let range = if ranged { json!([0, INDEXES - 1]) } else { Value::Null };
        for address in both.theirs.call("deriveaddresses", json!([text, range])).as_array().unwrap() {
            let block = both.theirs.call("generatetoaddress", json!([1, address]))[0].clone();
            let coinbase = both.theirs.call("getblock", json!([block, 2]))["tx"][0].clone();
            coins.push((kind, address.clone(), coinbase["txid"].clone(), coinbase["hex"].clone()));
        }
    }
    // Mine through the host, which has followed the node when it answers.
    both.ours.call("generatetoaddress", json!([100, ADDRESS]));
    let seed = setting("OUTRIGGER_PSBTS_SEED", 0x9527_0174);
    eprintln!("OUTRIGGER_PSBTS_SEED={seed}");
    let mut numbers = Numbers(seed);
    let mut complete = 0;
    for _ in 0..count {
        let chosen: Vec<_> = (0..1 + numbers.below(3)).map(|_| numbers.below(coins.len() as u64)).collect();
        let mut chosen: Vec<_> = chosen.into_iter().map(|index| &coins[usize::try_from(index).unwrap()]).collect();
        chosen.dedup_by_key(|coin| coin.2.clone());
        let sequence = [4_294_967_293_u32, 10, 4_294_967_295][usize::try_from(numbers.below(3)).unwrap()];
        let inputs: Vec<Value> =
            chosen.iter().map(|coin| json!({"txid": coin.2, "vout": 0, "sequence": sequence})).collect();
        let to = &coins[usize::try_from(numbers.below(coins.len() as u64)).unwrap()].1;
        let outputs = json!([{to.as_str().unwrap(): 1.5}]);
        let params = json!([inputs, outputs, numbers.below(2) * 30, null]);
        let params = both.with_version(params, 2 * numbers.below(2));
        let text = both.call("createpsbt", params);
        let range = |desc: String| json!({"desc": desc, "range": INDEXES});
        let public: Vec<Value> = KINDS.iter().map(|kind| range(descriptor(kind, &keys, 0))).collect();
        let some: Vec<Value> = public.iter().filter(|_| numbers.below(4) > 0).cloned().collect();
        let updated = both.call("utxoupdatepsbt", json!([text, some]));
        both.call("decodepsbt", json!([updated]));
        both.analyze(json!([updated]));
        let sighash = ["DEFAULT", "ALL", "SINGLE|ANYONECANPAY", "NONE"][usize::try_from(numbers.below(4)).unwrap()];
        let mut signed = Vec::new();
        for _ in 0..2 {
            let mask = numbers.below(8);
            let private: Vec<Value> = KINDS.iter().map(|kind| range(descriptor(kind, &keys, mask))).collect();
            let (origins, finalize) = (numbers.below(2) == 0, numbers.below(3) == 0);
            let answer = both.call("descriptorprocesspsbt", json!([updated, private, sighash, origins, finalize]));
            both.call("decodepsbt", json!([answer["psbt"]]));
            both.analyze(json!([answer["psbt"]]));
            both.call("finalizepsbt", json!([answer["psbt"], false]));
            signed.push(answer["psbt"].clone());
        }
        let combined = both.call("combinepsbt", json!([signed]));
        both.analyze(json!([combined]));
        let done = both.call("finalizepsbt", json!([combined]));
        if done["complete"] == json!(true) {
            complete += 1;
            let kept = both.call("finalizepsbt", json!([combined, false]));
            both.call("decodepsbt", json!([kept["psbt"]]));
        }
    }
    eprintln!("{complete} of {count} are complete");
    assert!(count < 20 || complete > count / 10, "{complete}");
}

#[test]
fn random_psbts_are_signed_as_by_the_node() {
    sign_random(&["-txindex=1"], setting("OUTRIGGER_PSBTS", 60));
}

#[test]
fn random_psbts_are_signed_as_by_the_node_without_txindex() {
    sign_random(&[], setting("OUTRIGGER_PSBTS", 60) / 3);
}
