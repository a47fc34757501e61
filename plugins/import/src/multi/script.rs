//! A request that names a script or an address.

use bitcoin::{Network, PublicKey, Script, ScriptBuf};
use outrigger_sdk::params::decode_hex;
use outrigger_sdk::standard::{ScriptKind, classify, to_script};
use serde_json::Value;

use super::analysis::{Analysis, Sources};
use super::{IRRELEVANT_KEY, Material, ordered, private_key, spendable_warning};
use crate::error::ImportError;
use crate::request::{Fields, item};

/// The optional fields, of the right types.
struct Given<'a> {
    redeem_script: &'a str,
    witness_script: &'a str,
    public_keys: &'a [Value],
    private_keys: &'a [Value],
    watch_only: bool,
}

/// Checks the request, and gives what it brings and what is odd about it.
pub(super) fn read(
    fields: Fields<'_>,
    script_pubkey: &Value,
    internal: bool,
    network: Network,
) -> Result<(Material, Vec<String>), ImportError> {
    let (text, is_address) = match script_pubkey {
        Value::String(text) => (text.as_str(), false),
        Value::Object(object) => match object.get("address") {
            Some(address) => (item(address)?, true),
            None => return Err(ImportError::ScriptPubKeyForm),
        },
        _ => return Err(ImportError::ScriptPubKeyForm),
    };
    let given = Given {
        redeem_script: fields.text("redeemscript")?.unwrap_or_default(),
        witness_script: fields.text("witnessscript")?.unwrap_or_default(),
        public_keys: fields.list("pubkeys")?,
        private_keys: fields.list("keys")?,
        watch_only: fields.flag("watchonly")?,
    };
    if fields.has("range") {
        return Err(ImportError::RangeWithoutDescriptor);
    }
    let script = if is_address {
        to_script(text, network).map_err(|_| ImportError::Address(text.to_owned()))?
    } else {
        bare_script(text, internal)?
    };
    let mut material = Material::default();
    material.script_pubkeys.insert(ordered(script.clone()));
    let sources = Sources {
        redeem_script: optional_script(given.redeem_script, ImportError::RedeemScript)?,
        witness_script: optional_script(given.witness_script, ImportError::WitnessScript)?,
    };
    read_keys(&given, network, &mut material)?;
    material.solving_data = sources.redeem_script.is_some()
        || sources.witness_script.is_some()
        || !material.public_keys.is_empty()
        || !material.private_keys.is_empty();
    let mut warnings = Vec::new();
    if material.solving_data {
        analyse(&script, sources, given.watch_only, &mut material, &mut warnings)?;
    }
    Ok((material, warnings))
}

fn bare_script(text: &str, internal: bool) -> Result<ScriptBuf, ImportError> {
    let script = hex_script(text).ok_or_else(|| ImportError::ScriptPubKey(text.to_owned()))?;
    if !internal && !has_address(&script) {
        return Err(ImportError::NonstandardNotInternal);
    }
    Ok(script)
}

/// Whether a script pays to one destination. A bare public key has the address of its hash.
fn has_address(script: &Script) -> bool {
    !matches!(classify(script), ScriptKind::NonStandard | ScriptKind::NullData | ScriptKind::Multisig { .. })
}

/// A script in hexadecimal, which the empty text is not.
fn hex_script(text: &str) -> Option<ScriptBuf> {
    decode_hex(text).filter(|bytes| !bytes.is_empty()).map(ScriptBuf::from_bytes)
}

/// A script that may be left out, or be empty.
fn optional_script(text: &str, error: fn(String) -> ImportError) -> Result<Option<ScriptBuf>, ImportError> {
    if text.is_empty() {
        return Ok(None);
    }
    hex_script(text).map(Some).ok_or_else(|| error(text.to_owned()))
}

/// Reads `pubkeys` and `keys`. A public key that is also given as a private one counts as that.
fn read_keys(given: &Given<'_>, network: Network, material: &mut Material) -> Result<(), ImportError> {
    for value in given.public_keys {
        let text = item(value)?;
        let bytes = decode_hex(text).filter(|bytes| !bytes.is_empty());
        let bytes = bytes.ok_or_else(|| ImportError::PublicKeyNotHex(text.to_owned()))?;
        PublicKey::from_slice(&bytes).map_err(|_| ImportError::PublicKey(text.to_owned()))?;
        material.add_public_key(bytes);
    }
    for value in given.private_keys {
        let (id, key) = private_key(value, network)?;
        material.public_keys.remove(&id);
        material.private_keys.entry(id).or_insert(key);
    }
    Ok(())
}

/// Finds out what of the request the script needs, and warns of the rest.
fn analyse(
    script: &ScriptBuf,
    sources: Sources,
    watch_only: bool,
    material: &mut Material,
    warnings: &mut Vec<String>,
) -> Result<(), ImportError> {
    let mut analysis = Analysis::new(sources);
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
    if analysis.sources.redeem_script.is_some() {
        warnings.push("Ignoring redeemscript as this is not a P2SH script.".to_owned());
    }
    if analysis.sources.witness_script.is_some() {
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
            let id = outrigger_sdk::params::encode_hex(id);
            warnings.push(format!("Ignoring public key \"{id}\" as it doesn't appear inside P2PKH or P2WPKH."));
        }
        required
    });
    material.scripts = analysis.scripts.into_iter().map(ordered).collect();
    Ok(())
}
