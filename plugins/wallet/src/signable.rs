//! The public keys that the wallet can sign for.

use std::collections::{HashMap, HashSet};

use bitcoin::ScriptBuf;
use outrigger_sdk::service::wallet::ScriptInfo;
use outrigger_sdk::wire::Blob;

use crate::CallContext;
use crate::error::WalletError;
use crate::weight::keys_for;

/// The public keys of these scripts whose private keys the signer has.
pub fn signable_keys(
    context: &CallContext<'_>,
    scripts: &HashMap<ScriptBuf, ScriptInfo>,
) -> Result<HashSet<Vec<u8>>, WalletError> {
    let keys: HashSet<Vec<u8>> = scripts.iter().flat_map(|(script, info)| keys_for(script, &info.solving)).collect();
    if keys.is_empty() {
        return Ok(keys);
    }
    let candidates: Vec<Blob> = keys.iter().cloned().map(Blob).collect();
    let available = context.host.signer.available(context.scope, scripts.keys().cloned().collect(), candidates)?;
    Ok(keys.into_iter().zip(available).filter(|(_, available)| *available).map(|(key, _)| key).collect())
}
