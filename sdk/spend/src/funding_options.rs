//! The options of fundrawtransaction, walletcreatefundedpsbt and send.

use bitcoin::hashes::Hash;
use bitcoin::secp256k1::constants::PUBLIC_KEY_SIZE;
use bitcoin::{Network, OutPoint, ScriptBuf, WPubkeyHash, Weight, Witness};
use outrigger_descriptor::{Checksum, Descriptor};
use outrigger_service::wallet::{AddressType, SolvingData};
use outrigger_service::wire::Blob;
use outrigger_standard::policy::MAX_STANDARD_WEIGHT;
use outrigger_standard::{address, multisig};
use outrigger_values::params::{Type, decode_hex, hash_text};
use outrigger_values::{FeeRate, RpcError, typed};
use serde_json::{Map, Value};

use crate::control::{ChangeChoice, CoinControl, PresetInput};
use crate::fee_choice::FeeChoice;
use crate::options::fee_choice;

/// The least weight of an input: outpoint, sequence, empty scriptSig and empty witness.
const MIN_INPUT_WEIGHT: i64 = 165;

/// The options in byte order with their types; `None`: checked when the option is read.
const TYPES: [(&str, Option<Type>); 27] = [
    ("add_inputs", Some(Type::Bool)),
    ("add_to_wallet", Some(Type::Bool)),
    ("changeAddress", Some(Type::String)),
    ("changePosition", Some(Type::Number)),
    ("change_address", Some(Type::String)),
    ("change_position", Some(Type::Number)),
    ("change_type", Some(Type::String)),
    ("conf_target", Some(Type::Number)),
    ("estimate_mode", Some(Type::String)),
    ("feeRate", None),
    ("fee_rate", None),
    ("includeWatching", Some(Type::Bool)),
    ("include_unsafe", Some(Type::Bool)),
    ("include_watching", Some(Type::Bool)),
    ("input_weights", Some(Type::Array)),
    ("inputs", Some(Type::Array)),
    ("lockUnspents", Some(Type::Bool)),
    ("lock_unspents", Some(Type::Bool)),
    ("locktime", Some(Type::Number)),
    ("max_tx_weight", Some(Type::Number)),
    ("maxconf", Some(Type::Number)),
    ("minconf", Some(Type::Number)),
    ("psbt", Some(Type::Bool)),
    ("replaceable", Some(Type::Bool)),
    ("solving_data", Some(Type::Object)),
    ("subtractFeeFromOutputs", Some(Type::Array)),
    ("subtract_fee_from_outputs", Some(Type::Array)),
];

/// The call whose options are read.
#[derive(Clone, Copy, Debug)]
pub struct FundingCall {
    /// The network of addresses and keys.
    pub network: Network,
    /// Whether private keys are enabled in the wallet.
    pub private_keys_enabled: bool,
    /// The number of outputs of the call.
    pub outputs: usize,
    /// Whether `fee_rate` may be below the minimum feerate.
    pub below_minimum: bool,
}

impl FundingCall {
    /// Reads the options into `control`, in Bitcoin Core 29's order of checks. Returns `lock_unspents`. The error is
    /// for the first broken rule, with bitcoind's code.
    pub fn read(&self, options: &Map<String, Value>, control: &mut CoinControl) -> Result<bool, RpcError> {
        typed::check_options(options, &TYPES)?;
        let either = |one: &str, other: &str| options.get(one).or_else(|| options.get(other));
        if let Some(add) = options.get("add_inputs") {
            control.add_inputs = typed::flag(add)?;
        }
        let change_address = either("change_address", "changeAddress");
        if let Some(text) = change_address {
            let script = address::to_script(typed::text(text)?, self.network);
            control.change = ChangeChoice::To(
                script.map_err(|_| RpcError::not_found("Change address must be a valid bitcoin address"))?,
            );
        }
        if let Some(position) = either("change_position", "changePosition") {
            let position = usize::try_from(typed::integer::<i32>(position)?).ok();
            let position = position.filter(|position| *position <= self.outputs);
            control.change_position = Some(position.ok_or_else(|| invalid("changePosition out of bounds"))?);
        }
        if let Some(kind) = options.get("change_type") {
            if change_address.is_some() {
                return Err(invalid("Cannot specify both change address and address type options"));
            }
            let name = typed::text(kind)?;
            let kind =
                AddressType::named(name).ok_or_else(|| RpcError::not_found(format!("Unknown change type '{name}'")))?;
            control.change = ChangeChoice::Fresh(Some(kind));
        }
        self.read_watching(either("include_watching", "includeWatching"), control)?;
        let lock = either("lock_unspents", "lockUnspents").map_or(Ok(false), typed::flag)?;
        if let Some(include) = options.get("include_unsafe") {
            control.include_unsafe = typed::flag(include)?;
        }
        let old_feerate = read_old_feerate(options)?;
        if let Some(replaceable) = options.get("replaceable") {
            control.replaceable = Some(typed::flag(replaceable)?);
        }
        read_depths(options, control)?;
        self.read_fee(options, old_feerate, control)?;
        if let Some(data) = options.get("solving_data") {
            control.solving = self.solving_data(typed::object(data)?)?;
        }
        if let Some(weights) = options.get("input_weights") {
            read_weights(typed::array(weights)?, control)?;
        }
        if let Some(weight) = options.get("max_tx_weight") {
            control.max_tx_weight = Some(i64::from(typed::integer::<i32>(weight)?));
        }
        Ok(lock)
    }

    /// Reads `include_watching`. It defaults to true where private keys are disabled. Fails if the value is not a boolean.
    pub fn read_watching(&self, value: Option<&Value>, control: &mut CoinControl) -> Result<(), RpcError> {
        let given = value.filter(|value| !value.is_null()).map(typed::flag).transpose()?;
        control.include_watching = given.unwrap_or(!self.private_keys_enabled);
        Ok(())
    }

    /// Reads `conf_target`, `estimate_mode` and `fee_rate` as [`fee_choice`]. `old_feerate` is the value of `feeRate`.
    pub fn read_fee(
        &self,
        options: &Map<String, Value>,
        old_feerate: Option<FeeRate>,
        control: &mut CoinControl,
    ) -> Result<(), RpcError> {
        let given = |name: &str| options.get(name).filter(|value| !value.is_null());
        let (target, mode, feerate) = (given("conf_target"), given("estimate_mode"), given("fee_rate"));
        control.fee = fee_choice(target, mode, feerate, self.below_minimum)?;
        if let Some(feerate) = old_feerate {
            control.fee = FeeChoice::Exact { feerate, below_minimum: true };
        }
        if feerate.is_some() {
            control.replaceable = control.replaceable.or(Some(true));
        }
        Ok(())
    }

    fn solving_data(&self, object: &Map<String, Value>) -> Result<SolvingData, RpcError> {
        let mut solving = SolvingData::default();
        let list = |name: &str| object.get(name).map_or(Ok(&[][..]), typed::array);
        for value in list("pubkeys")? {
            let key = multisig::public_key(typed::text(value)?)?;
            if key.len() == PUBLIC_KEY_SIZE {
                // The redeem script of P2SH-P2WPKH.
                solving.scripts.push(ScriptBuf::new_p2wpkh(&WPubkeyHash::hash(&key)));
            }
            solving.public_keys.push(Blob(key));
        }
        for value in list("scripts")? {
            let text = typed::text(value)?;
            let bytes = decode_hex(text).filter(|bytes| !bytes.is_empty());
            let bytes = bytes.ok_or_else(|| RpcError::not_found(format!("'{text}' is not hex")))?;
            solving.scripts.push(ScriptBuf::from_bytes(bytes));
        }
        for value in list("descriptors")? {
            let text = typed::text(value)?;
            let unreadable = |error| invalid(&format!("Unable to parse descriptor '{text}': {error}"));
            for descriptor in Descriptor::parse(text, self.network, Checksum::Required).map_err(unreadable)? {
                // Bitcoin Core ignores descriptors that it cannot derive, too.
                for script in descriptor.expand(0).map(|expansion| expansion.scripts).unwrap_or_default() {
                    solving.scripts.extend(script.solving.scripts);
                    solving.public_keys.extend(script.solving.public_keys);
                }
            }
        }
        Ok(solving)
    }
}

fn invalid(message: &str) -> RpcError {
    RpcError::invalid_parameter(message)
}

/// Reads `feeRate`, in BTC/kvB.
fn read_old_feerate(options: &Map<String, Value>) -> Result<Option<FeeRate>, RpcError> {
    let Some(feerate) = options.get("feeRate") else { return Ok(None) };
    let message = if options.contains_key("fee_rate") {
        "Cannot specify both fee_rate (sat/vB) and feeRate (BTC/kvB)"
    } else if options.contains_key("conf_target") {
        "Cannot specify both conf_target and feeRate. Please provide either a confirmation target in blocks for automatic fee estimation, or an explicit fee rate."
    } else if options.contains_key("estimate_mode") {
        "Cannot specify both estimate_mode and feeRate"
    } else {
        return FeeRate::from_btc_per_kvb(feerate).map(Some);
    };
    Err(invalid(message))
}

fn read_depths(options: &Map<String, Value>, control: &mut CoinControl) -> Result<(), RpcError> {
    if let Some(depth) = options.get("minconf") {
        let depth: i32 = typed::integer(depth)?;
        control.min_depth = u32::try_from(depth).map_err(|_| invalid("Negative minconf"))?;
    }
    read_max_depth(options, control)
}

/// Reads `maxconf`. Fails if it is not an integer, or below `minconf`.
pub fn read_max_depth(options: &Map<String, Value>, control: &mut CoinControl) -> Result<(), RpcError> {
    let Some(depth) = options.get("maxconf") else { return Ok(()) };
    let (depth, least): (i32, u32) = (typed::integer(depth)?, control.min_depth);
    control.max_depth = u32::try_from(depth)
        .ok()
        .filter(|depth| *depth >= least)
        .ok_or_else(|| invalid(&format!("maxconf can't be lower than minconf: {depth} < {least}")))?;
    Ok(())
}

/// Reads `input_weights`. As in Bitcoin Core 29, an input that the transaction lacks is added.
fn read_weights(weights: &[Value], control: &mut CoinControl) -> Result<(), RpcError> {
    for value in weights {
        let field = |name: &str| value.get(name).unwrap_or(&Value::Null);
        let txid = hash_text(typed::text(field("txid"))?, "txid")?;
        let number = |name: &str| match field(name) {
            number @ Value::Number(_) => Ok(number),
            _ => Err(invalid(&format!("Invalid parameter, missing {name} key"))),
        };
        let vout: i32 = typed::integer(number("vout")?)?;
        let vout = u32::try_from(vout).map_err(|_| invalid("Invalid parameter, vout cannot be negative"))?;
        let weight: i64 = typed::integer(number("weight")?)?;
        if weight < MIN_INPUT_WEIGHT {
            return Err(invalid(
                "Invalid parameter, weight cannot be less than 165 (41 bytes (size of outpoint + sequence + empty scriptSig) * 4 (witness scaling factor)) + 1 (empty witness)",
            ));
        }
        let weight = Weight::from_wu(weight.unsigned_abs());
        if weight > MAX_STANDARD_WEIGHT {
            return Err(invalid(
                "Invalid parameter, weight cannot be greater than the maximum standard tx weight of 400000",
            ));
        }
        let outpoint = OutPoint { txid, vout };
        match control.inputs.iter_mut().find(|input| input.outpoint == outpoint) {
            Some(input) => input.weight = Some(weight),
            None => control.inputs.push(PresetInput {
                outpoint,
                sequence: None,
                script_sig: ScriptBuf::new(),
                witness: Witness::new(),
                weight: Some(weight),
                by_weight: true,
            }),
        }
    }
    Ok(())
}

/// Copies the weights of the argument `inputs` into the option `input_weights`, for methods with such an argument.
/// Fails if the options contain `input_weights` already.
pub fn take_input_weights(inputs: &Value, options: &mut Map<String, Value>) -> Result<(), RpcError> {
    const NAME: &str = "input_weights";
    if options.contains_key(NAME) {
        return Err(invalid("Input weights should be specified in inputs rather than in options."));
    }
    let weighed = inputs.as_array().into_iter().flatten().filter(|input| input.get("weight").is_some());
    let weighed: Vec<Value> = weighed.cloned().collect();
    if !weighed.is_empty() {
        options.insert(NAME.to_owned(), Value::Array(weighed));
    }
    Ok(())
}
