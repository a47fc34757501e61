//! Scripts that a wallet has spent from, which one that avoids reuse does not use again.
//!
//! They follow from the wallet's transactions and are looked for anew in each call: nothing is stored, so a wallet that
//! begins to avoid reuse knows its past without a rescan. Wallets that do not avoid it are not searched.

use std::collections::{HashMap, HashSet};

use bitcoin::{OutPoint, ScriptBuf};
use outrigger_service::wallet::{HistoryQuery, HistoryRange, Ownership};
use outrigger_service::wire::Blob;
use outrigger_service::{Result, ServiceError};

use crate::Services;

/// The most transactions to ask the host for at a time.
const BATCH: u32 = 1000;

/// The wallet's scripts of which an output was spent by a transaction of the wallet, whatever became of it: who saw it knows
/// the script.
pub fn spent_from(services: Services<'_>) -> Result<HashSet<ScriptBuf>> {
    let mut owned: HashMap<OutPoint, ScriptBuf> = HashMap::new();
    let mut spent: Vec<OutPoint> = Vec::new();
    let mut query = HistoryQuery { range: HistoryRange::All, reverse: false, after: None, limit: BATCH };
    loop {
        let batch = services.host.wallet.history(services.scope, query.clone())?;
        let batch = batch.view().map_err(ServiceError::from)?;
        for row in batch.rows {
            let (transaction, _) = row.open()?;
            spent.extend(transaction.inputs.iter());
            for (vout, output) in (0_u32..).zip(transaction.outputs.iter()) {
                if output.ownership != Ownership::None {
                    let outpoint = OutPoint { txid: transaction.txid, vout };
                    owned.insert(outpoint, output.script.into());
                }
            }
        }
        query.after = batch.next.map(|next| Blob(next.to_vec()));
        if query.after.is_none() {
            return Ok(spent.iter().filter_map(|outpoint| owned.remove(outpoint)).collect());
        }
    }
}
