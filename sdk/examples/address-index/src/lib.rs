//! An index of all scripts: the balance and the history of any address, without a wallet and without a rescan.
//!
//! ```toml
//! [[plugins]]
//! file = "address_index"
//! grants = ["chain/1", "store/1", "events/1", "log/1"]
//! max_store_mib = 32768       # about 100 bytes for each output and each input of the chain
//! ```
//!
//! The largest store holds about 300 million outputs and inputs. Mainnet has more, so an index of it needs files in the plugin's folder.

use std::time::Duration;

use outrigger_sdk::amount::Saturating;
use outrigger_sdk::bitcoin::hashes::{Hash, sha256};
use outrigger_sdk::bitcoin::{Amount, ScriptBuf, Txid};
use outrigger_sdk::follow::{BlockWithSpent, CURSOR_KEY, Follow, Follower, Following, Result as FollowResult};
use outrigger_sdk::options::NoOptions;
use outrigger_sdk::service::events::Event;
use outrigger_sdk::service::store::KeyRange;
use outrigger_sdk::service::{ErrorKind, Scope, ServiceError};
use outrigger_sdk::standard::to_script;
use outrigger_sdk::store::{Batch, each_row, open_store};
use outrigger_sdk::wire::Blob;
use outrigger_sdk::{Call, Host, Plugin, RpcError, amount, methods, plugin};
use serde_json::{Value, json};

/// The longest time that a call waits for the index.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// The key prefix of a script's rows.
type ScriptKey = [u8; 33];

fn script_key(script: &[u8]) -> ScriptKey {
    let mut key = [b's'; 33];
    key[1..].copy_from_slice(sha256::Hash::hash(script).as_byte_array());
    key
}

/// An output that pays to a script, or an input that spends one.
struct Entry {
    height: u32,
    /// The position of the transaction in its block.
    position: u32,
    spends: bool,
    /// The position of the output or of the input in its transaction.
    index: u32,
    txid: Txid,
    amount: Amount,
}

impl Entry {
    /// The row's key. Keys sort in the order of the chain.
    fn key(&self, script: &[u8]) -> Vec<u8> {
        let [height, position, index] = [self.height, self.position, self.index].map(u32::to_be_bytes);
        [&script_key(script)[..], &height, &position, &[u8::from(self.spends)], &index].concat()
    }

    fn value(&self) -> Vec<u8> {
        [self.txid.as_byte_array(), &self.amount.to_sat().to_be_bytes()[..]].concat()
    }

    fn read(key: &[u8], value: &[u8]) -> Result<Self, RpcError> {
        Self::decode(key, value).ok_or_else(damaged)
    }

    fn decode(key: &[u8], value: &[u8]) -> Option<Self> {
        let number = |at: usize| Some(u32::from_be_bytes(key.get(at..at + 4)?.try_into().ok()?));
        let (txid, satoshi) = value.split_first_chunk()?;
        Some(Self {
            height: number(33)?,
            position: number(37)?,
            spends: *key.get(41)? == 1,
            index: number(42)?,
            txid: Txid::from_byte_array(*txid),
            amount: Amount::from_sat(u64::from_be_bytes(satoshi.try_into().ok()?)),
        })
    }

    fn to_json(&self) -> Value {
        json!({
            "height": self.height,
            "txid": self.txid,
            if self.spends { "vin" } else { "vout" }: self.index,
            "amount": amount::to_json(self.amount),
        })
    }
}

/// The rows of a block's outputs and inputs.
fn rows(block: &BlockWithSpent, mut row: impl FnMut(Vec<u8>, Vec<u8>)) {
    let height = block.height;
    // The outputs of the genesis block cannot be spent.
    for (position, (transaction, spent)) in (0..).zip(block.transactions()).filter(|_| height > 0) {
        let txid = transaction.compute_txid();
        let mut entry = |spends, index, script: &ScriptBuf, amount| {
            let entry = Entry { height, position, spends, index, txid, amount };
            row(entry.key(script.as_bytes()), entry.value());
        };
        for (index, output) in (0..).zip(&transaction.output).filter(|(_, output)| !output.script_pubkey.is_op_return())
        {
            entry(false, index, &output.script_pubkey, output.value);
        }
        for (index, output) in (0..).zip(spent) {
            entry(true, index, &output.script_pubkey, output.value);
        }
    }
}

struct Index;

impl Follower for Index {
    fn connect(&mut self, block: &BlockWithSpent, store: &mut Batch) -> FollowResult {
        rows(block, |key, value| store.put(&key, &value));
        Ok(())
    }

    fn disconnect(&mut self, block: &BlockWithSpent, store: &mut Batch) -> FollowResult {
        rows(block, |key, _| store.delete(&key));
        Ok(())
    }
}

pub struct AddressIndex {
    following: Following,
}

#[plugin(
    id = "address-index",
    summary = "Balances and history of every script",
    services = ["chain/1", "store/1"],
    optional = ["events/1", "log/1"],
    events = ["tip"],
    requires(spent_outputs),
    restartable
)]
impl Plugin for AddressIndex {
    fn new(host: Host, _: NoOptions) -> Result<Self, String> {
        open_store(&host, Scope::NONE, 1, |_, _| Ok(()))?;
        Ok(Self { following: host.follow(Index)? })
    }

    fn event(&self, _: Event) {
        self.following.wake();
    }

    fn stop(&self) {
        self.following.stop();
    }
}

#[methods(category = "Address index")]
impl AddressIndex {
    /// Shows what a script has received and spent, in confirmed transactions.
    ///
    /// * `script` - An address, or a script in hex.
    ///
    /// # Result
    /// {"balance": n, "received": n, "spent": n}    (json object)
    #[method]
    fn getscriptbalance(&self, call: &Call<'_>, script: String) -> Result<Value, RpcError> {
        let key = self.ready(call, &script)?;
        // Each read is a batch. If a block arrives between two batches, the sums start again.
        loop {
            let before = cursor(call)?;
            let [mut received, mut spent] = [Amount::ZERO; 2];
            each_row(call.host, call.scope, KeyRange::prefix(&key), |key, value| {
                let entry = Entry::read(key, value)?;
                let sum = if entry.spends { &mut spent } else { &mut received };
                *sum = sum.saturating_add(entry.amount);
                Ok::<_, RpcError>(())
            })?;
            if before == cursor(call)? {
                let balance = received.checked_sub(spent).ok_or_else(damaged)?;
                let [balance, received, spent] = [balance, received, spent].map(amount::to_json);
                return Ok(json!({"balance": balance, "received": received, "spent": spent}));
            }
        }
    }

    /// Lists the outputs that pay to a script, and the inputs that spend them, in the order of the chain.
    ///
    /// * `script` - An address, or a script in hex.
    /// * `first_height` - Where to begin.
    /// * `count` - The most entries, at most 10000.
    ///
    /// # Result
    /// {"entries": [{"height": n, "txid": "hex", "vout" or "vin": n, "amount": n}, ...], "more": bool}    (json object)
    #[method]
    fn getscripthistory(
        &self,
        call: &Call<'_>,
        script: String,
        #[arg(default = 0)] first_height: u32,
        #[arg(default = 100)] count: u32,
    ) -> Result<Value, RpcError> {
        let key = self.ready(call, &script)?;
        let from = [&key[..], &first_height.to_be_bytes()].concat();
        let range = KeyRange { from: Some(Blob(from)), ..KeyRange::prefix(&key) };
        let rows = call.host.store.range(call.scope, range, count, false)?;
        let rows = rows.view()?;
        let entries = rows.rows.iter().map(|row| Ok(Entry::read(row.key, row.value)?.to_json()));
        Ok(json!({"entries": entries.collect::<Result<Vec<_>, RpcError>>()?, "more": rows.more}))
    }

    /// Waits until the index has the blocks that the client may know. Returns the key prefix of the script's rows.
    fn ready(&self, call: &Call<'_>, script: &str) -> Result<ScriptKey, RpcError> {
        let script = match to_script(script, call.network()?) {
            Ok(script) => script,
            Err(error) => ScriptBuf::from_hex(script).map_err(|_| RpcError::not_found(error.to_string()))?,
        };
        let timeout = call.deadline.map_or(MAX_WAIT, |deadline| MAX_WAIT.min(deadline / 2));
        self.following.wait_for(&call.host.chain.tip(call.scope)?, timeout)?;
        Ok(script_key(script.as_bytes()))
    }
}

fn damaged() -> RpcError {
    ServiceError::new(ErrorKind::Storage, "The index is damaged").into()
}

/// The index's position, as stored.
fn cursor(call: &Call<'_>) -> Result<Vec<Option<Blob>>, RpcError> {
    Ok(call.host.store.get(call.scope, vec![Blob(CURSOR_KEY.to_vec())])?)
}

outrigger_sdk::export_plugin!(AddressIndex);

#[cfg(test)]
mod tests;
