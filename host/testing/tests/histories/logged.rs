//! Compares the wallet's event log with the wallet's state.

use std::collections::BTreeMap;

use bitcoin::Txid;
use outrigger_service::wallet::{LOG_DEPTH, LogEntry, LogKind, TxState};

use crate::world::World;

/// Checks that the last log entry of each transaction matches its state, and that the entries follow each other correctly.
pub fn log_agrees(world: &World) -> Result<(), String> {
    let view = world.view();
    let (mut of, mut after) = (BTreeMap::<Txid, Vec<LogEntry>>::new(), 0);
    loop {
        let part = view.log(after, 100).map_err(|error| error.to_string())?;
        let Some(last) = part.entries.last() else { break };
        if part.entries.iter().any(|entry| entry.number <= after) || part.dropped != 0 {
            return Err("the numbers do not grow, or entries were dropped".into());
        }
        after = last.number;
        part.entries.into_iter().for_each(|entry| of.entry(entry.txid).or_default().push(entry));
    }
    let synced = view.info().map_err(|error| error.to_string())?.synced.height;
    for named in &world.made {
        let told = of.remove(&named.txid).unwrap_or_default();
        let answer = view.transactions(&[named.txid]).map_err(|error| error.to_string())?;
        let row = answer.view().unwrap().rows.iter().next();
        let wanted = row.map(|row| {
            let (transaction, unsettled) = row.open().unwrap();
            match transaction.state {
                TxState::Confirmed { block, height, .. } => {
                    // A reorganisation to a shorter chain may have reduced the depth after it was logged as deep.
                    let is_deep = transaction.state.depth(synced) >= i64::from(LOG_DEPTH)
                        || told.last().is_some_and(|entry| entry.kind == LogKind::Deep);
                    (if is_deep { LogKind::Deep } else { LogKind::Confirmed }, Some((block, height)))
                }
                TxState::Conflicted { block, height } => (LogKind::Conflicted, Some((block, height))),
                TxState::Abandoned => (LogKind::Abandoned, None),
                _ if unsettled.mempool_conflicts.iter().next().is_some() => (LogKind::Replaced, None),
                _ => (LogKind::Seen, None),
            }
        });
        let last = told.last().map(|entry| match entry.kind {
            LogKind::Reorganised => (LogKind::Seen, None),
            kind => (kind, entry.block.zip(entry.height)),
        });
        let is_valid = |pair: &[LogEntry]| match (pair[0].kind, pair[1].kind) {
            (before, LogKind::Deep) => before == LogKind::Confirmed && pair[0].block == pair[1].block,
            (before, LogKind::Reorganised) => {
                matches!(before, LogKind::Confirmed | LogKind::Deep) && pair[0].block == pair[1].block
            }
            _ => true,
        };
        if last != wanted || !told.windows(2).all(is_valid) {
            return Err(format!("the log of {} is {told:#?}, wanted {wanted:?} at {synced}", named.txid));
        }
    }
    if of.is_empty() { Ok(()) } else { Err(format!("the log tells of others: {of:#?}")) }
}
