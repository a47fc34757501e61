//! `verifymessage` and `createmultisig`, which need no wallet.

use bitcoin::hashes::Hash;
use outrigger_sdk::RpcError;
use outrigger_sdk::service::wallet::AddressType;
use outrigger_sdk::sign::message_signer;
use outrigger_sdk::standard::{ScriptKind, classify, multisig, to_script};
use serde_json::{Value, json};

use crate::{Context, args};

pub fn verify_message(context: &Context<'_>) -> Result<Value, RpcError> {
    let [address, signature, message] = [0, 1, 2].map(|index| args::text(context.params.get(index)));
    let script = to_script(address?, context.network()?).map_err(|_| RpcError::not_found("Invalid address"))?;
    let ScriptKind::PubKeyHash { hash } = classify(&script) else {
        return Err(RpcError::type_error("Address does not refer to key"));
    };
    let signer = message_signer(signature?, message?);
    let signer = signer.map_err(|_| RpcError::type_error("Malformed base64 encoding"))?;
    Ok(json!(signer.is_some_and(|signer| signer.to_byte_array() == *hash)))
}

fn address_type(name: &str) -> Result<AddressType, RpcError> {
    match name {
        "legacy" => Ok(AddressType::Legacy),
        "p2sh-segwit" => Ok(AddressType::P2shSegwit),
        "bech32" => Ok(AddressType::Bech32),
        "bech32m" => Err(RpcError::not_found("createmultisig cannot create bech32m multisig addresses")),
        _ => Err(RpcError::not_found(format!("Unknown address type '{name}'"))),
    }
}

pub fn create_multisig(context: &Context<'_>) -> Result<Value, RpcError> {
    let required: i32 = args::integer(context.params.get(0))?;
    let key = |value| multisig::public_key(args::text(value)?);
    let keys: Vec<Vec<u8>> = args::array(context.params.get(1))?.iter().map(key).collect::<Result<_, _>>()?;
    let chosen = context.params.given(2).map(args::text).transpose()?.map_or(Ok(AddressType::Legacy), address_type)?;
    let network = context.network()?;
    Ok(multisig::multisig(required, &keys, chosen, network)?.to_json(chosen, network))
}
