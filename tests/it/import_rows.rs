//! The effect of importmulti on a script. `data/importmulti-rows.txt` has a line for each combination of script,
//! pieces, keys and flags: request -> answer; then the script's ownership, its known data, and whether the wallet signs.

use bitcoin::hashes::Hash;
use bitcoin::opcodes::all::{OP_CHECKMULTISIG, OP_PUSHNUM_1, OP_PUSHNUM_2};
use bitcoin::script::Builder;
use bitcoin::secp256k1::{Secp256k1, SecretKey};
use bitcoin::{Address, Network, NetworkKind, PrivateKey, PublicKey, ScriptBuf};
use outrigger_tests::{Client, Host, data};
use serde_json::{Value, json};

const FORMS: [&str; 8] = ["pk", "pkh", "wpkh", "sh-wpkh", "multi", "sh-multi", "wsh-multi", "sh-wsh-multi"];

/// A script and the data that a request can give with it.
struct Subject {
    script: ScriptBuf,
    redeem: Option<ScriptBuf>,
    witness: Option<ScriptBuf>,
    keys: Vec<PrivateKey>,
}

impl Subject {
    /// A script of a form, with keys unique to the number.
    fn new(form: &str, number: u16) -> Self {
        let curve = Secp256k1::new();
        let key = |place: u8| {
            let bytes = bitcoin::hashes::sha256::Hash::hash(&[&number.to_be_bytes()[..], &[place]].concat());
            PrivateKey::new(SecretKey::from_slice(bytes.as_byte_array()).unwrap(), NetworkKind::Test)
        };
        let keys: Vec<PrivateKey> = (0..if form.ends_with("multi") { 2 } else { 1 }).map(key).collect();
        let public: Vec<PublicKey> = keys.iter().map(|key| key.public_key(&curve)).collect();
        let [first, last] = [public[0], public[public.len() - 1]];
        let program = ScriptBuf::new_p2wpkh(&first.wpubkey_hash().unwrap());
        let all = Builder::new().push_opcode(OP_PUSHNUM_1).push_key(&first).push_key(&last);
        let all = all.push_opcode(OP_PUSHNUM_2).push_opcode(OP_CHECKMULTISIG).into_script();
        let (script, redeem, witness) = match form {
            "pk" => (ScriptBuf::new_p2pk(&first), None, None),
            "pkh" => (ScriptBuf::new_p2pkh(&first.pubkey_hash()), None, None),
            "wpkh" => (program, None, None),
            "sh-wpkh" => (program.to_p2sh(), Some(program), None),
            "multi" => (all, None, None),
            "sh-multi" => (all.to_p2sh(), Some(all), None),
            "wsh-multi" => (all.to_p2wsh(), None, Some(all)),
            _ => (all.to_p2wsh().to_p2sh(), Some(all.to_p2wsh()), Some(all)),
        };
        Self { script, redeem, witness, keys }
    }

    fn public_keys(&self) -> Vec<String> {
        self.keys.iter().map(|key| key.public_key(&Secp256k1::new()).to_string()).collect()
    }
}

/// The lines of a form, in wallets with and without private keys enabled.
fn lines(form: &str, number: &mut u16, with_keys: &mut Client, without_keys: &mut Client) -> Vec<String> {
    let inner = form.contains('-');
    let mut lines = Vec::new();
    for scripts in [false, true].into_iter().take(1 + usize::from(inner)) {
        for (public, private) in [("none", 0), ("all", 0), ("none", 1), ("none", 2), ("all", 2)] {
            if private == 2 && !form.ends_with("multi") && public == "none" {
                continue;
            }
            for (watch_only, internal) in [(false, false), (true, false), (false, true), (true, true)] {
                for disabled in [false, true] {
                    *number += 1;
                    let subject = Subject::new(form, *number);
                    let mut request = json!({"scriptPubKey": subject.script.to_hex_string(), "timestamp": "now"});
                    if scripts {
                        let hex = |script: &Option<ScriptBuf>| script.as_ref().map(|script| script.to_hex_string());
                        request["redeemscript"] = json!(hex(&subject.redeem).unwrap_or_default());
                        request["witnessscript"] = json!(hex(&subject.witness).unwrap_or_default());
                    }
                    if public == "all" {
                        request["pubkeys"] = json!(subject.public_keys());
                    }
                    request["keys"] = subject.keys.iter().take(private).map(|key| key.to_wif()).collect();
                    request["watchonly"] = json!(watch_only);
                    request[if internal { "internal" } else { "label" }] =
                        if internal { json!(true) } else { json!("l") };
                    let wallet = if disabled { &mut *without_keys } else { &mut *with_keys };
                    let answer = wallet.call("importmulti", json!([[request]]))[0].take();
                    let flag = |set, name| if set { name } else { "" };
                    lines.push(format!(
                        "{form}{}{}{}{}{}{} -> {}; {}",
                        flag(scripts, " scripts"),
                        flag(public == "all", " pubkeys"),
                        ["", " key", " keys"][private],
                        flag(watch_only, " watchonly"),
                        flag(internal, " internal"),
                        flag(disabled, " (wallet without keys)"),
                        outcome(&answer),
                        state(wallet, &subject)
                    ));
                }
            }
        }
    }
    lines
}

/// The answer to a request: success or the error, and the distinct part of each warning.
fn outcome(answer: &Value) -> String {
    let mut told = match answer["error"]["message"].as_str() {
        Some(message) => format!("{} {message}", answer["error"]["code"]),
        None => "success".to_owned(),
    };
    for warning in answer["warnings"].as_array().into_iter().flatten() {
        let warning = warning.as_str().unwrap().split(". If this is").next().unwrap();
        // Drop the hash of one of this line's keys.
        let words: Vec<&str> = warning.split(' ').filter(|word| !word.starts_with('"')).collect();
        told = format!("{told} [{}]", words.join(" "));
    }
    told
}

/// The wallet's data on a script, and whether it signs for it.
fn state(wallet: &mut Client, subject: &Subject) -> String {
    let mut told = String::new();
    if let Ok(address) = Address::from_script(&subject.script, Network::Regtest) {
        let info = wallet.call("getaddressinfo", json!([address.to_string()]));
        for field in ["ismine", "iswatchonly", "solvable", "ischange"] {
            if info[field] == json!(true) {
                told = told + field + " ";
            }
        }
        let function = info["desc"].as_str().and_then(|text| text.split('(').next()).unwrap_or("none");
        told = format!("{told}desc={function} labels={} ", info["labels"]);
    }
    let mut transaction = json!([[{"txid": "01".repeat(32), "vout": 0}], [{"data": "00"}]]);
    let unsigned = wallet.call("createrawtransaction", transaction.take());
    let spent =
        json!([{"txid": "01".repeat(32), "vout": 0, "scriptPubKey": subject.script.to_hex_string(), "amount": 1}]);
    let signed = wallet.call("signrawtransactionwithwallet", json!([unsigned, spent]));
    told + if signed["complete"] == json!(true) { "signs" } else { "does not sign" }
}

#[test]
fn importmulti_answers_each_request_as_its_recorded_row() {
    let host = Host::start();
    let mut client = host.client();
    let mut with_keys = client.create_wallet("keys", json!({"blank": true}));
    let mut without_keys = client.create_wallet("none", json!({"blank": true, "disable_private_keys": true}));
    let mut number = 0;
    let found = FORMS.map(|form| lines(form, &mut number, &mut with_keys, &mut without_keys)).concat();
    let expected = data("importmulti-rows.txt");
    for (found, expected) in found.iter().zip(expected.lines()) {
        assert_eq!(found, expected);
    }
    assert_eq!(found.len(), expected.lines().count());
}
