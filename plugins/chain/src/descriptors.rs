//! The checks, the public form and the addresses of descriptors.

use outrigger_sdk::descriptor::{Checksum, Descriptor, checksum};
use outrigger_sdk::standard::from_script;
use outrigger_sdk::{RpcError, descriptor_syntax, params};
use serde_json::{Map, Value, json};

use crate::{Context, args};

fn parse(context: &Context<'_>, need: Checksum) -> Result<Vec<Descriptor>, RpcError> {
    let text = args::text(context.params.get(0))?;
    let syntax = descriptor_syntax(&context.rules);
    let parsed = Descriptor::parse_as(text, context.network()?, need, syntax);
    parsed.map_err(|error| RpcError::not_found(error.to_string()))
}

pub fn get_descriptor_info(context: &Context<'_>) -> Result<Value, RpcError> {
    let descriptors = parse(context, Checksum::Optional)?;
    let Some(first) = descriptors.first() else { return Err(RpcError::not_found("")) };
    let text = args::text(context.params.get(0))?;
    let payload = text.split('#').next().unwrap_or_default();
    let mut object = Map::new();
    let mut put = |key: &str, value: Value| object.insert(key.to_owned(), value);
    put("descriptor", json!(first.to_public_string()));
    if descriptors.len() > 1 {
        put("multipath_expansion", descriptors.iter().map(|each| json!(each.to_public_string())).collect());
    }
    put("checksum", json!(checksum(payload)));
    put("isrange", json!(first.is_ranged()));
    put("issolvable", json!(first.is_solvable()));
    put("hasprivatekeys", json!(first.has_private_keys()));
    Ok(Value::Object(object))
}

pub fn derive_addresses(context: &Context<'_>) -> Result<Value, RpcError> {
    let range = context.params.given(1).map(params::descriptor_range).transpose()?;
    let descriptors = parse(context, Checksum::Required)?;
    let ranged = descriptors.iter().any(Descriptor::is_ranged);
    let (begin, end) = match range {
        Some(_) if !ranged => {
            return Err(RpcError::invalid_parameter("Range should not be specified for an un-ranged descriptor"));
        }
        None if ranged => return Err(RpcError::invalid_parameter("Range must be specified for a ranged descriptor")),
        Some((begin, end)) => (begin, end),
        None => (0, 0),
    };
    let mut lists = Vec::with_capacity(descriptors.len());
    for descriptor in &descriptors {
        lists.push(addresses(context, descriptor, begin, end)?);
    }
    match (lists.len(), lists.pop()) {
        (1, Some(only)) => Ok(only),
        (_, last) => Ok(lists.into_iter().chain(last).collect()),
    }
}

fn addresses(context: &Context<'_>, descriptor: &Descriptor, begin: u32, end: u32) -> Result<Value, RpcError> {
    let network = context.network()?;
    let no_address = || RpcError::not_found("Descriptor does not have a corresponding address");
    let mut addresses = Vec::new();
    for index in begin..=end {
        let expansion = descriptor.expand(index);
        let expansion = expansion.map_err(|_| RpcError::not_found("Cannot derive script without private keys"))?;
        for script in &expansion.scripts {
            match from_script(&script.script_pubkey, network) {
                Some(address) => addresses.push(Value::String(address)),
                // combo() has several scripts. Its P2PK script has no address.
                None if expansion.scripts.len() > 1 => {}
                None => return Err(no_address()),
            }
        }
    }
    if descriptor.is_unused() {
        return Err(RpcError::misc("Unexpected empty result"));
    }
    if addresses.is_empty() { Err(no_address()) } else { Ok(Value::Array(addresses)) }
}
