//! Recorded cases of our own making, which every clone has: spends with the verdict of Core's interpreter, and signature hashes of
//! the `bitcoin` crate.
//!
//! `OUTRIGGER_FREEZE=1 cargo test -p outrigger-script --lib -- tests::recorded` writes them anew: random cases, judged by those
//! two. An error's name is our engine's at that time, where Core's library says only that the script fails.

use std::path::{Path, PathBuf};

use bitcoin::consensus::encode::{deserialize_hex, serialize_hex};
use bitcoin::hashes::Hash;
use bitcoin::hex::DisplayHex;
use bitcoin::sighash::{Prevouts, SighashCache, TapSighashType};
use bitcoin::{Amount, EcdsaSighashType, ScriptBuf, Transaction, TxOut};
use serde_json::{Value, json};

use super::differential::{reference, spends::random_spend};
use super::random::Random;
use super::sighash_cross::{random_script, random_tx};
use super::{bytes, text};
use crate::{Flags, TxContext, verify_input};

const SPENDS: u64 = 160;

const TRANSACTIONS: u64 = 24;

const FREEZE: &str = "OUTRIGGER_FREEZE";

/// The cases of a file, made anew where that is asked for.
fn cases(file: &str, make: impl Fn() -> Vec<Value>) -> Vec<Value> {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tests/data").join(file);
    if std::env::var_os(FREEZE).is_some() {
        let rows: Vec<String> = make().iter().map(Value::to_string).collect();
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, format!("[\n{}\n]\n", rows.join(",\n"))).unwrap();
    }
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap()
}

fn written(outputs: &[TxOut]) -> Vec<Value> {
    outputs.iter().map(|output| json!([output.value.to_sat(), output.script_pubkey.to_hex_string()])).collect()
}

fn outputs(value: &Value) -> Vec<TxOut> {
    let output = |output: &Value| TxOut {
        value: Amount::from_sat(output[0].as_u64().unwrap()),
        script_pubkey: ScriptBuf::from_bytes(bytes(&output[1])),
    };
    value.as_array().unwrap().iter().map(output).collect()
}

fn verdict(tx: &Transaction, spent: &[TxOut], input: usize, flags: Flags) -> &'static str {
    verify_input(&TxContext::new(tx, spent), input, flags).map_or_else(|error| error.name(), |()| "OK")
}

fn make_spends() -> Vec<Value> {
    let make = |case| {
        // Far from the cases that other tests play.
        let (tx, spent, input, flags) = random_spend(case + (1 << 40));
        let verdict = verdict(&tx, &spent, input, flags);
        assert_eq!(verdict == "OK", reference(&tx, &spent, input, flags), "case {case}");
        json!([serialize_hex(&tx), written(&spent), input, flags.to_string(), verdict])
    };
    (0..SPENDS).map(make).collect()
}

#[test]
fn recorded_spends_have_their_verdicts() {
    let cases = cases("spends.json", make_spends);
    let mut accepted = 0;
    for case in &cases {
        let (tx, spent): (Transaction, _) = (deserialize_hex(text(&case[0])).unwrap(), outputs(&case[1]));
        let (input, flags) = (case[2].as_u64().unwrap() as usize, text(&case[3]).parse().unwrap());
        assert_eq!(verdict(&tx, &spent, input, flags), text(&case[4]), "{case}");
        accepted += u64::from(case[4] == "OK");
    }
    assert!(cases.len() as u64 == SPENDS && accepted > SPENDS / 4 && accepted < SPENDS * 3 / 4, "{accepted}");
}

fn make_sighashes() -> Vec<Value> {
    let make = |case| {
        let mut random = Random::new(case + (1 << 41));
        let (tx, spent) = random_tx(&mut random);
        let input = random.below(spent.len());
        let code = random_script(&mut random, 60);
        let mut cache = SighashCache::new(&tx);
        let mut hashes = Vec::new();
        for hash_type in [1_u8, 2, 3, 0x81, 0x82, 0x83] {
            let legacy = cache.legacy_signature_hash(input, &code, hash_type.into()).unwrap();
            let kind = EcdsaSighashType::from_consensus(hash_type.into());
            let segwit = cache.p2wsh_signature_hash(input, &code, spent[input].value, kind).unwrap();
            let kind = TapSighashType::from_consensus_u8(hash_type).unwrap();
            let taproot = cache.taproot_signature_hash(input, &Prevouts::All(&spent), None, None, kind).ok();
            let taproot = taproot.map(|hash| hash.as_byte_array().to_lower_hex_string());
            let (legacy, segwit) = (legacy.as_byte_array(), segwit.as_byte_array());
            hashes.push(json!([hash_type, legacy.to_lower_hex_string(), segwit.to_lower_hex_string(), taproot]));
        }
        json!([serialize_hex(&tx), written(&spent), input, code.to_hex_string(), hashes])
    };
    (0..TRANSACTIONS).map(make).collect()
}

#[test]
fn recorded_signature_hashes_are_reproduced() {
    let cases = cases("sighashes.json", make_sighashes);
    for case in &cases {
        let (tx, spent): (Transaction, _) = (deserialize_hex(text(&case[0])).unwrap(), outputs(&case[1]));
        let (input, code) = (case[2].as_u64().unwrap() as usize, ScriptBuf::from_bytes(bytes(&case[3])));
        let context = TxContext::new(&tx, spent.as_slice());
        for hashes in case[4].as_array().unwrap() {
            let hash_type = hashes[0].as_u64().unwrap() as u8;
            let legacy = context.legacy_sighash(input, &code, hash_type.into()).unwrap();
            let segwit = context.segwit_v0_sighash(input, &code, spent[input].value, hash_type.into()).unwrap();
            let taproot = context.taproot_sighash(input, hash_type, None, None).ok();
            let found = [
                Some(legacy.as_byte_array().to_vec()),
                Some(segwit.as_byte_array().to_vec()),
                taproot.map(|hash| hash.as_byte_array().to_vec()),
            ];
            for (position, found) in found.into_iter().enumerate() {
                let expected = Some(&hashes[position + 1]).filter(|hash| !hash.is_null()).map(bytes);
                assert_eq!(found, expected, "{hash_type}, {position}: {case}");
            }
        }
    }
    assert_eq!(cases.len() as u64, TRANSACTIONS);
}
