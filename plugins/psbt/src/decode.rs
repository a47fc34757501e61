//! `decodepsbt`: a PSBT as JSON.

use std::collections::{BTreeMap, BTreeSet};

use bitcoin::{Amount, Network, Script, SignedAmount, TxOut};
use outrigger_sdk::params::encode_hex;
use outrigger_sdk::psbt::{
    Bytes, ControlBlock, Fields, Input, Origin, Output, PREIMAGES, Psbt, TaprootOrigin, Xpub, proprietary,
};
use outrigger_sdk::sign::Sighash;
use outrigger_sdk::standard::{asm, asm_sighash, classify, script_json, transaction_json};
use outrigger_sdk::{RpcError, amount};
use serde_json::{Map, Value, json};

use crate::{Context, read_psbt};

pub fn decode_psbt(context: &Context<'_>) -> Result<Value, RpcError> {
    let psbt = read_psbt(context.params.get(0))?;
    let network = context.network()?;
    let mut object = Map::new();
    let mut put = |key: &str, value: Value| object.insert(key.to_owned(), value);
    put("tx", Value::Object(transaction_json(&psbt.tx, network)));
    let xpubs = psbt.xpubs.iter().flat_map(|(origin, xpubs)| xpubs.iter().map(move |xpub| (origin, xpub)));
    let xpub = |(origin, xpub): (&Origin, &Xpub)| {
        json!({
            "xpub": bitcoin::base58::encode_check(&xpub.0),
            "master_fingerprint": encode_hex(&origin.fingerprint),
            "path": path_text(origin),
        })
    };
    put("global_xpubs", xpubs.map(xpub).collect());
    put("psbt_version", json!(0));
    put("proprietary", proprietary_json(&psbt.proprietary));
    put("unknown", hex_json(&psbt.unknown));
    put("inputs", psbt.inputs.iter().map(|input| Value::Object(input_json(input, network))).collect());
    put("outputs", psbt.outputs.iter().map(|output| Value::Object(output_json(output))).collect());
    if let Some(fee) = fee(&psbt) {
        put("fee", amount::to_json(SignedAmount::from_sat(fee)));
    }
    Ok(Value::Object(object))
}

/// The sum of amounts; none if an amount or the sum exceeds the money supply.
pub fn total(mut amounts: impl Iterator<Item = Amount>) -> Option<i64> {
    let most = Amount::MAX_MONEY.to_sat();
    let sum = amounts.try_fold(0, |sum: u64, amount| {
        let amount = amount.to_sat();
        sum.checked_add(amount).filter(|sum| amount <= most && *sum <= most)
    })?;
    i64::try_from(sum).ok()
}

/// The inputs less the outputs, in satoshi; none if an amount is unknown or exceeds the money supply.
fn fee(psbt: &Psbt) -> Option<i64> {
    let spent = psbt.spent().into_iter().collect::<Option<Vec<TxOut>>>()?;
    let value = |output: &TxOut| output.value;
    Some(total(spent.iter().map(value))? - total(psbt.tx.output.iter().map(value))?)
}

fn input_json(input: &Input, network: Network) -> Map<String, Value> {
    let mut object = Map::new();
    let mut put = |key: &str, value: Value| {
        // bitcoind shows an unknown hash type as an empty text.
        if !is_empty(&value) || key == "sighash" {
            object.insert(key.to_owned(), value);
        }
    };
    if let Some(output) = &input.witness_utxo {
        let amount = SignedAmount::from_sat(output.value.to_sat().cast_signed());
        let script = script_json(&output.script_pubkey, network);
        put("witness_utxo", json!({"amount": amount::to_json(amount), "scriptPubKey": script}));
    }
    if let Some(transaction) = &input.non_witness_utxo {
        put("non_witness_utxo", Value::Object(transaction_json(transaction, network)));
    }
    put("partial_signatures", hex_json(input.partial_sigs.values().map(|(key, signature)| (key, signature))));
    if let Some(sighash_type) = input.sighash_type {
        put("sighash", json!(sighash_name(sighash_type)));
    }
    put("redeem_script", inner_script_json(&input.redeem_script));
    put("witness_script", inner_script_json(&input.witness_script));
    put("bip32_derivs", origins_json(&input.origins));
    if !input.final_script_sig.is_empty() {
        let hex = encode_hex(input.final_script_sig.as_bytes());
        put("final_scriptSig", json!({"asm": asm_sighash(&input.final_script_sig), "hex": hex}));
    }
    put("final_scriptwitness", input.final_witness.iter().map(encode_hex).collect());
    for ((_, _, name), preimages) in PREIMAGES.iter().zip(&input.preimages) {
        put(&format!("{name}_preimages"), hex_json(preimages));
    }
    put("taproot_key_path_sig", json!(encode_hex(&input.tap_key_sig)));
    let script_sig = |((key, leaf), signature): (&([u8; 32], [u8; 32]), &Bytes)| json!({"pubkey": encode_hex(key), "leaf_hash": encode_hex(leaf), "sig": encode_hex(signature)});
    put("taproot_script_path_sigs", input.tap_script_sigs.iter().map(script_sig).collect());
    let leaf = |((script, version), control_blocks): (&(Bytes, u8), &BTreeSet<ControlBlock>)| {
        let control_blocks: Vec<String> = control_blocks.iter().map(|block| encode_hex(&block.0)).collect();
        json!({"script": encode_hex(script), "leaf_ver": version, "control_blocks": control_blocks})
    };
    put("taproot_scripts", input.tap_scripts.iter().map(leaf).collect());
    put("taproot_bip32_derivs", tap_origins_json(&input.tap_origins));
    put("taproot_internal_key", json!(hex_or_empty(input.tap_internal_key)));
    put("taproot_merkle_root", json!(hex_or_empty(input.tap_merkle_root)));
    put("proprietary", proprietary_json(&input.proprietary));
    put("unknown", hex_json(&input.unknown));
    object
}

fn output_json(output: &Output) -> Map<String, Value> {
    let mut object = Map::new();
    let mut put = |key: &str, value: Value| {
        if !is_empty(&value) {
            object.insert(key.to_owned(), value);
        }
    };
    put("redeem_script", inner_script_json(&output.redeem_script));
    put("witness_script", inner_script_json(&output.witness_script));
    put("bip32_derivs", origins_json(&output.origins));
    put("taproot_internal_key", json!(hex_or_empty(output.tap_internal_key)));
    let leaf = |(depth, version, script): &(u8, u8, Bytes)| json!({"depth": depth, "leaf_ver": version, "script": encode_hex(script)});
    put("taproot_tree", output.tap_tree.iter().map(leaf).collect());
    put("taproot_bip32_derivs", tap_origins_json(&output.tap_origins));
    put("proprietary", proprietary_json(&output.proprietary));
    put("unknown", hex_json(&output.unknown));
    object
}

/// Whether bitcoind omits a value from an input or output.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::Array(values) => values.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => value.is_null(),
    }
}

/// The name of a hash type by its lowest byte; empty for an unknown type.
fn sighash_name(sighash_type: i32) -> &'static str {
    let [byte, ..] = sighash_type.to_le_bytes();
    Sighash::from_ecdsa_byte(byte).map_or("", Sighash::name)
}

fn inner_script_json(script: &Script) -> Value {
    match script.is_empty() {
        true => Value::Null,
        false => {
            json!({"asm": asm(script), "hex": encode_hex(script.as_bytes()), "type": classify(script).name()})
        }
    }
}

fn path_text(origin: &Origin) -> String {
    const HARDENED: u32 = 1 << 31;
    origin.path.iter().fold("m".to_owned(), |text, step| {
        let mark = if *step >= HARDENED { "h" } else { "" };
        format!("{text}/{}{mark}", step & !HARDENED)
    })
}

fn origins_json(origins: &BTreeMap<Bytes, Origin>) -> Value {
    let origin = |(key, origin): (&Bytes, &Origin)| {
        let fingerprint = encode_hex(&origin.fingerprint);
        json!({"pubkey": encode_hex(key), "master_fingerprint": fingerprint, "path": path_text(origin)})
    };
    origins.iter().map(origin).collect()
}

fn tap_origins_json(origins: &BTreeMap<[u8; 32], TaprootOrigin>) -> Value {
    let origin = |(key, (leaves, origin)): (&[u8; 32], &TaprootOrigin)| {
        json!({
            "pubkey": encode_hex(key),
            "master_fingerprint": encode_hex(&origin.fingerprint),
            "path": path_text(origin),
            "leaf_hashes": leaves.iter().map(|leaf| encode_hex(leaf)).collect::<Vec<_>>(),
        })
    };
    origins.iter().map(origin).collect()
}

fn hex_or_empty(bytes: Option<[u8; 32]>) -> String {
    bytes.map_or_else(String::new, |bytes| encode_hex(&bytes))
}

fn hex_json<'a>(fields: impl IntoIterator<Item = (&'a Bytes, &'a Bytes)>) -> Value {
    fields.into_iter().map(|(key, value)| (encode_hex(key), json!(encode_hex(value)))).collect::<Map<_, _>>().into()
}

fn proprietary_json(fields: &Fields) -> Value {
    let field = |(key, value): (&Bytes, &Bytes)| {
        let (identifier, subtype) = proprietary(key).unwrap_or_default();
        json!({
            "identifier": encode_hex(identifier),
            "subtype": subtype,
            "key": encode_hex(key),
            "value": encode_hex(value),
        })
    };
    fields.iter().map(field).collect()
}
