//! `decodepsbt`: a PSBT as JSON.

use std::collections::{BTreeMap, BTreeSet};

use bitcoin::{Amount, Network, Script, SignedAmount, TxIn, TxOut};
use outrigger_kit::psbt::{
    Bytes, ControlBlock, Fields, Input, MuSig2Key, MuSig2Signer, Origin, Output, Psbt, TaprootOrigin, VersionTwo, Xpub,
    proprietary,
};
use outrigger_kit::without_nulls;
use outrigger_sdk::params::encode_hex;
use outrigger_sdk::sign::Sighash;
use outrigger_sdk::standard::{asm, asm_sighash, classify, script_json, transaction_json};
use outrigger_sdk::{Call, RpcError, amount, methods};
use serde_json::{Value, json};

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
    #[method]
    fn decodepsbt(call: &Call<'_>, psbt: &str) -> Result<Value, RpcError> {
        let psbt = read_psbt(call, psbt)?;
        let network = call.network()?;
        let xpubs = psbt.xpubs.iter().flat_map(|(origin, xpubs)| xpubs.iter().map(move |xpub| (origin, xpub)));
        let xpub = |(origin, xpub): (&Origin, &Xpub)| {
            json!({
                "xpub": bitcoin::base58::encode_check(&xpub.0),
                "master_fingerprint": encode_hex(&origin.fingerprint),
                "path": path_text(origin),
            })
        };
        let v2 = psbt.v2.as_ref();
        let modifiable = |flag| v2.and_then(|v2| v2.modifiable).map(|flags| flags & flag != 0);
        let input = |(spends, input)| input_json(input, v2.map(|_| spends), network);
        let output = |(paid, output)| output_json(output, v2.map(|_| paid), network);
        Ok(without_nulls(json!({
            "tx": v2.is_none().then(|| transaction_json(&psbt.tx, network, None)),
            "global_xpubs": xpubs.map(xpub).collect::<Value>(),
            "tx_version": v2.map(|_| psbt.tx.version.0.cast_unsigned()),
            "fallback_locktime": v2.and_then(|v2| v2.fallback_lock_time),
            "input_count": v2.map(|_| psbt.inputs.len()),
            "output_count": v2.map(|_| psbt.outputs.len()),
            "inputs_modifiable": modifiable(VersionTwo::INPUTS_MODIFIABLE),
            "outputs_modifiable": modifiable(VersionTwo::OUTPUTS_MODIFIABLE),
            "has_sighash_single": modifiable(VersionTwo::HAS_SIGHASH_SINGLE),
            "psbt_version": psbt.version(),
            "proprietary": proprietary_json(&psbt.proprietary),
            "unknown": hex_json(&psbt.unknown),
            "inputs": psbt.each_input().map(input).collect::<Value>(),
            "outputs": psbt.tx.output.iter().zip(&psbt.outputs).map(output).collect::<Value>(),
            "fee": fee(&psbt).map(|fee| amount::to_json(SignedAmount::from_sat(fee))),
        })))
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

fn amount_json(output: &TxOut) -> Value {
    amount::to_json(SignedAmount::from_sat(output.value.to_sat().cast_signed()))
}

/// The fields of an input. `spends` is the transaction's input, which only version 2 shows here.
fn input_json(input: &Input, spends: Option<&TxIn>, network: Network) -> Value {
    let script_sig = |((key, leaf), signature): (&([u8; 32], [u8; 32]), &Bytes)| json!({"pubkey": encode_hex(key), "leaf_hash": encode_hex(leaf), "sig": encode_hex(signature)});
    let leaf = |((script, version), control_blocks): (&(Bytes, u8), &BTreeSet<ControlBlock>)| {
        let control_blocks: Vec<String> = control_blocks.iter().map(|block| encode_hex(&block.0)).collect();
        json!({"script": encode_hex(script), "leaf_ver": version, "control_blocks": control_blocks})
    };
    // The type is in the lowest byte. bitcoind shows an unknown type as an empty string.
    let sighash = |stored: i32| Sighash::from_ecdsa_byte(stored.to_le_bytes()[0]).map_or("", Sighash::name);
    let final_script_sig = Some(&input.final_script_sig).filter(|script| !script.is_empty());
    let [ripemd160, sha256, hash160, hash256] = input.preimages.each_ref().map(hex_json);
    without_empty(json!({
        "witness_utxo": input.witness_utxo.as_ref().map(|output| {
            json!({"amount": amount_json(output), "scriptPubKey": script_json(&output.script_pubkey, network)})
        }),
        "non_witness_utxo": input.non_witness_utxo.as_ref().map(|transaction| transaction_json(transaction, network, None)),
        "partial_signatures": hex_json(input.partial_sigs.values().map(|(key, signature)| (key, signature))),
        "sighash": input.sighash_type.map(sighash),
        "redeem_script": inner_script_json(&input.redeem_script),
        "witness_script": inner_script_json(&input.witness_script),
        "bip32_derivs": origins_json(&input.origins),
        "final_scriptSig": final_script_sig
            .map(|script| json!({"asm": asm_sighash(script), "hex": encode_hex(script.as_bytes())})),
        "final_scriptwitness": input.final_witness.iter().map(encode_hex).collect::<Value>(),
        "ripemd160_preimages": ripemd160,
        "sha256_preimages": sha256,
        "hash160_preimages": hash160,
        "hash256_preimages": hash256,
        "previous_txid": spends.map(|spends| spends.previous_output.txid),
        "previous_vout": spends.map(|spends| spends.previous_output.vout),
        "sequence": spends.filter(|_| input.has_sequence).map(|spends| spends.sequence.0),
        "time_locktime": spends.and(input.time_lock),
        "height_locktime": spends.and(input.height_lock),
        "taproot_key_path_sig": encode_hex(&input.tap_key_sig),
        "taproot_script_path_sigs": input.tap_script_sigs.iter().map(script_sig).collect::<Value>(),
        "taproot_scripts": input.tap_scripts.iter().map(leaf).collect::<Value>(),
        "taproot_bip32_derivs": tap_origins_json(&input.tap_origins),
        "taproot_internal_key": input.tap_internal_key.map(|key| encode_hex(&key)),
        "taproot_merkle_root": input.tap_merkle_root.map(|root| encode_hex(&root)),
        "musig2_participant_pubkeys": participants_json(&input.musig2_participants),
        "musig2_pubnonces": signers_json(&input.musig2_nonces, "pubnonce"),
        "musig2_partial_sigs": signers_json(&input.musig2_sigs, "partial_sig"),
        "proprietary": proprietary_json(&input.proprietary),
        "unknown": hex_json(&input.unknown),
    }))
}

/// The fields of an output. `paid` is the transaction's output, which only version 2 shows here.
fn output_json(output: &Output, paid: Option<&TxOut>, network: Network) -> Value {
    let leaf = |(depth, version, script): &(u8, u8, Bytes)| json!({"depth": depth, "leaf_ver": version, "script": encode_hex(script)});
    without_empty(json!({
        "redeem_script": inner_script_json(&output.redeem_script),
        "witness_script": inner_script_json(&output.witness_script),
        "bip32_derivs": origins_json(&output.origins),
        "amount": paid.map(amount_json),
        "script": paid.map(|paid| script_json(&paid.script_pubkey, network)),
        "taproot_internal_key": output.tap_internal_key.map(|key| encode_hex(&key)),
        "taproot_tree": output.tap_tree.iter().map(leaf).collect::<Value>(),
        "taproot_bip32_derivs": tap_origins_json(&output.tap_origins),
        "musig2_participant_pubkeys": participants_json(&output.musig2_participants),
        "proprietary": proprietary_json(&output.proprietary),
        "unknown": hex_json(&output.unknown),
    }))
}

/// An input or output without the members that bitcoind omits.
fn without_empty(mut object: Value) -> Value {
    let shows = |key: &String, value: &mut Value| match value {
        Value::String(text) => !text.is_empty() || key == "sighash",
        Value::Array(values) => !values.is_empty(),
        Value::Object(members) => !members.is_empty(),
        _ => !value.is_null(),
    };
    object.as_object_mut().into_iter().for_each(|members| members.retain(shows));
    object
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
        without_nulls(json!({
            "participant_pubkey": encode_hex(participant),
            "aggregate_pubkey": encode_hex(aggregate),
            "leaf_hash": leaf.map(|leaf| encode_hex(&leaf)),
            name: encode_hex(value),
        }))
    };
    values.iter().map(entry).collect()
}

fn hex_json<'a>(fields: impl IntoIterator<Item = (&'a Bytes, &'a Bytes)>) -> Value {
    fields.into_iter().map(|(key, value)| (encode_hex(key), encode_hex(value))).collect()
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
