//! `decodepsbt`: a PSBT as JSON.

use std::collections::{BTreeMap, BTreeSet};

use bitcoin::{Amount, Network, Script, SignedAmount, TxIn, TxOut};
use outrigger_kit::psbt::{
    Bytes, ControlBlock, Fields, Input, MuSig2Key, MuSig2Signer, Origin, Output, PREIMAGES, Psbt, TaprootOrigin,
    VersionTwo, Xpub, proprietary,
};
use outrigger_sdk::params::encode_hex;
use outrigger_sdk::sign::Sighash;
use outrigger_sdk::standard::{asm, asm_sighash, classify, script_json, transaction_json};
use outrigger_sdk::{Call, RpcError, amount, methods};
use serde_json::{Map, Value, json};

use crate::{PsbtPlugin, read_psbt};

#[methods(category = "Rawtransactions", needs_tip = false)]
impl PsbtPlugin {
    /// Decodes a PSBT.
    ///
    /// * `psbt` - The PSBT in base64.
    ///
    /// # Result
    /// {"tx": {...}, "global_xpubs": [...], "psbt_version": n, "proprietary": [...], "unknown": {...}, "inputs":
    /// [...], "outputs": [...], "fee": n}    (json object) fee is present if the amounts of all inputs are known.
    ///
    /// # Example
    /// "cHNidP8B..."
    #[method]
    fn decodepsbt(call: &Call<'_>, psbt: &str) -> Result<Value, RpcError> {
        let psbt = read_psbt(call, psbt)?;
        let network = call.network()?;
        let mut object = Map::new();
        let mut put = |key: &str, value: Value| object.insert(key.to_owned(), value);
        if psbt.v2.is_none() {
            put("tx", Value::Object(transaction_json(&psbt.tx, network, None)));
        }
        let xpubs = psbt.xpubs.iter().flat_map(|(origin, xpubs)| xpubs.iter().map(move |xpub| (origin, xpub)));
        let xpub = |(origin, xpub): (&Origin, &Xpub)| {
            json!({
                "xpub": bitcoin::base58::encode_check(&xpub.0),
                "master_fingerprint": encode_hex(&origin.fingerprint),
                "path": path_text(origin),
            })
        };
        put("global_xpubs", xpubs.map(xpub).collect());
        if let Some(v2) = &psbt.v2 {
            put("tx_version", json!(psbt.tx.version.0.cast_unsigned()));
            if let Some(lock_time) = v2.fallback_lock_time {
                put("fallback_locktime", json!(lock_time));
            }
            put("input_count", json!(psbt.inputs.len()));
            put("output_count", json!(psbt.outputs.len()));
            if let Some(flags) = v2.modifiable {
                put("inputs_modifiable", json!(flags & VersionTwo::INPUTS_MODIFIABLE != 0));
                put("outputs_modifiable", json!(flags & VersionTwo::OUTPUTS_MODIFIABLE != 0));
                put("has_sighash_single", json!(flags & VersionTwo::HAS_SIGHASH_SINGLE != 0));
            }
        }
        put("psbt_version", json!(psbt.version()));
        put("proprietary", proprietary_json(&psbt.proprietary));
        put("unknown", hex_json(&psbt.unknown));
        let in_map = psbt.v2.is_some();
        let input = |(spends, input)| Value::Object(input_json(input, in_map.then_some(spends), network));
        put("inputs", psbt.each_input().map(input).collect());
        let output = |(paid, output)| Value::Object(output_json(output, in_map.then_some(paid), network));
        put("outputs", psbt.tx.output.iter().zip(&psbt.outputs).map(output).collect());
        if let Some(fee) = fee(&psbt) {
            put("fee", amount::to_json(SignedAmount::from_sat(fee)));
        }
        Ok(Value::Object(object))
    }
}

/// The sum of amounts in satoshi; `None` if an amount or the sum exceeds the money supply.
pub fn total(mut amounts: impl Iterator<Item = Amount>) -> Option<i64> {
    let most = Amount::MAX_MONEY.to_sat();
    let sum = amounts.try_fold(0, |sum: u64, amount| {
        let amount = amount.to_sat();
        sum.checked_add(amount).filter(|sum| amount <= most && *sum <= most)
    })?;
    i64::try_from(sum).ok()
}

/// The inputs minus the outputs, in satoshi; `None` if an amount is unknown, or if an amount or a sum exceeds the money supply.
fn fee(psbt: &Psbt) -> Option<i64> {
    let spent = psbt.spent().into_iter().collect::<Option<Vec<TxOut>>>()?;
    let value = |output: &TxOut| output.value;
    Some(total(spent.iter().map(value))? - total(psbt.tx.output.iter().map(value))?)
}

/// The members for an output's amount and script, with these names.
fn output_members(output: &TxOut, network: Network, names: [&str; 2]) -> [(String, Value); 2] {
    let [amount, script] = names.map(str::to_owned);
    let value = amount::to_json(SignedAmount::from_sat(output.value.to_sat().cast_signed()));
    [(amount, value), (script, script_json(&output.script_pubkey, network).into())]
}

/// The fields of an input. `spends` is the transaction's input, which only version 2 shows here.
fn input_json(input: &Input, spends: Option<&TxIn>, network: Network) -> Map<String, Value> {
    let mut object = Map::new();
    let mut put = |key: &str, value: Value| {
        // bitcoind shows an unknown sighash type as an empty string.
        if !is_empty(&value) || key == "sighash" {
            object.insert(key.to_owned(), value);
        }
    };
    if let Some(output) = &input.witness_utxo {
        put("witness_utxo", output_members(output, network, ["amount", "scriptPubKey"]).into_iter().collect());
    }
    if let Some(transaction) = &input.non_witness_utxo {
        put("non_witness_utxo", Value::Object(transaction_json(transaction, network, None)));
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
    for ((_, name), preimages) in PREIMAGES.iter().zip(&input.preimages) {
        put(&format!("{name}_preimages"), hex_json(preimages));
    }
    if let Some(spends) = spends {
        put("previous_txid", json!(spends.previous_output.txid));
        put("previous_vout", json!(spends.previous_output.vout));
        put("sequence", json!(input.has_sequence.then_some(spends.sequence.0)));
        put("time_locktime", json!(input.time_lock));
        put("height_locktime", json!(input.height_lock));
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
    put("musig2_participant_pubkeys", participants_json(&input.musig2_participants));
    put("musig2_pubnonces", signers_json(&input.musig2_nonces, "pubnonce"));
    put("musig2_partial_sigs", signers_json(&input.musig2_sigs, "partial_sig"));
    put("proprietary", proprietary_json(&input.proprietary));
    put("unknown", hex_json(&input.unknown));
    object
}

/// The fields of an output. `paid` is the transaction's output, which only version 2 shows here.
fn output_json(output: &Output, paid: Option<&TxOut>, network: Network) -> Map<String, Value> {
    let mut object = Map::new();
    let mut put = |key: &str, value: Value| {
        if !is_empty(&value) {
            object.insert(key.to_owned(), value);
        }
    };
    put("redeem_script", inner_script_json(&output.redeem_script));
    put("witness_script", inner_script_json(&output.witness_script));
    put("bip32_derivs", origins_json(&output.origins));
    for (name, value) in paid.into_iter().flat_map(|paid| output_members(paid, network, ["amount", "script"])) {
        put(&name, value);
    }
    put("taproot_internal_key", json!(hex_or_empty(output.tap_internal_key)));
    let leaf = |(depth, version, script): &(u8, u8, Bytes)| json!({"depth": depth, "leaf_ver": version, "script": encode_hex(script)});
    put("taproot_tree", output.tap_tree.iter().map(leaf).collect());
    put("taproot_bip32_derivs", tap_origins_json(&output.tap_origins));
    put("musig2_participant_pubkeys", participants_json(&output.musig2_participants));
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

/// The name of the sighash type in the lowest byte; empty for an unknown type.
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

fn participants_json(participants: &BTreeMap<MuSig2Key, Vec<MuSig2Key>>) -> Value {
    let entry = |(aggregate, keys): (&MuSig2Key, &Vec<MuSig2Key>)| {
        let keys: Vec<String> = keys.iter().map(|key| encode_hex(key)).collect();
        json!({"aggregate_pubkey": encode_hex(aggregate), "participant_pubkeys": keys})
    };
    participants.iter().map(entry).collect()
}

/// MuSig2 values with their signers. `name` is the value's key.
fn signers_json<const N: usize>(values: &BTreeMap<MuSig2Signer, [u8; N]>, name: &str) -> Value {
    let entry = |((aggregate, leaf, participant), value): (&MuSig2Signer, &[u8; N])| {
        let mut object = Map::new();
        object.insert("participant_pubkey".into(), json!(encode_hex(participant)));
        object.insert("aggregate_pubkey".into(), json!(encode_hex(aggregate)));
        object.extend(leaf.map(|leaf| ("leaf_hash".to_owned(), json!(encode_hex(&leaf)))));
        object.insert(name.to_owned(), json!(encode_hex(value)));
        Value::Object(object)
    };
    values.iter().map(entry).collect()
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
