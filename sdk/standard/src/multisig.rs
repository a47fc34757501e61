//! The multisig scripts and addresses of createmultisig.

use bitcoin::opcodes::all::OP_CHECKMULTISIG;
use bitcoin::script::PushBytes;
use bitcoin::secp256k1::PublicKey;
use bitcoin::secp256k1::constants::{PUBLIC_KEY_SIZE, UNCOMPRESSED_PUBLIC_KEY_SIZE};
use bitcoin::{Network, ScriptBuf};
use outrigger_values::params::{decode_hex, encode_hex};
use outrigger_values::{AddressType, RpcError};

use serde_json::{Value, json};

use super::{descriptor, from_script};

/// The limit of OP_CHECKMULTISIG.
const MAX_KEYS: usize = 20;
/// The longest redeem script, in bytes: the limit of a stack element.
const MAX_REDEEM_SCRIPT: usize = 520;

/// The warning if uncompressed keys prevent a witness script.
const OTHER_TYPE: &str = "Unable to make chosen address type, please ensure no uncompressed public keys are present.";

/// Parses a public key of 33 or 65 bytes in hexadecimal. The errors are those of bitcoind's `HexToPubKey`.
pub fn public_key(text: &str) -> Result<Vec<u8>, RpcError> {
    let refuse = |why: &str| RpcError::not_found(format!("Pubkey \"{text}\" {why}"));
    let key = decode_hex(text).filter(|key| !key.is_empty()).ok_or_else(|| refuse("must be a hex string"))?;
    if !matches!(key.len(), PUBLIC_KEY_SIZE | UNCOMPRESSED_PUBLIC_KEY_SIZE) {
        return Err(refuse("must have a length of either 33 or 65 bytes"));
    }
    PublicKey::from_slice(&key).map_err(|_| refuse("must be cryptographically valid."))?;
    Ok(key)
}

/// createmultisig's result for `required` of these keys, with bitcoind's order of checks. With uncompressed keys the address is
/// P2SH for every type that the client requests. The errors are those of bitcoind's `AddAndGetMultisigDestination`.
pub fn multisig(required: i32, keys: &[Vec<u8>], asked: AddressType, network: Network) -> Result<Value, RpcError> {
    let inner = multisig_script(required, keys)?;
    let kind = if keys.iter().any(|key| key.len() != PUBLIC_KEY_SIZE) { AddressType::Legacy } else { asked };
    if kind == AddressType::Legacy && inner.len() > MAX_REDEEM_SCRIPT {
        return Err(RpcError::invalid_parameter(format!(
            "redeemScript exceeds size limit: {} > {MAX_REDEEM_SCRIPT}",
            inner.len()
        )));
    }
    let (script, open, close) = match kind {
        AddressType::Bech32 => (inner.to_p2wsh(), "wsh(", ")"),
        AddressType::P2shSegwit => (inner.to_p2wsh().to_p2sh(), "sh(wsh(", "))"),
        AddressType::Legacy | AddressType::Bech32m => (inner.to_p2sh(), "sh(", ")"),
    };
    // Descriptors cannot contain hybrid keys.
    let descriptor = if keys.iter().any(|key| matches!(key.first(), Some(6 | 7))) {
        descriptor::infer(&script, network)
    } else {
        let keys: Vec<String> = keys.iter().map(|key| encode_hex(key)).collect();
        descriptor::with_checksum(format!("{open}multi({required},{}){close}", keys.join(",")))
    };
    let mut answer = json!({
        "address": from_script(&script, network),
        "redeemScript": encode_hex(inner.as_bytes()),
        "descriptor": descriptor,
    });
    if kind != asked {
        answer["warnings"] = json!([OTHER_TYPE]);
    }
    Ok(answer)
}

fn multisig_script(required: i32, keys: &[Vec<u8>]) -> Result<ScriptBuf, RpcError> {
    let none = || RpcError::invalid_parameter("a multisignature address must require at least one key to redeem");
    let needed = usize::try_from(required).ok().filter(|needed| *needed > 0).ok_or_else(none)?;
    if keys.len() < needed {
        let (given, least) = (keys.len(), required);
        return Err(RpcError::invalid_parameter(format!(
            "not enough keys supplied (got {given} keys, but need at least {least} to redeem)"
        )));
    }
    let many = || {
        let message = "Number of keys involved in the multisignature address creation >";
        RpcError::invalid_parameter(format!("{message} {MAX_KEYS}\nReduce the number"))
    };
    if keys.len() > MAX_KEYS {
        return Err(many());
    }
    let mut script = ScriptBuf::builder().push_int(i64::from(required));
    for key in keys {
        script = <&PushBytes>::try_from(key.as_slice()).map(|key| script.push_slice(key)).map_err(|_| many())?;
    }
    Ok(script.push_int(keys.len() as i64).push_opcode(OP_CHECKMULTISIG).into_script())
}
