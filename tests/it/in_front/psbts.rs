//! The group psbt beside the real bitcoind: the same questions to both, and equal answers, byte for byte.
//!
//! `OUTRIGGER_PSBTS` says how many random transactions are signed, `OUTRIGGER_PSBTS_SEED` which.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bitcoin::bip32::{DerivationPath, Xpriv, Xpub};
use bitcoin::secp256k1::{Secp256k1, SecretKey};
use bitcoin::{Network, PrivateKey};
use outrigger_tests::{Client, Host, bitcoind};
use serde_json::{Value, json};

use super::{ADDRESS, start};
use crate::kills::{Numbers, setting};

/// A transaction with an input that is on no chain and an output that anyone can spend.
const TRANSACTION: &str = "02000000011111111111111111111111111111111111111111111111111111111111111111\
    0000000000ffffffff01e803000000000000015100000000";
/// A public key.
const KEY: &str = "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";

/// Host and node, asked the same.
struct Both {
    ours: Client,
    theirs: Client,
}

impl Both {
    fn of(host: &Host) -> Self {
        Self { ours: host.client(), theirs: host.node.as_ref().unwrap().client() }
    }

    /// The answer, which is the same of both.
    #[track_caller]
    fn ask(&mut self, method: &str, params: &Value) -> Result<Value, (i64, String)> {
        let answers = [&mut self.ours, &mut self.theirs].map(|client| {
            let answer = client.try_call(method, params.clone());
            answer.map_err(|failure| (failure.code, failure.message))
        });
        let [ours, theirs] = answers;
        let text = |answer: &Result<Value, _>| answer.as_ref().map(Value::to_string).map_err(Clone::clone);
        assert_eq!(text(&ours), text(&theirs), "{method} {params}");
        ours
    }

    #[track_caller]
    fn call(&mut self, method: &str, params: Value) -> Value {
        self.ask(method, &params).unwrap_or_else(|error| panic!("{method} {params}: {error:?}"))
    }

    /// The analyses are the same, but for the sizes: those of scripts with lock times are estimated otherwise.
    #[track_caller]
    fn analyze(&mut self, params: Value) {
        let [ours, theirs] = [&mut self.ours, &mut self.theirs].map(|client| {
            let mut analysis = client.call("analyzepsbt", params.clone());
            let members = analysis.as_object_mut().unwrap();
            members.retain(|key, _| !key.starts_with("estimated"));
            analysis
        });
        assert_eq!(ours, theirs, "analyzepsbt {params}");
    }
}

/// The text of a PSBT of these hexadecimal digits.
fn base64(hex: &str) -> String {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    BASE64_STANDARD.encode(digits.chunks(2).map(byte).collect::<Vec<_>>())
}

/// A field: the lengths of key and value, and both.
fn field(key: &str, value: &str) -> String {
    format!("{:02x}{key}{:02x}{value}", key.len() / 2, value.len() / 2)
}

/// PSBTs with these fields of the whole, of the input and of the output.
fn psbt(global: &str, input: &str, output: &str) -> String {
    base64(&format!("70736274ff{}{global}00{input}00{output}00", field("00", TRANSACTION)))
}

/// Fields of an input, good and bad.
fn input_fields() -> Vec<String> {
    let (zeros, ones, hash20) = ("00".repeat(32), "11".repeat(32), "22".repeat(20));
    let signature = "3006020101020101";
    let x = &KEY[2..];
    let leaf_key = format!("15c1{x}");
    let mut fields = vec![
        field("01", &format!("e803000000000000160014{hash20}")),
        field("01", &format!("ffffffffffffffff160014{hash20}")),
        field("01", "e803000000000000"),
        field("01", &format!("e803000000000000160014{hash20}00")),
        field(&format!("02{KEY}"), &format!("{signature}01")),
        field(&format!("02{KEY}"), ""),
        field(&format!("02{KEY}00"), &format!("{signature}01")),
        field(&format!("0202{ones}"), &format!("{signature}01")),
        field("04", "51"),
        field("05", "5121"),
        field("05", ""),
        field(&format!("06{KEY}"), "d34db33f0000008001000000"),
        field(&format!("06{KEY}"), "d34db33f"),
        field(&format!("06{KEY}"), "d34db33f00"),
        field(&format!("06{KEY}"), ""),
        field("07", "51"),
        field("08", "020151015100"),
        field("08", "02015101"),
        field("08", "00"),
        field(&format!("13{x}"), &ones.repeat(2)),
        field("13", &ones.repeat(2)),
        field("13", &ones),
        field("13", &ones.repeat(3)),
        field(&format!("14{x}{ones}"), &ones.repeat(2)),
        field(&format!("14{x}{ones}"), &ones),
        field(&format!("14{x}"), &ones.repeat(2)),
        field(&leaf_key, "51c0"),
        field(&format!("{leaf_key}{ones}"), "51c0"),
        field(&leaf_key, "c0"),
        field(&leaf_key, ""),
        field("15c1", "51c0"),
        field(&format!("{leaf_key}00"), "51c0"),
        field(&format!("16{x}"), "00d34db33f01000000"),
        field(&format!("16{x}"), &format!("02{ones}{zeros}d34db33f01000080")),
        field(&format!("16{x}"), &format!("01{ones}")),
        field(&format!("16{x}00"), "00d34db33f01000000"),
        field("17", x),
        field("17", &zeros),
        field("17", &ones[2..]),
        field("18", &ones),
        field("18", &zeros),
        field("1800", &ones),
        field("19", "aa"),
        field("fc04746573740700", "aabb"),
        field("fc0474657374", "aabb"),
        field("fc05746573740700", "aabb"),
        field("aabbcc", "dd"),
        field("aabbcc", ""),
        "03fdaa0001bb".into(),
        "04fdaa000001bb".into(),
        "04fdffff0001bb".into(),
        "06feffffffff0001bb".into(),
        "01aa".into(),
        "05aa".into(),
        field("00", TRANSACTION),
        field("00", "00"),
    ];
    for sighash in ["00000000", "01000000", "83000000", "ff000000", "01010000", "010000", "0100000000"] {
        fields.push(field("03", sighash));
    }
    for (kind, hash) in [("0a", &hash20), ("0b", &ones), ("0c", &hash20), ("0d", &ones)] {
        fields.push(field(&format!("{kind}{hash}"), "abcd"));
        fields.push(field(&format!("{kind}{hash}00"), "abcd"));
    }
    fields
}

/// Fields of an output, good and bad.
fn output_fields() -> Vec<String> {
    let (zeros, ones, x) = ("00".repeat(32), "11".repeat(32), &KEY[2..]);
    vec![
        field("00", "51"),
        field("0000", "51"),
        field("01", "52"),
        field("0100", "52"),
        field(&format!("02{KEY}"), "d34db33f01000080"),
        field("02", "d34db33f01000080"),
        field("05", x),
        field("0500", x),
        field("05", &zeros),
        field("06", "00c00151"),
        field("06", "01c0015101c00152"),
        field("06", "01c0015102c0015202c20153"),
        field("06", "01c00151"),
        field("06", "01c1015101c00152"),
        field("06", "81c00151"),
        field("06", "01c005"),
        field("06", ""),
        field(&format!("07{x}"), &format!("01{ones}d34db33f01000080")),
        field(&format!("07{x}"), "00"),
        field("07", "00d34db33f"),
        field("03", "aa"),
        field("fc0474657374fd0001", "aabb"),
        field("fc04", "aabb"),
        "05aa".into(),
    ]
}

/// Fields of the whole, good and bad.
fn global_fields() -> Vec<String> {
    let xpub = format!("01043587cf0000000000000000{}{KEY}", "22".repeat(32).get(8..).unwrap().to_owned() + "33333333");
    vec![
        field(&xpub, "d34db33f01000080"),
        field(&xpub, "d34db33f010000"),
        field(&xpub[..80], "d34db33f"),
        field(&xpub.replace("043587cf00000000000", "043587cf00000000010"), "d34db33f"),
        field("fb", "00000000"),
        field("fb", "01000000"),
        field("fb", "02000000"),
        field("fb", "0000"),
        field("fb00", "00000000"),
        field("00", TRANSACTION),
        field("fc0474657374fd0001", "aabb"),
        field("02", "aa"),
        field("03", "aa"),
        field("aa", "bb"),
    ]
}

#[test]
fn decodepsbt_tells_every_field_and_every_fault_as_the_node() {
    let Some(host) = start(&[]) else { return };
    let mut both = Both::of(&host);
    let (inputs, outputs, globals) = (input_fields(), output_fields(), global_fields());
    let mut texts = vec!["!".into(), String::new(), base64("70736274ff"), base64("70736274fe00"), base64("0102")];
    let whole = format!("70736274ff{}000000", field("00", TRANSACTION));
    texts.extend((0..whole.len()).step_by(2).map(|end| base64(&whole[..end])));
    texts.extend([base64(&whole), base64(&format!("{whole}00")), base64("70736274ff00")]);
    let signed = TRANSACTION.replace("0000000000ffffffff", "000000000151ffffffff");
    texts.push(base64(&format!("70736274ff{}000000", field("00", &signed))));
    for (index, (fields, place)) in [(&globals, 0), (&inputs, 1), (&outputs, 2)].into_iter().enumerate() {
        let with = |text: &str| {
            let part = |at| if at == place { text } else { "" };
            psbt(part(0), part(1), part(2))
        };
        texts.extend(fields.iter().map(|field| with(field)));
        texts.extend(fields.iter().map(|field| with(&field.repeat(2))));
        // Two in the wrong order.
        texts.extend(fields.iter().zip(fields.iter().rev()).map(|(one, other)| with(&format!("{other}{one}"))));
        assert!(index == place);
    }
    let mut good = Vec::new();
    for text in texts {
        if both.ask("decodepsbt", &json!([text])).is_ok() {
            good.push(text);
        }
    }
    assert!(good.len() > 40, "{}", good.len());
    for text in &good {
        // What is read is written again.
        both.call("combinepsbt", json!([[text]]));
        both.call("finalizepsbt", json!([text]));
        both.call("analyzepsbt", json!([text]));
        both.call("utxoupdatepsbt", json!([text]));
    }
    for pair in good.windows(2) {
        both.call("combinepsbt", json!([pair]));
    }
    both.call("combinepsbt", json!([good]));
}

#[test]
fn psbt_methods_refuse_as_the_node() {
    let Some(host) = start(&[]) else { return };
    let mut both = Both::of(&host);
    let plain = psbt("", "", "");
    let other = both.call("createpsbt", json!([[], [{ADDRESS: 1}], 7]));
    let signed = TRANSACTION.replace("0000000000ffffffff", "000000000151ffffffff");
    for (method, params) in [
        ("createpsbt", json!([[{"txid": "11".repeat(32), "vout": 0}], [{ADDRESS: 1}, {"data": "aabb"}], 5, false])),
        ("createpsbt", json!([[{"txid": "11".repeat(32), "vout": 0, "sequence": 4_294_967_295_u32}], {}, 5, true])),
        ("createpsbt", json!([[{"vout": 0}], {}])),
        ("createpsbt", json!([["x"], {}])),
        ("createpsbt", json!([[], {"x": 1}])),
        ("createpsbt", json!(["x", {}])),
        ("converttopsbt", json!([TRANSACTION])),
        ("converttopsbt", json!([signed])),
        ("converttopsbt", json!([signed, true])),
        ("converttopsbt", json!([signed, true, false])),
        ("converttopsbt", json!([signed, true, true])),
        ("converttopsbt", json!(["00"])),
        ("converttopsbt", json!([TRANSACTION, 1])),
        ("combinepsbt", json!([[]])),
        ("combinepsbt", json!([[5]])),
        ("combinepsbt", json!([["x"]])),
        ("combinepsbt", json!([[plain, other]])),
        ("combinepsbt", json!(["x"])),
        ("joinpsbts", json!([[]])),
        ("joinpsbts", json!([[plain]])),
        ("joinpsbts", json!([[plain, plain]])),
        ("joinpsbts", json!([[plain, "x"]])),
        ("joinpsbts", json!([[plain, 5]])),
        ("decodepsbt", json!([5])),
        ("finalizepsbt", json!([plain, "x"])),
        ("finalizepsbt", json!(["x"])),
        ("finalizepsbt", json!([other])),
        ("finalizepsbt", json!([other, false])),
        ("analyzepsbt", json!([other])),
        ("analyzepsbt", json!(["x"])),
        ("utxoupdatepsbt", json!([plain, 5])),
        ("utxoupdatepsbt", json!([plain, [5]])),
        ("utxoupdatepsbt", json!(["x", [{}]])),
        ("utxoupdatepsbt", json!([plain, [{"desc": format!("pkh({KEY})"), "range": [5, 3]}]])),
        ("utxoupdatepsbt", json!([plain, [format!("pkh({KEY})")]])),
        ("descriptorprocesspsbt", json!([plain, [], "x"])),
        ("descriptorprocesspsbt", json!(["x", []])),
        ("descriptorprocesspsbt", json!([plain, []])),
    ] {
        let _ = both.ask(method, &params);
    }
}

/// A key in its private and its public form.
struct Key {
    private: String,
    public: String,
}

/// Some keys: a plain one, one of an extended key, and one with an origin and a wildcard.
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
const KINDS: [&str; 16] = [
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
    "rawtr({1})",
];

/// A descriptor of a kind, with the private keys that `private` has a bit for.
fn descriptor(kind: &str, keys: &[Key; 3], private: u64) -> String {
    let mut text = kind.to_owned();
    for (index, key) in keys.iter().enumerate() {
        let form = if private >> index & 1 == 1 { &key.private } else { &key.public };
        text = text.replace(&format!("{{{index}}}"), form);
    }
    text
}

/// The most that an index of a wildcard is used.
const INDEXES: u64 = 2;

/// Random transactions of all kinds of outputs are updated, signed in turns, combined and finalised.
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
    both.theirs.call("generatetoaddress", json!([100, ADDRESS]));
    // One of each kind is spent to another in the mempool.
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
        let text = both.call("createpsbt", json!([inputs, outputs, numbers.below(2) * 30]));
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

#[test]
fn walletprocesspsbt_signs_as_the_node() {
    let Some(host) = start(&[]) else { return };
    let mut client = host.client();
    client.call("createwallet", json!(["w"]));
    let theirs = bitcoind::twin(host.node.as_ref().unwrap().client(), &mut client);
    let mut both = Both { ours: client.wallet("w"), theirs };
    let mut coins = Vec::new();
    for kind in ["legacy", "p2sh-segwit", "bech32", "bech32m"] {
        let mine = both.call("getnewaddress", json!(["", kind]));
        let block = both.theirs.call("generatetoaddress", json!([1, mine]))[0].clone();
        let coinbase = both.theirs.call("getblock", json!([block]))["tx"][0].clone();
        coins.push(json!({"txid": coinbase, "vout": 0}));
    }
    host.client().call("generatetoaddress", json!([100, ADDRESS]));
    let change: Vec<Value> = ["legacy", "p2sh-segwit", "bech32", "bech32m"]
        .iter()
        .map(|kind| both.call("getrawchangeaddress", json!([kind])))
        .collect();
    let mut texts = Vec::new();
    for selected in [&coins[..], &coins[..1], &coins[1..2], &coins[2..3], &coins[3..]] {
        for to in &change {
            texts.push(both.call("createpsbt", json!([selected, [{to.as_str().unwrap(): 1}, {ADDRESS: 2}]])));
        }
    }
    for text in &texts {
        for bits in 0..8 {
            let (sign, origins, finalize) = (bits & 1 == 0, bits & 2 == 0, bits & 4 == 0);
            for sighash in ["DEFAULT", "ALL", "SINGLE|ANYONECANPAY"] {
                let answer = both.call("walletprocesspsbt", json!([text, sign, sighash, origins, finalize]));
                both.call("analyzepsbt", json!([answer["psbt"]]));
                both.call("decodepsbt", json!([answer["psbt"]]));
                if !sighash.contains("SINGLE") {
                    assert_eq!(answer["complete"], json!(sign && finalize));
                }
            }
        }
    }
    for params in [json!(["x"]), json!([texts[0], true, "x"])] {
        let _ = both.ask("walletprocesspsbt", &params);
    }
}
