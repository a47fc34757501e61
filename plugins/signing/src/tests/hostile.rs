//! Hostile requests: oversized, false or meaningless. The plugin answers each, in time at most linear in the size of the
//! request.

use bitcoin::opcodes::all::{OP_CHECKMULTISIG, OP_CHECKSIG, OP_IF, OP_PUSHDATA4};
use bitcoin::{ScriptBuf, Transaction, TxOut, Witness};
use outrigger_sdk::standard::transaction_from_hex;
use outrigger_sdk::{RpcError, RpcErrorCode};
use serde_json::{Value, json};

use super::{WIF, WPKH, hex, outpoint, pays, sign, spend, start};

const KEY: &str = "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";
const NOT_FOUND: &str = "Input not found or already spent";
const TOO_LARGE: &str = "The transaction is too large to sign";

fn prevtx(vout: u32, script: &str) -> Value {
    json!({"txid": outpoint(vout).txid.to_string(), "vout": vout, "scriptPubKey": script, "amount": "0.1"})
}

fn signed(answer: &Value) -> Transaction {
    transaction_from_hex(answer["hex"].as_str().unwrap()).unwrap()
}

#[test]
fn signing_a_hundred_thousand_inputs_reports_each_unknown_input() {
    const INPUTS: u32 = 100_000;
    /// Every 500th input has a known output.
    const KNOWN_INTERVAL: usize = 500;
    let (_host, plugin) = start();
    let tx = spend(&(0..INPUTS).map(outpoint).collect::<Vec<_>>());
    let prevtxs: Vec<Value> = (0..INPUTS).step_by(KNOWN_INTERVAL).map(|vout| prevtx(vout, WPKH)).collect();
    let answer = sign(&plugin, &tx, json!(prevtxs)).unwrap();
    let errors = answer["errors"].as_array().unwrap();
    assert_eq!(errors.len(), INPUTS as usize - prevtxs.len());
    assert!(errors.iter().all(|error| error["error"] == NOT_FOUND));
    for (index, input) in signed(&answer).input.iter().enumerate() {
        assert_eq!(input.witness.len(), if index % KNOWN_INTERVAL == 0 { 2 } else { 0 }, "{index}");
    }
}

#[test]
fn signing_drops_four_megabytes_of_invalid_scripts() {
    const SIZE: usize = 4_000_000;
    let (_host, plugin) = start();
    let mut tx = spend(&[outpoint(0), outpoint(1)]);
    // Half of the bytes are in a scriptSig, the other half in a witness. Neither verifies.
    tx.input[0].script_sig = ScriptBuf::from_bytes(vec![OP_CHECKSIG.to_u8(); SIZE / 2]);
    tx.input[1].witness = Witness::from_slice(&vec![vec![0; 500]; SIZE / 2 / 500]);
    let answer = sign(&plugin, &tx, json!([prevtx(0, WPKH), prevtx(1, WPKH)])).unwrap();
    assert_eq!(answer["complete"], true);
    assert!(signed(&answer).total_size() < 1_000);
    // An output of the same size is allowed.
    let mut tx = spend(&[outpoint(0)]);
    tx.output.push(TxOut { script_pubkey: ScriptBuf::from_bytes(vec![0; SIZE]), ..pays(0) });
    assert_eq!(sign(&plugin, &tx, json!([prevtx(0, WPKH)])).unwrap()["complete"], true);
}

#[test]
fn signing_an_outpoint_that_is_spent_twice_signs_twice() {
    let (_host, plugin) = start();
    let tx = spend(&[outpoint(0), outpoint(0), outpoint(1), outpoint(0)]);
    let answer = sign(&plugin, &tx, json!([prevtx(0, WPKH)])).unwrap();
    let signed = signed(&answer);
    let signatures: Vec<usize> = signed.input.iter().map(|input| input.witness.len()).collect();
    assert_eq!(signatures, [2, 2, 0, 2]);
    // The two inputs have the same signature hash (BIP143).
    assert_eq!(signed.input[0].witness, signed.input[1].witness);
    assert_eq!(answer["errors"].as_array().unwrap().len(), 1);
}

#[test]
fn signing_does_not_copy_one_large_script_for_each_input() {
    let (_host, plugin) = start();
    let large = |size: usize| "51".repeat(size);
    let too_large = Err(RpcError::new(RpcErrorCode(-8), TOO_LARGE));
    // 7,000 inputs spend a script of 10,000 bytes.
    let tx = spend(&vec![outpoint(0); 7_000]);
    assert_eq!(sign(&plugin, &tx, json!([prevtx(0, &large(10_000))])), too_large);
    // 4,000 inputs have a witness script of 10,000 bytes.
    let script = ScriptBuf::from_hex(&large(10_000)).unwrap();
    let mut element = prevtx(0, &ScriptBuf::new_p2wsh(&script.wscript_hash()).to_hex_string());
    element["witnessScript"] = json!(large(10_000));
    let tx = spend(&vec![outpoint(0); 4_000]);
    assert_eq!(sign(&plugin, &tx, json!([element])), too_large);
    // 40 inputs are within the limit.
    let tx = spend(&vec![outpoint(0); 40]);
    assert_eq!(sign(&plugin, &tx, json!([element])).unwrap()["complete"], false);
}

/// Runs `work` on a thread with the stack size of the host's call threads, 8 MiB.
fn on_a_call_thread(work: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(8 << 20).spawn_scoped(scope, work).unwrap();
        thread.join().unwrap();
    });
}

fn absurd_scripts() -> Vec<Vec<u8>> {
    let key = ScriptBuf::from_hex(KEY).unwrap().into_bytes();
    let push_key = [&[33], key.as_slice()].concat();
    let multisig = |required: u8, keys: usize, count: u8| {
        [vec![required], push_key.repeat(keys), vec![count, OP_CHECKMULTISIG.to_u8()]].concat()
    };
    // and_v(v:pk(K),and_v(v:pk(K),...)): a miniscript with one level per key.
    let nested = [[push_key.clone(), vec![0xad]].concat().repeat(90), push_key.clone(), vec![0xac]].concat();
    vec![
        vec![OP_IF.to_u8(); 10_000],
        [0x63, 0x67].repeat(4_999),
        vec![OP_CHECKSIG.to_u8(); 10_001],
        vec![OP_PUSHDATA4.to_u8(), 0xff, 0xff, 0xff, 0xff],
        vec![0x4d, 0xff],
        multisig(0x00, 0, 0x00),
        multisig(0x51, 3, 0x60),
        multisig(0x60, 1, 0x51),
        multisig(0x53, 20, 0x60),
        [vec![0x01, 20], push_key.repeat(20), vec![0x01, 20, OP_CHECKMULTISIG.to_u8()]].concat(),
        nested,
        [vec![0x52; 1_000], vec![0x93; 999], vec![0x01, 0x7f, 0x9c]].concat(),
        // Every byte, including pushes beyond the end and undefined opcodes.
        (0..=255).collect(),
        (0..=255).rev().collect(),
        [vec![0xa9, 20], vec![1; 20], vec![0x87]].concat(),
        [vec![0x00, 32], vec![1; 32]].concat(),
        [vec![0x51, 32], vec![1; 32]].concat(),
        [vec![0x60, 40], vec![1; 40]].concat(),
    ]
}

#[test]
fn signing_absurd_scripts_answers_bare_and_behind_hashes() {
    let (_host, plugin) = start();
    on_a_call_thread(|| {
        for script in absurd_scripts() {
            let script = ScriptBuf::from_bytes(script);
            let program = ScriptBuf::new_p2wsh(&script.wscript_hash());
            let hash = ScriptBuf::new_p2sh(&script.script_hash());
            let nested = ScriptBuf::new_p2sh(&program.script_hash());
            for (vout, output) in (0..).zip([&script, &hash, &program, &nested]) {
                let mut element = prevtx(vout, &output.to_hex_string());
                if vout > 0 {
                    element["redeemScript"] = json!(script.to_hex_string());
                } else if script.is_p2sh() || script.is_p2wsh() {
                    // The request lacks the script of this script hash.
                    continue;
                }
                let mut tx = spend(&[outpoint(vout)]);
                for script_sig in [ScriptBuf::new(), script.clone()] {
                    tx.input[0].script_sig = script_sig;
                    let answer = sign(&plugin, &tx, json!([element])).unwrap();
                    // Signing the result again does not change it.
                    let again = sign(&plugin, &signed(&answer), json!([element])).unwrap();
                    assert_eq!(again, answer, "{output} {script}");
                }
            }
        }
    });
}

#[test]
fn signrawtransactionwithkey_neither_answers_nor_logs_a_key() {
    let (host, plugin) = start();
    let tx = hex(&spend(&[outpoint(0)]));
    let invalid = WIF.replace('J', "K");
    for params in [
        json!([tx, [WIF]]),
        json!([tx, [invalid]]),
        json!([tx, [WIF, 5]]),
        json!([WIF, [WIF]]),
        json!([tx, [WIF], [{"txid": 1}]]),
        json!([tx, [WIF], [], "x"]),
        json!([tx, [WIF], [prevtx(0, "51")]]),
    ] {
        let answer = plugin.call("signrawtransactionwithkey", params);
        let text = format!("{answer:?}");
        assert!(!text.contains(WIF) && !text.contains(&invalid), "{text}");
    }
    assert_eq!(host.log.lines(), []);
}
