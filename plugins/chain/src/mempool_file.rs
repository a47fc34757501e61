//! `savemempool` and `importmempool`: the mempool as a file, which bitcoind reads and writes too.

use outrigger_sdk::service::ErrorKind;
use outrigger_sdk::service::mempool::MempoolImport;
use serde_json::{Value, json};

use crate::blocks::has_caught_up;
use crate::error::ChainError;
use crate::{Context, Outcome, args};

pub fn save_mempool(context: &Context<'_>) -> Outcome {
    let filename = context.host.mempool.save(context.scope).map_err(|error| match error.kind {
        ErrorKind::Refused => ChainError::MempoolNotSaved,
        _ => error.into(),
    })?;
    Ok(json!({"filename": filename}))
}

pub fn import_mempool(context: &Context<'_>) -> Outcome {
    if !has_caught_up(context)? {
        return Err(ChainError::NotCaughtUp);
    }
    let file = args::text(context.params.get(0))?.to_owned();
    let options = context.params.given(1).unwrap_or(&Value::Null);
    let option = |name: &str, default: bool| match options.get(name) {
        None | Some(Value::Null) => Ok(default),
        Some(value) => args::flag(value),
    };
    let options = MempoolImport {
        use_current_time: option("use_current_time", true)?,
        fee_deltas: option("apply_fee_delta_priority", false)?,
        unbroadcast: option("apply_unbroadcast_set", false)?,
    };
    context.host.mempool.import(context.scope, file, options).map_err(|error| match error.kind {
        ErrorKind::Refused => ChainError::MempoolNotImported,
        _ => error.into(),
    })?;
    Ok(json!({}))
}
