//! Options common to several methods, with Bitcoin Core 29's checks.

use std::collections::HashSet;

use outrigger_values::params::{Type, int32, text};
use outrigger_values::{FeeRate, RpcError};
use serde_json::Value;

use crate::fee_choice::{EstimateMode, FeeChoice};
use crate::feerate::MAX_TARGET;

/// Reads the feerate options. `fee_rate`, in sat/vB, excludes `conf_target` and `estimate_mode`. `below_minimum` allows
/// it to be below the minimum feerate. The error is for the first broken rule, with bitcoind's code.
pub fn fee_choice(
    target: Option<&Value>,
    mode: Option<&Value>,
    feerate: Option<&Value>,
    below_minimum: bool,
) -> Result<FeeChoice, RpcError> {
    let invalid = |message: &str| Err(RpcError::invalid_parameter(message));
    let mode = mode.map(text).transpose()?;
    if let Some(feerate) = feerate {
        if target.is_some() {
            return invalid(
                "Cannot specify both conf_target and fee_rate. Please provide either a confirmation target in blocks for automatic fee estimation, or an explicit fee rate.",
            );
        }
        if mode.is_some_and(|mode| mode != "unset") {
            return invalid("Cannot specify both estimate_mode and fee_rate");
        }
        return Ok(FeeChoice::Exact { feerate: FeeRate::from_sat_per_vb(feerate)?, below_minimum });
    }
    let Some(mode) = mode.map_or(Some(EstimateMode::Unset), EstimateMode::named) else {
        return invalid("Invalid estimate_mode parameter, must be one of: \"unset\", \"economical\", \"conservative\"");
    };
    let Some(target) = target else { return Ok(FeeChoice::Within { target: None, mode }) };
    let target = u32::try_from(int32(target)?).ok().filter(|target| (1..=MAX_TARGET).contains(target));
    let message = || RpcError::invalid_parameter(format!("Invalid conf_target, must be between 1 and {MAX_TARGET}"));
    target.map(|target| FeeChoice::Within { target: Some(target), mode }).ok_or_else(message)
}

/// Reads the positions of the outputs that pay the fee. The value names each by position or by one of the outputs' `names`.
/// The error is for the first broken rule, with bitcoind's code.
pub fn fee_payers(value: Option<&Value>, names: &[&str]) -> Result<HashSet<usize>, RpcError> {
    let invalid =
        |what: String| RpcError::invalid_parameter(format!("Invalid parameter 'subtract fee from output', {what}"));
    let mut payers = HashSet::new();
    let Some(value) = value else { return Ok(payers) };
    let values: Vec<&Value> = match value {
        Value::Array(values) => values.iter().collect(),
        Value::Object(members) => members.values().collect(),
        _ => return Err(RpcError::misc("JSON value is not an object or array as expected")),
    };
    for value in values {
        let position = match value {
            Value::String(key) => {
                let position = names.iter().position(|known| known == key);
                position.ok_or_else(|| invalid(format!("destination {key} not found in tx outputs")))?
            }
            Value::Number(_) => {
                let number = int32(value)?;
                usize::try_from(number).map_err(|_| invalid(format!("negative position: {number}")))?
            }
            other => return Err(invalid(format!("invalid value type: {}", Type::of(other).name()))),
        };
        if payers.contains(&position) {
            return Err(invalid(format!("duplicated position: {position}")));
        }
        if position >= names.len() {
            return Err(invalid(format!("position too large: {position}")));
        }
        payers.insert(position);
    }
    Ok(payers)
}
