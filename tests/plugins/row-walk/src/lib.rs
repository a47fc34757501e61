//! What the benchmark of rows runs inside of a host: the same rows walked through the ABI as every plugin does, and through
//! LMDB as the host's own store does, with the same fields looked at.
//!
//! LMDB must not open one file twice in a process, so the direct walks are through copies of the wallet's file.

use std::path::Path;
use std::time::Instant;

use heed::types::Bytes;
use heed::{Database, Env, EnvOpenOptions, WithoutTls};
use outrigger_sdk::service::Scope;
use outrigger_sdk::service::wallet::{HistoryQuery, HistoryRange, TxState, WalletTransaction, WalletTransactionView};
use outrigger_sdk::wire::{Blob, Reader, Viewed};
use outrigger_sdk::{Call, Host, Plugin, Reply, RpcError};
use serde_json::{Map, Value, json};

/// The address space for the copy, in bytes: what the hosts of the benchmarks reserve.
const MAP_SIZE: usize = 4 << 30;

/// The checksum that the host stores behind each value, in bytes. The direct walks pass over it.
const CHECK_LEN: usize = 4;

pub struct RowWalk {
    host: Host,
}

impl Plugin for RowWalk {
    fn new(host: Host, _: Map<String, Value>) -> Result<Self, String> {
        Ok(Self { host })
    }

    fn call(&self, call: Call<'_>, reply: Reply) {
        let answer = call.params.text(0).and_then(|copy| {
            let rounds = call.params.integer_or(1, 1)?;
            self.compare(call.scope, Path::new(copy), rounds)
        });
        reply.send(answer);
    }
}

/// What a walk saw: how many rows, and a sum over the fields it looked at.
type Seen = (u64, u64);

impl RowWalk {
    fn compare(&self, scope: Scope, copy: &Path, rounds: i64) -> Result<Value, RpcError> {
        let internal = |error: Box<dyn std::error::Error>| RpcError::internal(error.to_string());
        // Each has a file of its own, so that none finds in the processor's caches what another one read.
        let direct = Direct::open(&copy.join("direct")).map_err(internal)?;
        let in_step = Direct::open(&copy.join("in_step")).map_err(internal)?;
        let mut times: [Vec<u64>; 3] = Default::default();
        let mut rows = 0;
        // The first round brings both files' pages in and is not counted.
        for round in 0..=rounds {
            let mut all_saw = Vec::new();
            for (kind, times) in times.iter_mut().enumerate() {
                let began = Instant::now();
                let seen = match kind {
                    0 => self.walk(scope)?,
                    1 => direct.walk().map_err(internal)?,
                    _ => in_step.walk_in_step().map_err(internal)?,
                };
                if round > 0 {
                    times.push(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX));
                }
                all_saw.push(seen);
            }
            if all_saw.iter().any(|seen| *seen != all_saw[0]) {
                return Err(RpcError::internal(format!("the walks saw different rows: {all_saw:?}")));
            }
            rows = all_saw[0].0;
        }
        let [abi, direct, in_step] = times;
        Ok(json!({"rows": rows, "abi": abi, "direct": direct, "in_step": in_step}))
    }

    fn walk(&self, scope: Scope) -> Result<Seen, RpcError> {
        let range = HistoryRange::Confirmed { from_height: 0 };
        let mut query = HistoryQuery { range, reverse: false, after: None, limit: u32::MAX };
        let mut seen = (0, 0);
        loop {
            let batch = self.host.wallet.history(scope, query.clone())?;
            let batch = batch.view().map_err(|error| RpcError::internal(error.to_string()))?;
            for row in batch.rows {
                look(&row.open()?.0, &mut seen);
            }
            match batch.next {
                Some(next) => query.after = Some(Blob(next.to_vec())),
                None => return Ok(seen),
            }
        }
    }
}

/// Looks at what an entry of a listing shows.
fn look(transaction: &WalletTransactionView<'_>, seen: &mut Seen) {
    let (rows, sum) = seen;
    *rows += 1;
    let mut add = |value: u64| *sum = sum.wrapping_mul(31).wrapping_add(value);
    if let TxState::Confirmed { block, height, index, time } = transaction.state {
        add(u64::from(AsRef::<[u8]>::as_ref(&block)[0]));
        [height, index, time].into_iter().for_each(|value| add(value.into()));
    }
    add(u64::from(AsRef::<[u8]>::as_ref(&transaction.txid)[0]));
    add(u64::from(AsRef::<[u8]>::as_ref(&transaction.wtxid)[0]));
    add(transaction.time);
    add(transaction.time_received);
    add(transaction.debit_spendable.to_sat());
    add(transaction.metadata.len() as u64);
    for output in transaction.outputs {
        add(output.value.to_sat());
        add(output.ownership as u64);
        add(output.script.as_bytes().iter().map(|byte| u64::from(*byte)).sum());
        output.descriptors.iter().for_each(|number| add(number.into()));
    }
}

/// A value as it was written, without its checksum.
fn value_of(stored: &[u8]) -> &[u8] {
    stored.get(..stored.len().saturating_sub(CHECK_LEN)).unwrap_or_default()
}

/// A copy of a wallet's files.
struct Direct {
    env: Env<WithoutTls>,
    confirmed: Database<Bytes, Bytes>,
    transactions: Database<Bytes, Bytes>,
}

impl Direct {
    #[allow(unsafe_code)]
    fn open(folder: &Path) -> Result<Self, Box<dyn std::error::Error>> {
        let mut options = EnvOpenOptions::new().read_txn_without_tls();
        options.map_size(MAP_SIZE).max_dbs(64);
        // SAFETY: the folder is a copy that the benchmark made for this walk; nothing else opens or changes it.
        let env = unsafe { options.open(folder)? };
        let txn = env.read_txn()?;
        let table = |name| env.open_database(&txn, Some(name))?.ok_or_else(|| format!("no table {name}").into());
        let tables: Result<_, Box<dyn std::error::Error>> =
            table("confirmed").and_then(|t| Ok((t, table("transactions")?)));
        let (confirmed, transactions) = tables?;
        txn.commit()?;
        Ok(Self { env, confirmed, transactions })
    }

    /// As one reads through an index: a cursor over the index, and a search for each row that it names.
    fn walk(&self) -> Result<Seen, Box<dyn std::error::Error>> {
        let txn = self.env.read_txn()?;
        let mut seen = (0, 0);
        for entry in self.confirmed.iter(&txn)? {
            let (_, order_position) = entry?;
            let row = self.transactions.get(&txn, value_of(order_position))?.ok_or("a row is missing")?;
            look(&WalletTransaction::view(&mut Reader::new(value_of(row)))?, &mut seen);
        }
        Ok(seen)
    }

    /// The quickest way there is where the index names all rows in their order: a cursor over both. The host walks so
    /// where it can.
    fn walk_in_step(&self) -> Result<Seen, Box<dyn std::error::Error>> {
        let txn = self.env.read_txn()?;
        let mut seen = (0, 0);
        for (entry, row) in self.confirmed.iter(&txn)?.zip(self.transactions.iter(&txn)?) {
            let ((_, order_position), (key, row)) = (entry?, row?);
            if key != value_of(order_position) {
                return Err("the rows are not in the order of the index".into());
            }
            look(&WalletTransaction::view(&mut Reader::new(value_of(row)))?, &mut seen);
        }
        Ok(seen)
    }
}

outrigger_sdk::export_plugin!(RowWalk, include_str!("../manifest.json"));
