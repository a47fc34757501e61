//! Tests of the script engine against published vectors, against another implementation, and by example.

mod asm;
mod differential;
mod random;
mod rules;
mod script_vectors;
mod sighash_vectors;
mod sigops;
mod taproot_spend;
mod taproot_vectors;
mod tx_vectors;

use bitcoin::absolute::LockTime;
use bitcoin::hex::FromHex;
use bitcoin::transaction::Version;
use bitcoin::{Amount, OutPoint, Script, ScriptBuf, Sequence, Transaction, TxIn, TxOut, Witness};
use serde_json::Value;

use crate::Flags;
use outrigger_vectors::read as vectors;

/// The test rows of a file of vectors, without comments (rows with a single text).
fn rows(vectors: &Value) -> impl Iterator<Item = &Vec<Value>> {
    vectors.as_array().into_iter().flatten().filter_map(Value::as_array).filter(|row| row.len() > 1)
}

/// The outputs that a transaction spends, all known.
fn known(outputs: &[TxOut]) -> Vec<Option<TxOut>> {
    outputs.iter().cloned().map(Some).collect()
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

fn bytes(value: &Value) -> Vec<u8> {
    Vec::from_hex(text(value)).expect("hex")
}

/// Parses Core's flag names, separated by commas. An empty text and `NONE` are the empty set.
fn read_flags(names: &Value) -> Flags {
    let flag = |name: &str| Flags::from_name(name).expect("a known flag");
    let names = text(names).split(',').map(str::trim).filter(|name| !name.is_empty() && *name != "NONE");
    names.map(flag).collect()
}

/// A transaction with one input, which spends `outpoint`, and one output without a script.
fn spending_tx(outpoint: OutPoint, script_sig: &Script, witness: Witness, value: Amount) -> Transaction {
    Transaction {
        version: Version::ONE,
        lock_time: LockTime::ZERO,
        input: vec![TxIn {
            previous_output: outpoint,
            script_sig: script_sig.to_owned(),
            sequence: Sequence::MAX,
            witness,
        }],
        output: vec![TxOut { value, script_pubkey: ScriptBuf::new() }],
    }
}
