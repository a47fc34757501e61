//! Tests of the script engine against published vectors, against another implementation, and by example.
//!
//! The vectors of Bitcoin Core and the BIPs are not part of this repository. The directory that holds them is
//! named by the environment variable `OUTRIGGER_VECTORS`; a test whose file is not there says so and passes.

mod asm;
mod differential;
mod observing;
mod random;
mod rules;
mod script_vectors;
mod sighash_cross;
mod sighash_vectors;
mod sigops;
mod taproot_spend;
mod taproot_vectors;
mod tx_vectors;

use std::env;
use std::path::PathBuf;

use bitcoin::absolute::LockTime;
use bitcoin::hex::FromHex;
use bitcoin::transaction::Version;
use bitcoin::{Amount, OutPoint, Script, ScriptBuf, Sequence, Transaction, TxIn, TxOut, Witness};
use serde_json::Value;

/// Reads a file of vectors; `None`, with a note on the terminal, if the directory is not there.
fn vectors(file: &str) -> Option<Value> {
    let fallback = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/vectors"));
    let directory = env::var_os("OUTRIGGER_VECTORS").map_or(fallback, PathBuf::from);
    if !directory.is_dir() {
        println!("skipped: vectors not found");
        return None;
    }
    let text = std::fs::read_to_string(directory.join(file)).expect("the directory of vectors has the file");
    Some(serde_json::from_str(&text).expect("vectors are JSON"))
}

/// The rows of a file of vectors that are tests: comments are rows of a single text.
fn rows(vectors: &Value) -> impl Iterator<Item = &Vec<Value>> {
    vectors.as_array().into_iter().flatten().filter_map(Value::as_array).filter(|row| row.len() > 1)
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

fn bytes(value: &Value) -> Vec<u8> {
    Vec::from_hex(text(value)).expect("hex")
}

/// A transaction that spends `outpoint` by a single input to one output without a script.
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
