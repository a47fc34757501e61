//! The same calls of a host's wallet and of a real bitcoind's wallet with the same descriptors, on the same blocks.

use std::collections::HashSet;

use bitcoin::consensus::encode::{deserialize_hex, serialize_hex};
use bitcoin::secp256k1::{Secp256k1, SecretKey};
use bitcoin::{Address, Network, PrivateKey, PublicKey, ScriptBuf, Transaction, Witness, opcodes};
use outrigger_tests::bitcoind::{self, installed, twin};
use outrigger_tests::{Bitcoind, Client, Host, HostOptions, NOBODY, skip};
use serde_json::{Value, json};

use super::bumped::check_trust;
use crate::compared::told;

pub const FOREIGN: &str = NOBODY;

/// Two wallets with the same addresses, each on a chain of its own with the same blocks.
pub struct Pair {
    pub ours: Client,
    pub theirs: Client,
    /// The release of the bitcoind.
    pub release: u64,
    _host: Host,
    _node: Bitcoind,
}

impl Pair {
    /// Starts both with these settings, which both know by the same names. None, with a notice, if there is no bitcoind here.
    pub fn start(settings: &[&str]) -> Option<Self> {
        let program = installed()?;
        let settings = [&["addresstype=bech32", "fallbackfee=0.00001"], settings].concat();
        let arguments: Vec<String> = settings
            .iter()
            .map(|setting| format!("-{}", setting.replace("=true", "=1").replace("=false", "=0")))
            .collect();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let (node, _) = Bitcoind::start_with(program, &arguments);
        let release = bitcoind::release(&mut node.client());
        let set =
            settings.iter().map(|setting| format!("wallet.{setting}")).chain([format!("release={release}")]).collect();
        let host = Host::start_with(HostOptions { set, ..HostOptions::default() });
        let mut ours = host.new_wallet("w");
        let theirs = twin(node.client(), &mut ours);
        Some(Self { ours, theirs, release, _host: host, _node: node })
    }

    /// Waits until both wallets have followed their mempools. A bitcoind's wallet lags behind its mempool.
    pub fn settle(&mut self) {
        for client in [&mut self.ours, &mut self.theirs] {
            client.call("syncwithvalidationinterfacequeue", json!([]));
        }
    }

    /// Makes the same successful call with both.
    pub fn both(&mut self, method: &str, params: &Value) -> [Value; 2] {
        self.settle();
        [&mut self.ours, &mut self.theirs].map(|client| client.call(method, params.clone()))
    }

    pub fn mine(&mut self, blocks: u32, address: &Value) {
        let hashes = self.ours.call("generatetoaddress", json!([blocks, address]));
        for hash in hashes.as_array().unwrap() {
            let block = self.ours.call("getblock", json!([hash, 0]));
            assert_eq!(self.theirs.call("submitblock", json!([block])), Value::Null);
        }
    }

    /// Mines `coins` coins of 50 BTC to the wallet.
    pub fn fund(&mut self, coins: u32) {
        for _ in 0..coins {
            let [address, same] = self.both("getnewaddress", &json!([]));
            assert_eq!(address, same);
            self.mine(1, &address);
        }
        self.mine(100, &json!(FOREIGN));
    }

    /// The number of different fees of a payment: 1 if both wallets pay the same.
    fn fees(&mut self, txids: &[Value; 2]) -> usize {
        let clients = [&mut self.ours, &mut self.theirs].into_iter().zip(txids);
        let fees: HashSet<String> =
            clients.map(|(client, txid)| client.call("gettransaction", json!([txid]))["fee"].to_string()).collect();
        fees.len()
    }

    /// Whether the params have an option of watch-only coins that bitcoind dropped after release 29.
    pub fn is_of_watched_coins(&self, params: &Value) -> bool {
        let text = params.to_string();
        self.release >= 30 && ["include_watch", "includeWatching"].iter().any(|option| text.contains(option))
    }

    #[track_caller]
    pub fn check(&mut self, method: &str, params: Value) {
        if self.is_of_watched_coins(&params) {
            return;
        }
        self.settle();
        let [ours, theirs] = [&mut self.ours, &mut self.theirs].map(|client| told(client, method, &params));
        assert_eq!(ours, theirs, "{method} {params}");
    }
}

#[test]
fn combinerawtransaction_lockunspent_and_simulaterawtransaction_answer_as_bitcoind() {
    let Some(mut pair) = Pair::start(&[]) else { return };
    pair.fund(4);
    // Each of the first two checks spends a coin, and the last one needs two.
    check_combinerawtransaction(&mut pair);
    check_locks(&mut pair);
    check_simulaterawtransaction(&mut pair);
}

fn check_locks(pair: &mut Pair) {
    let coins = pair.ours.call("listunspent", json!([]));
    let coin = |at: usize| json!({"txid": coins[at]["txid"], "vout": coins[at]["vout"]});
    let (one, other, none) = (coin(0), coin(1), "11".repeat(32));
    let calls = [
        json!([]),
        json!([true]),
        json!([false]),
        json!([Value::Null]),
        json!(["x", 5]),
        json!([false, {}]),
        json!([false, [5]]),
        json!([false, [{}]]),
        json!([false, [{"vout": 1}]]),
        json!([false, [{"txid": "ab", "vout": 0}]]),
        json!([false, [{"txid": "zz".repeat(32), "vout": 0}]]),
        json!([false, [{"txid": 5, "vout": 0}]]),
        json!([false, [{"txid": none, "vout": "0"}]]),
        json!([false, [{"txid": none}]]),
        json!([false, [{"txid": none, "vout": -1}]]),
        json!([false, [{"txid": none, "vout": 1.5}]]),
        json!([false, [{"txid": none, "vout": 8_589_934_592_u64}]]),
        json!([false, [{"txid": none, "vout": 0}, 5]]),
        json!([false, [one, 5]]),
        json!([false, [{"txid": one["txid"], "vout": 9}]]),
        json!([true, [one]]),
        json!([false, [one, other, other]]),
        json!([false, [other]]),
        json!([false, [other], true]),
        json!([false, [other], true]),
        json!([false, [other], false]),
        json!([false, [other], 5]),
        json!([true, []]),
    ];
    for params in calls {
        // Help texts differ from bitcoind's.
        if params != json!([]) {
            pair.check("lockunspent", params);
        }
        pair.check("listlockunspent", json!([]));
    }
    assert_eq!(pair.both("listunspent", &json!([])).map(|coins| coins.as_array().unwrap().len()), [1, 1]);
    pair.check("getbalances", json!([]));
    pair.check("sendtoaddress", json!([FOREIGN, 60]));
    for client in [&mut pair.ours, &mut pair.theirs] {
        client.call("unloadwallet", json!(["w"]));
        client.call("loadwallet", json!(["w"]));
    }
    pair.check("listlockunspent", json!([]));
    // A payment that spends a locked coin, and one that is abandoned.
    let raw = pair.ours.call("createrawtransaction", json!([[other], [{FOREIGN: 49.99}]]));
    let signed = pair.ours.call("signrawtransactionwithwallet", json!([raw]));
    pair.check("sendrawtransaction", json!([signed["hex"]]));
    pair.check("listlockunspent", json!([]));
    pair.check("lockunspent", json!([false, [other]]));
    let pays_others =
        json!({"txid": pair.ours.call("decoderawtransaction", json!([signed["hex"]]))["txid"], "vout": 0});
    pair.check("lockunspent", json!([false, [one, pays_others], true]));
    pair.check("listlockunspent", json!([]));
    pair.check("lockunspent", json!([true, [one]]));
    pair.check("listlockunspent", json!([]));
    pair.check("lockunspent", json!([true]));
    pair.check("listlockunspent", json!([]));
}

/// Output scripts of every kind for three keys, with the redeem script and the witness script for signrawtransactionwithkey.
fn outputs_of(keys: &[PublicKey]) -> Vec<(ScriptBuf, Option<ScriptBuf>, Option<ScriptBuf>)> {
    let builder = ScriptBuf::builder().push_int(2);
    let multisig = keys.iter().fold(builder, |builder, key| builder.push_key(key)).push_int(3);
    let multisig = multisig.push_opcode(opcodes::all::OP_CHECKMULTISIG).into_script();
    let both = ScriptBuf::builder().push_key(&keys[0]).push_opcode(opcodes::all::OP_CHECKSIGVERIFY);
    let both = both.push_key(&keys[1]).push_opcode(opcodes::all::OP_CHECKSIG).into_script();
    let wpkh = ScriptBuf::new_p2wpkh(&keys[0].wpubkey_hash().unwrap());
    let taproot = ScriptBuf::new_p2tr(&Secp256k1::new(), keys[0].inner.x_only_public_key().0, None);
    vec![
        (ScriptBuf::new_p2pkh(&keys[0].pubkey_hash()), None, None),
        (wpkh.clone(), None, None),
        (wpkh.to_p2sh(), Some(wpkh), None),
        (taproot, None, None),
        (multisig.to_p2sh(), Some(multisig.clone()), None),
        (multisig.to_p2wsh(), None, Some(multisig.clone())),
        (multisig.to_p2wsh().to_p2sh(), Some(multisig.to_p2wsh()), Some(multisig)),
        (both.to_p2wsh(), None, Some(both)),
    ]
}

fn check_combinerawtransaction(pair: &mut Pair) {
    let secrets = [1, 2, 3].map(|byte| PrivateKey::new(SecretKey::from_slice(&[byte; 32]).unwrap(), Network::Regtest));
    let mut outputs = outputs_of(&secrets.map(|secret| secret.public_key(&Secp256k1::new())));
    // Bitcoin Core 32 drops signatures of taproot inputs.
    outputs.retain(|(script, ..)| pair.release < 32 || !script.is_p2tr());
    let coin = pair.ours.call("listunspent", json!([]))[0].clone();
    let address = |script| Address::from_script(script, Network::Regtest).unwrap().to_string();
    let paid: Vec<Value> = outputs.iter().map(|(script, ..)| json!({address(script): 1})).collect();
    let raw = pair.ours.call("createrawtransaction", json!([[{"txid": coin["txid"], "vout": coin["vout"]}], paid]));
    let signed = pair.ours.call("signrawtransactionwithwallet", json!([raw]));
    pair.check("sendrawtransaction", json!([signed["hex"], 0]));
    pair.mine(1, &json!(FOREIGN));

    let txid = pair.ours.call("decoderawtransaction", json!([signed["hex"]]))["txid"].clone();
    let inputs: Vec<Value> = (0..outputs.len()).map(|vout| json!({"txid": txid, "vout": vout})).collect();
    let told = |(vout, (script, redeem, witness)): (usize, &(ScriptBuf, Option<ScriptBuf>, Option<ScriptBuf>))| {
        let mut told = json!({"txid": txid, "vout": vout, "scriptPubKey": script.to_hex_string(), "amount": 1});
        for (key, script) in [("redeemScript", redeem), ("witnessScript", witness)] {
            if let Some(script) = script {
                told[key] = json!(script.to_hex_string());
            }
        }
        told
    };
    let told: Vec<Value> = outputs.iter().enumerate().map(told).collect();
    let mut texts = Vec::new();
    for amount in [1, 2] {
        let raw = pair.ours.call("createrawtransaction", json!([inputs, [{FOREIGN: amount}]]));
        texts.push(raw.as_str().unwrap().to_owned());
        for keys in [&[0][..], &[1], &[2], &[0, 1]] {
            let wifs: Vec<String> = keys.iter().map(|key| secrets[*key].to_wif()).collect();
            let signed = pair.ours.call("signrawtransactionwithkey", json!([raw, wifs, told]));
            texts.push(signed["hex"].as_str().unwrap().to_owned());
        }
    }
    let broken = |text: &str| {
        let mut transaction: Transaction = deserialize_hex(text).unwrap();
        for input in &mut transaction.input {
            let mut elements = input.witness.to_vec();
            if let Some(byte) = elements.iter_mut().find_map(|element| element.get_mut(10)) {
                *byte ^= 1;
            }
            input.witness = Witness::from_slice(&elements);
        }
        serialize_hex(&transaction)
    };
    texts.extend([broken(&texts[1]), broken(&texts[4])]);
    let fewer = pair.ours.call("createrawtransaction", json!([inputs[..2], [{FOREIGN: 1}]]));
    texts.push(fewer.as_str().unwrap().to_owned());
    for one in &texts {
        for other in &texts {
            pair.check("combinerawtransaction", json!([[one, other]]));
            pair.check("combinerawtransaction", json!([[one, other, texts[2], texts[6]]]));
        }
    }
    let complete = pair.ours.call("combinerawtransaction", json!([[texts[0], texts[2], texts[4]]]));
    let unknown = pair.ours.call("createrawtransaction", json!([[{"txid": "11".repeat(32), "vout": 0}], []]));
    let without = pair.ours.call("createrawtransaction", json!([[], [{FOREIGN: 1}]]));
    for list in [json!([]), json!([5]), json!([texts[0], "zz"]), json!([unknown]), json!([texts[1], unknown])] {
        pair.check("combinerawtransaction", json!([list]));
    }
    pair.check("combinerawtransaction", json!([[without]]));
    pair.check("combinerawtransaction", json!(["x"]));
    pair.check("sendrawtransaction", json!([complete, 0]));
    pair.check("combinerawtransaction", json!([[texts[0], texts[3], texts[1]]]));
    pair.mine(1, &json!(FOREIGN));
    pair.check("combinerawtransaction", json!([[texts[0]]]));
}

fn check_simulaterawtransaction(pair: &mut Pair) {
    let [address, _] = pair.both("getnewaddress", &json!([]));
    let coins = pair.ours.call("listunspent", json!([]));
    let coin = |at: usize| json!({"txid": coins[at]["txid"], "vout": coins[at]["vout"]});
    let mut make = |inputs: Value, outputs: Value| {
        let raw = pair.ours.call("createrawtransaction", json!([inputs, outputs]));
        let txid = pair.ours.call("decoderawtransaction", json!([raw]))["txid"].clone();
        (raw, txid)
    };
    let (first, txid) = make(json!([coin(0)]), json!([{address.as_str().unwrap(): 10}, {FOREIGN: 39.9}]));
    let (second, _) = make(json!([{"txid": txid, "vout": 0}, {"txid": txid, "vout": 1}]), json!([{FOREIGN: 49}]));
    let (rival, _) = make(json!([coin(1), coin(0)]), json!([{address.as_str().unwrap(): 1}]));
    let (unknown, _) = make(json!([{"txid": "11".repeat(32), "vout": 0}]), json!([]));
    let (without, _) = make(json!([]), json!([{address.as_str().unwrap(): 1}]));
    let signed = pair.ours.call("signrawtransactionwithwallet", json!([rival]));
    let lists = [
        json!([]),
        json!([first]),
        json!([first, second]),
        json!([second, first]),
        json!([second]),
        json!([first, rival]),
        json!([first, first]),
        json!([without]),
        json!([unknown]),
        json!([unknown, "zz"]),
        json!(["zz", unknown]),
        json!([5]),
        json!(5),
        Value::Null,
    ];
    for sent in [false, true] {
        for list in &lists {
            pair.check("simulaterawtransaction", json!([list]));
        }
        if !sent {
            pair.check("sendrawtransaction", json!([signed["hex"], 0]));
        }
    }
    // bitcoind ignores unknown options since release 30.
    let unknown = (pair.release < 30).then(|| json!({"x": 1}));
    let known = [json!({}), json!({"include_watchonly": 5}), json!({"include_watchonly": true})];
    for options in known.into_iter().chain(unknown) {
        pair.check("simulaterawtransaction", json!([[first], options]));
    }
    pair.check("simulaterawtransaction", json!({"rawtxs": [first], "include_watchonly": true}));
    pair.check("simulaterawtransaction", json!({"rawtxs": [], "options": {}, "include_watchonly": true}));
    pair.check("simulaterawtransaction", json!([[], true]));
    pair.mine(1, &json!(FOREIGN));
    pair.check("simulaterawtransaction", json!([[first]]));
    // A watch-only wallet counts its coins without an option.
    for client in [&mut pair.ours, &mut pair.theirs] {
        client.call("createwallet", json!(["watch", true, true]));
    }
    let [mut ours, mut theirs] = [&pair.ours, &pair.theirs].map(|client| client.wallet("watch"));
    let descriptor = ours.call("getdescriptorinfo", json!([format!("addr({FOREIGN})")]))["descriptor"].clone();
    let import = json!([[{"desc": descriptor, "timestamp": "now"}]]);
    for params in [json!([[without]]), json!([[first]]), json!([[first], {"include_watchonly": false}])] {
        let answers = [&mut ours, &mut theirs].map(|client| {
            client.call("importdescriptors", import.clone());
            told(client, "simulaterawtransaction", &params)
        });
        assert_eq!(answers[0], answers[1], "{params}");
    }
}

#[test]
fn settxfee_answers_as_bitcoind_and_holds_until_the_wallet_is_unloaded() {
    let Some(mut pair) = Pair::start(&["maxtxfee=0.01", "mintxfee=0.00002"]) else { return };
    if pair.release > 30 {
        return skip("settxfee is in no release after 30");
    }
    pair.fund(1);
    let amounts =
        json!([0, 0.00000999, 0.00001, 0.000015, 0.00002, 0.0101, 0.01, "0.001", -1, "x", 0.00000001, null, [], 1e9]);
    for amount in amounts.as_array().unwrap() {
        pair.check("settxfee", json!([amount]));
    }
    let paid = |pair: &mut Pair| pair.both("getwalletinfo", &json!([])).map(|info| info["paytxfee"].to_string());
    assert_eq!(paid(&mut pair), ["0.00100000"; 2]);
    for target in [Value::Null, json!(5)] {
        let pay = json!([FOREIGN, 1, "", "", false, null, target, null, null, null, true]);
        let payments = pair.both("sendtoaddress", &pay);
        assert_eq!(payments[0]["fee_reason"], payments[1]["fee_reason"], "{target}");
        assert_eq!(pair.fees(&payments.map(|payment| payment["txid"].clone())), 1, "{target}");
    }
    pair.check("sendtoaddress", json!([FOREIGN, 1, "", "", false, null, null, null, null, 8000]));
    for client in [&mut pair.ours, &mut pair.theirs] {
        client.call("unloadwallet", json!(["w"]));
        client.call("loadwallet", json!(["w"]));
    }
    assert_eq!(paid(&mut pair), ["0.00000000"; 2]);
}

#[test]
fn payment_settings_work_as_in_bitcoind() {
    let settings =
        ["addresstype=p2sh-segwit", "changetype=legacy", "walletrbf=false", "fallbackfee=0.00003", "keypool=7"];
    let Some(mut pair) = Pair::start(&[&settings[..], &["spendzeroconfchange=false"]].concat()) else { return };
    pair.fund(3);
    // The last check needs two coins.
    let coins = pair.ours.call("listunspent", json!([]));
    let kept = [0, 1].map(|at| json!({"txid": coins[at]["txid"], "vout": coins[at]["vout"]}));
    pair.both("lockunspent", &json!([false, kept]));
    for kind in [Value::Null, json!("bech32m")] {
        pair.check("getnewaddress", json!(["", kind]));
        pair.check("getrawchangeaddress", json!([kind]));
    }
    let payments = pair.both("sendtoaddress", &json!([FOREIGN, 1]));
    assert_eq!(pair.fees(&payments), 1);
    let told = [&mut pair.ours, &mut pair.theirs].into_iter().zip(&payments).map(|(client, txid)| {
        let payment = client.call("gettransaction", json!([txid, true, true]));
        let mut kinds: Vec<String> = payment["decoded"]["vout"].as_array().unwrap().iter().map(kind_of).collect();
        kinds.sort();
        (payment["bip125-replaceable"].clone(), kinds)
    });
    let told: Vec<_> = told.collect();
    assert_eq!(told[0], told[1]);
    pair.check("sendtoaddress", json!([FOREIGN, 1]));
    let sizes = pair.both("getwalletinfo", &json!([])).map(|info| info["keypoolsize"].clone());
    assert_eq!(sizes[0], sizes[1]);
    pair.both("lockunspent", &json!([true]));
    check_trust(&mut pair);
}

fn kind_of(output: &Value) -> String {
    output["scriptPubKey"]["type"].to_string()
}
