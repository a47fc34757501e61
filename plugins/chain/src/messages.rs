//! `verifymessage` and `createmultisig`: what is told of keys and signatures without any wallet.

use bitcoin::hashes::Hash;
use outrigger_sdk::service::wallet::AddressType;
use outrigger_sdk::sign::message_signer;
use outrigger_sdk::standard::{ScriptKind, classify, multisig, to_script};
use serde_json::json;

use crate::error::ChainError;
use crate::{Context, Outcome, args};

pub fn verify_message(context: &Context<'_>) -> Outcome {
    let [address, signature, message] = [0, 1, 2].map(|index| args::text(context.params.get(index)));
    let script = to_script(address?, context.network()?).map_err(|_| ChainError::InvalidAddress)?;
    let ScriptKind::PubKeyHash { hash } = classify(&script) else { return Err(ChainError::AddressWithoutKey) };
    let signer = message_signer(signature?, message?).map_err(|_| ChainError::MalformedSignature)?;
    Ok(json!(signer.is_some_and(|signer| signer.to_byte_array() == *hash)))
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
    let key = |value| Ok::<_, ChainError>(multisig::public_key(args::text(value)?)?);
    let keys: Vec<Vec<u8>> = args::array(context.params.get(1))?.iter().map(key).collect::<Result<_, _>>()?;
    let chosen = context.params.given(2).map(args::text).transpose()?.map_or(Ok(AddressType::Legacy), address_type)?;
    let network = context.network()?;
    Ok(multisig::multisig(required, &keys, chosen, network)?.to_json(chosen, network))
}
