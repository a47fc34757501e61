//! `gettxoutsetinfo`: sums and hashes over all unspent outputs.

use bitcoin::hashes::{Hash, HashEngine, sha256, sha256d};
use bitcoin::{Amount, OutPoint};
use outrigger_sdk::amount::{self, Saturating};
use outrigger_sdk::params::encode_hex;
use outrigger_sdk::service::chain::UnspentOutput;
use serde_json::{Map, Value, json};

use crate::error::ChainError;
use crate::muhash::MuHash;
use crate::{Context, Outcome, args};

/// The most outputs that are asked for at once.
const BATCH: u32 = 4096;

/// The bytes that bitcoind counts in `bogosize` for an output beside its script: id, index, height with the mark of a coinbase,
/// value, length of the script.
const BOGO_OVERHEAD: u64 = 32 + 4 + 4 + 8 + 2;

/// A hash over all unspent outputs.
enum SetHash {
    None,
    /// Of them one after the other: `hash_serialized_3`.
    Serialized(Box<sha256::HashEngine>),
    /// Of them in any order: `muhash`.
    MuHash(Box<MuHash>),
}

impl SetHash {
    fn named(name: &str) -> Result<Self, ChainError> {
        match name {
            "none" => Ok(Self::None),
            "hash_serialized_3" => Ok(Self::Serialized(Box::new(sha256d::Hash::engine()))),
            "muhash" => Ok(Self::MuHash(Box::default())),
            unknown => Err(ChainError::HashType(unknown.to_owned())),
        }
    }

    fn add(&mut self, output: &UnspentOutput) {
        match self {
            Self::None => {}
            Self::Serialized(engine) => engine.input(&output.coin.hashed_as(&output.outpoint)),
            Self::MuHash(hash) => hash.insert(&output.coin.hashed_as(&output.outpoint)),
        }
    }

    /// The hash under its name, as bitcoind shows it: the last byte first.
    fn finish(self) -> Option<(&'static str, String)> {
        match self {
            Self::None => None,
            Self::Serialized(engine) => Some(("hash_serialized_3", sha256d::Hash::from_engine(*engine).to_string())),
            Self::MuHash(hash) => {
                let mut bytes = sha256::Hash::hash(&hash.finish()).to_byte_array();
                bytes.reverse();
                Some(("muhash", encode_hex(&bytes)))
            }
        }
    }
}

pub fn get_tx_out_set_info(context: &Context<'_>) -> Outcome {
    let name = context.params.given(0).map_or(Ok("hash_serialized_3"), args::text)?;
    let mut hash = SetHash::named(name)?;
    if context.params.given(1).is_some() {
        return Err(ChainError::NoCoinIndex);
    }
    let info = context.host.chain.info(context.scope)?;
    let (mut outputs, mut transactions, mut size, mut total) = (0_u64, 0_u64, 0_u64, Amount::ZERO);
    let mut last: Option<OutPoint> = None;
    loop {
        let batch = context.host.chain.coins_after(context.scope, last, BATCH)?;
        if batch.is_empty() {
            break;
        }
        for output in &batch {
            outputs += 1;
            transactions += u64::from(last.is_none_or(|last| last.txid != output.outpoint.txid));
            size += BOGO_OVERHEAD + output.coin.output.script_pubkey.len() as u64;
            total = total.saturating_add(output.coin.output.value);
            hash.add(output);
            last = Some(output.outpoint);
        }
    }
    let mut object = Map::new();
    let mut put = |key: &str, value: Value| object.insert(key.to_owned(), value);
    put("height", json!(info.tip.height));
    put("bestblock", json!(info.tip.hash));
    put("txouts", json!(outputs));
    put("bogosize", json!(size));
    if let Some((name, hash)) = hash.finish() {
        put(name, json!(hash));
    }
    put("total_amount", amount::to_json(total));
    put("transactions", json!(transactions));
    put("disk_size", json!(info.size_on_disk.unwrap_or_default()));
    Ok(Value::Object(object))
}
