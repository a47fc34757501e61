//! The wallet's signing keys.

use std::collections::{HashMap, HashSet};

use bitcoin::ScriptBuf;
use outrigger_service::Result;
use outrigger_service::wallet::ScriptInfo;
use outrigger_service::wire::Blob;

use crate::Services;
use crate::weight::keys_for;

/// The public keys of these scripts whose private keys the signer has.
pub fn signable_keys(services: Services<'_>, scripts: &HashMap<ScriptBuf, ScriptInfo>) -> Result<HashSet<Vec<u8>>> {
    let keys: HashSet<Vec<u8>> = scripts.iter().flat_map(|(script, info)| keys_for(script, &info.solving)).collect();
    if keys.is_empty() {
        return Ok(keys);
    }
    let candidates: Vec<Blob> = keys.iter().cloned().map(Blob).collect();
    let available = services.host.signer.available(services.scope, scripts.keys().cloned().collect(), candidates)?;
    Ok(keys.into_iter().zip(available).filter(|(_, available)| *available).map(|(key, _)| key).collect())
}
