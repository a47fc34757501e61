//! The checks, the public form and the addresses of descriptors.

use outrigger_kit::descriptor::{Checksum, Descriptor, checksum};
use outrigger_kit::{descriptor_syntax, without_nulls};
use outrigger_sdk::standard::from_script;
use outrigger_sdk::{Call, RpcError, methods, params};
use serde_json::{Value, json};

use crate::ChainPlugin;

/// The descriptors of a text, in the syntax of the call's release.
pub fn parse(call: &Call<'_>, text: &str, need: Checksum) -> Result<Vec<Descriptor>, RpcError> {
    let syntax = descriptor_syntax(&call.rules);
    let parsed = Descriptor::parse_as(text, call.network()?, need, syntax);
    parsed.map_err(|error| RpcError::not_found(error.to_string()))
}

#[methods(category = "Util", private_keys)]
impl ChainPlugin {
    /// Checks a descriptor, and gives its public form with checksum.
    ///
    /// * `descriptor` - The descriptor.
    ///
    /// # Result
    /// {"descriptor": "descriptor", "multipath_expansion": [...], "checksum": "chars", "isrange": bool, "issolvable":
    /// bool, "hasprivatekeys": bool}    (json object) The checksum belongs to the text of the call.
    ///
    /// # Example
    /// "raw(51)"
    #[method]
    fn getdescriptorinfo(call: &Call<'_>, descriptor: &str) -> Result<Value, RpcError> {
        let descriptors = parse(call, descriptor, Checksum::Optional)?;
        let Some(first) = descriptors.first() else { return Err(RpcError::not_found("")) };
        let payload = descriptor.split('#').next().unwrap_or_default();
        let expansion = || descriptors.iter().map(Descriptor::to_public_string).collect::<Vec<_>>();
        Ok(without_nulls(json!({
            "descriptor": first.to_public_string(),
            "multipath_expansion": (descriptors.len() > 1).then(expansion),
            "checksum": checksum(payload),
            "isrange": first.is_ranged(),
            "issolvable": first.is_solvable(),
            "hasprivatekeys": first.has_private_keys(),
        })))
    }

    /// Gives the addresses of a descriptor.
    ///
    /// * `descriptor` - The descriptor with its checksum.
    /// * `range` - The last index, or [first, last], of a ranged descriptor.
    ///
    /// # Result
    /// ["address", ...]    (json array) A multipath descriptor has one such array for each path.
    ///
    /// # Example
    /// "wpkh(033cc1e194f294477237e34145492a29d7161a3823ca0b619f1ee6d298d5aa19f2)#jh8x92j2"
    #[method]
    fn deriveaddresses(call: &Call<'_>, descriptor: &str, range: Option<&Value>) -> Result<Value, RpcError> {
        let range = range.map(params::descriptor_range).transpose()?;
        let descriptors = parse(call, descriptor, Checksum::Required)?;
        let ranged = descriptors.iter().any(Descriptor::is_ranged);
        let (begin, end) = match range {
            Some(_) if !ranged => {
                return Err(RpcError::invalid_parameter("Range should not be specified for an un-ranged descriptor"));
            }
            None if ranged => {
                return Err(RpcError::invalid_parameter("Range must be specified for a ranged descriptor"));
            }
            Some((begin, end)) => (begin, end),
            None => (0, 0),
        };
        let lists = descriptors.iter().map(|descriptor| addresses(call, descriptor, begin, end));
        let mut lists = lists.collect::<Result<Vec<_>, _>>()?;
        match (lists.len(), lists.pop()) {
            (1, Some(only)) => Ok(only),
            (_, last) => Ok(lists.into_iter().chain(last).collect()),
        }
    }
}

fn addresses(call: &Call<'_>, descriptor: &Descriptor, begin: u32, end: u32) -> Result<Value, RpcError> {
    let network = call.network()?;
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
