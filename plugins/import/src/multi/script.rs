//! A request of importmulti with a script or an address.

use bitcoin::{Network, PublicKey, ScriptBuf};
use outrigger_sdk::RpcError;
use outrigger_sdk::params::{decode_hex, encode_hex};
use outrigger_sdk::standard::{ScriptKind, classify, to_script};
use serde_json::Value;

use super::analysis::Analysis;
use super::{IRRELEVANT_KEY, Material, ordered, private_key, spendable_warning};
use crate::request::{self, Fields, refuse_quoting};

/// Checks the request, and returns its keys and scripts with the warnings.
pub(super) fn read(
    fields: Fields<'_>,
    script_pubkey: &Value,
    internal: bool,
    network: Network,
) -> Result<(Material, Vec<String>), RpcError> {
    let (text, is_address) = match (script_pubkey.as_str(), script_pubkey.get("address")) {
        (Some(text), _) => (text, false),
        (None, Some(address)) => (request::text(address)?, true),
        (None, None) => {
            let message = "scriptPubKey must be string with script or JSON with address string";
            return Err(RpcError::invalid_parameter(message));
        }
    };
    // The types of the optional fields are checked before their values.
    let redeem_script = fields.text("redeemscript")?.unwrap_or_default();
    let witness_script = fields.text("witnessscript")?.unwrap_or_default();
    let (public_keys, private_keys) = (fields.list("pubkeys")?, fields.list("keys")?);
    let watch_only = fields.flag("watchonly")?;
    if fields.has("range") {
        return Err(RpcError::invalid_parameter("Range should not be specified for a non-descriptor import"));
    }
    let script = if is_address {
        to_script(text, network).map_err(|_| refuse_quoting(&format!("Invalid address \"{text}\"")))?
    } else {
        bare_script(text, internal)?
    };
    let mut material = Material::default();
    material.script_pubkeys.insert(ordered(script.clone()));
    let redeem_script = optional_script(redeem_script, "Invalid redeem script")?;
    let witness_script = optional_script(witness_script, "Invalid witness script")?;
    read_keys(public_keys, private_keys, network, &mut material)?;
    material.solving_data = redeem_script.is_some()
        || witness_script.is_some()
        || !material.public_keys.is_empty()
        || !material.private_keys.is_empty();
    let mut warnings = Vec::new();
    if material.solving_data {
        let analysis = Analysis { redeem_script, witness_script, ..Analysis::default() };
        analyse(&script, analysis, watch_only, &mut material, &mut warnings)?;
    }
    Ok((material, warnings))
}

fn bare_script(text: &str, internal: bool) -> Result<ScriptBuf, RpcError> {
    let script = hex_script(text).ok_or_else(|| refuse_quoting(&format!("Invalid scriptPubKey \"{text}\"")))?;
    // A script that pays to one destination has an address. For a bare public key, it is that of the hash.
    let kind = classify(&script);
    if !internal && matches!(kind, ScriptKind::NonStandard | ScriptKind::NullData | ScriptKind::Multisig { .. }) {
        let message = "Internal must be set to true for nonstandard scriptPubKey imports.";
        return Err(RpcError::invalid_parameter(message));
    }
    Ok(script)
}

/// Decodes a script from hexadecimal. `None` for an empty text.
pub fn hex_script(text: &str) -> Option<ScriptBuf> {
    decode_hex(text).filter(|bytes| !bytes.is_empty()).map(ScriptBuf::from_bytes)
}

/// The script of an optional field; the empty text counts as absent.
fn optional_script(text: &str, refusal: &str) -> Result<Option<ScriptBuf>, RpcError> {
    if text.is_empty() {
        return Ok(None);
    }
    let refused = || refuse_quoting(&format!("{refusal} \"{text}\": must be hex string"));
    hex_script(text).map(Some).ok_or_else(refused)
}

/// Reads `pubkeys` and `keys`. A private key replaces its public key.
fn read_keys(
    public_keys: &[Value],
    private_keys: &[Value],
    network: Network,
    material: &mut Material,
) -> Result<(), RpcError> {
    for value in public_keys {
        let text = request::text(value)?;
        let refused = |why: &str| refuse_quoting(&format!("Pubkey \"{text}\" {why}"));
        let bytes = decode_hex(text).filter(|bytes| !bytes.is_empty());
        let bytes = bytes.ok_or_else(|| refused("must be a hex string"))?;
        PublicKey::from_slice(&bytes).map_err(|_| refused("is not a valid public key"))?;
        material.add_public_key(bytes);
    }
    for value in private_keys {
        let (id, key) = private_key(value, network)?;
        material.public_keys.remove(&id);
        material.private_keys.entry(id).or_insert(key);
    }
    Ok(())
}

/// Keeps the keys and scripts that the script needs, and warns of the others.
fn analyse(
    script: &ScriptBuf,
    mut analysis: Analysis,
    watch_only: bool,
    material: &mut Material,
    warnings: &mut Vec<String>,
) -> Result<(), RpcError> {
    let walked = analysis.walk(script)?;
    let spendable = analysis.keys.keys().all(|id| material.private_keys.contains_key(id));
    warnings.extend(spendable_warning(watch_only, spendable));
    let known = |id| material.public_keys.contains_key(id) || material.private_keys.contains_key(id);
    let required_known = analysis.keys.iter().all(|(id, required)| !required || known(id));
    let reason = walked.err().or_else(|| (!required_known).then_some("some required keys are missing"));
    if let Some(reason) = reason {
        warnings.push(format!(
            "Importing as non-solvable: {reason}. If this is intentional, don't provide any keys, pubkeys, witnessscript, or redeemscript."
        ));
        let script_pubkeys = std::mem::take(&mut material.script_pubkeys);
        *material = Material { script_pubkeys, ..Material::default() };
        return Ok(());
    }
    if analysis.redeem_script.is_some() {
        warnings.push("Ignoring redeemscript as this is not a P2SH script.".to_owned());
    }
    if analysis.witness_script.is_some() {
        warnings.push("Ignoring witnessscript as this is not a (P2SH-)P2WSH script.".to_owned());
    }
    material.private_keys.retain(|id, _| {
        let relevant = analysis.keys.contains_key(id);
        if !relevant {
            warnings.push(IRRELEVANT_KEY.to_owned());
        }
        relevant
    });
    material.public_keys.retain(|id, _| {
        let required = analysis.keys.get(id) == Some(&true);
        if !required {
            let id = encode_hex(id);
            warnings.push(format!("Ignoring public key \"{id}\" as it doesn't appear inside P2PKH or P2WPKH."));
        }
        required
    });
    material.scripts = analysis.scripts.into_iter().map(ordered).collect();
    Ok(())
}
