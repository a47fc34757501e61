//! `verifymessage` and `createmultisig`: what is told of keys and signatures without any wallet.

use bitcoin::hashes::Hash;
use bitcoin::opcodes::all::OP_CHECKMULTISIG;
use bitcoin::script::PushBytes;
use bitcoin::secp256k1::PublicKey;
use bitcoin::{Script, ScriptBuf};
use outrigger_sdk::params::{decode_hex, encode_hex};
use outrigger_sdk::service::wallet::AddressType;
use outrigger_sdk::sign::message_signer;
use outrigger_sdk::standard::{ScriptKind, classify, descriptor, from_script, to_script};
use serde_json::{Map, Value, json};

use crate::error::ChainError;
use crate::limits::{MAX_MULTISIG_KEYS, MAX_REDEEM_SCRIPT};
use crate::{Context, Outcome, args};

pub fn verify_message(context: &Context<'_>) -> Outcome {
    let [address, signature, message] = [0, 1, 2].map(|index| args::text(context.params.get(index)));
    let script = to_script(address?, context.network()?).map_err(|_| ChainError::InvalidAddress)?;
    let ScriptKind::PubKeyHash { hash } = classify(&script) else { return Err(ChainError::AddressWithoutKey) };
    let signer = message_signer(signature?, message?).map_err(|_| ChainError::MalformedSignature)?;
    Ok(json!(signer.is_some_and(|signer| signer.to_byte_array() == *hash)))
}

/// A public key in hexadecimal.
fn public_key(value: &Value) -> Result<Vec<u8>, ChainError> {
    let text = args::text(value)?;
    let refuse = |why| ChainError::PublicKey { text: text.to_owned(), why };
    let key = decode_hex(text).filter(|key| !key.is_empty()).ok_or_else(|| refuse("must be a hex string"))?;
    if !matches!(key.len(), 33 | 65) {
        return Err(refuse("must have a length of either 33 or 65 bytes"));
    }
    PublicKey::from_slice(&key).map_err(|_| refuse("must be cryptographically valid."))?;
    Ok(key)
}

fn address_type(name: &str) -> Result<AddressType, ChainError> {
    match name {
        "legacy" => Ok(AddressType::Legacy),
        "p2sh-segwit" => Ok(AddressType::P2shSegwit),
        "bech32" => Ok(AddressType::Bech32),
        "bech32m" => Err(ChainError::TaprootMultisig),
        _ => Err(ChainError::AddressType(name.to_owned())),
    }
}

pub fn create_multisig(context: &Context<'_>) -> Outcome {
    let required: i32 = args::integer(context.params.get(0))?;
    let keys: Vec<Vec<u8>> = args::array(context.params.get(1))?.iter().map(public_key).collect::<Result<_, _>>()?;
    let chosen = context.params.given(2).map(args::text).transpose()?.map_or(Ok(AddressType::Legacy), address_type)?;
    let inner = multisig_script(required, &keys)?;
    // Segwit knows no other keys than compressed ones.
    let of_type = if keys.iter().any(|key| key.len() != 33) { AddressType::Legacy } else { chosen };
    if of_type == AddressType::Legacy && inner.len() > MAX_REDEEM_SCRIPT {
        return Err(ChainError::RedeemScriptSize(inner.len()));
    }
    let (script, form) = match of_type {
        AddressType::Bech32 => (inner.to_p2wsh(), ["wsh(", ")"]),
        AddressType::P2shSegwit => (inner.to_p2wsh().to_p2sh(), ["sh(wsh(", "))"]),
        _ => (inner.to_p2sh(), ["sh(", ")"]),
    };
    let address = from_script(&script, context.network()?);
    let mut object = Map::new();
    object.insert("address".into(), json!(address));
    object.insert("redeemScript".into(), json!(encode_hex(inner.as_bytes())));
    object.insert("descriptor".into(), json!(multisig_descriptor(&script, form, required, &keys, context)?));
    if of_type != chosen {
        const WARNING: &str =
            "Unable to make chosen address type, please ensure no uncompressed public keys are present.";
        object.insert("warnings".into(), json!([WARNING]));
    }
    Ok(Value::Object(object))
}

/// The script that pays to `required` of these keys, in bitcoind's order of checks.
fn multisig_script(required: i32, keys: &[Vec<u8>]) -> Result<ScriptBuf, ChainError> {
    let needed = usize::try_from(required).ok().filter(|needed| *needed > 0).ok_or(ChainError::NoKeyRequired)?;
    if keys.len() < needed {
        return Err(ChainError::TooFewKeys { keys: keys.len(), required });
    }
    if keys.len() > MAX_MULTISIG_KEYS {
        return Err(ChainError::TooManyKeys);
    }
    let mut script = ScriptBuf::builder().push_int(i64::from(required));
    for key in keys {
        // A key is short enough to be pushed.
        script = <&PushBytes>::try_from(key.as_slice())
            .map(|key| script.push_slice(key))
            .map_err(|_| ChainError::TooManyKeys)?;
    }
    Ok(script.push_int(keys.len() as i64).push_opcode(OP_CHECKMULTISIG).into_script())
}

/// The descriptor of the multisig; descriptors do not have the hybrid form of keys.
fn multisig_descriptor(
    script: &Script,
    [open, close]: [&str; 2],
    required: i32,
    keys: &[Vec<u8>],
    context: &Context<'_>,
) -> Result<String, ChainError> {
    if keys.iter().any(|key| matches!(key.first(), Some(6 | 7))) {
        return Ok(descriptor::infer(script, context.network()?));
    }
    let keys: Vec<String> = keys.iter().map(|key| encode_hex(key)).collect();
    Ok(descriptor::with_checksum(format!("{open}multi({required},{}){close}", keys.join(","))))
}
