//! Core's `tx_valid.json` and `tx_invalid.json`: transactions with their spent outputs and flags.

use std::collections::{HashMap, HashSet};

use bitcoin::consensus::deserialize;
use bitcoin::{Amount, OutPoint, Transaction, TxOut};
use serde_json::Value;

use super::{asm, bytes, read_flags, rows, text, vectors};
use crate::{Flags, TxContext, verify_input};

const MAX_MONEY: u64 = 21_000_000 * 100_000_000;

struct Row {
    /// `None` if the bytes do not decode as a transaction.
    tx: Option<Transaction>,
    outputs: HashMap<OutPoint, TxOut>,
    flags: Flags,
}

impl Row {
    fn read(row: &[Value]) -> Row {
        let [inputs, tx, flags] = row else {
            unreachable!("a row has inputs, a transaction and flags: {row:?}");
        };
        let outputs = inputs.as_array().expect("a list of inputs").iter().map(|input| {
            let txid = text(&input[0]).parse().expect("a txid");
            // -1 is the largest index.
            let vout = input[1].as_i64().expect("an output index") as u32;
            let value = Amount::from_sat(input[3].as_u64().unwrap_or(0));
            (OutPoint::new(txid, vout), TxOut { value, script_pubkey: asm::parse(text(&input[2])) })
        });
        Row { tx: deserialize(&bytes(tx)).ok(), outputs: outputs.collect(), flags: read_flags(flags) }
    }

    /// Whether the transaction is well-formed and all inputs verify.
    fn is_valid(&self, flags: Flags) -> bool {
        let Some(tx) = &self.tx else { return false };
        let spent: Vec<_> = tx.input.iter().map(|input| self.outputs.get(&input.previous_output).cloned()).collect();
        let context = TxContext::new(tx, spent);
        is_well_formed(tx) && (0..tx.input.len()).all(|input| verify_input(&context, input, flags).is_ok())
    }
}

/// The context-free rules for a transaction. Some of the invalid transactions break them.
fn is_well_formed(tx: &Transaction) -> bool {
    let outpoints: HashSet<_> = tx.input.iter().map(|input| input.previous_output).collect();
    let amounts_fit = tx
        .output
        .iter()
        .try_fold(0u64, |sum, output| sum.checked_add(output.value.to_sat()).filter(|sum| *sum <= MAX_MONEY))
        .is_some();
    let inputs_fit = if tx.is_coinbase() {
        (2..=100).contains(&tx.input[0].script_sig.len())
    } else {
        tx.input.iter().all(|input| !input.previous_output.is_null())
    };
    !tx.input.is_empty() && !tx.output.is_empty() && outpoints.len() == tx.input.len() && amounts_fit && inputs_fit
}

fn check(file: &str, valid: bool, min_rows: usize) {
    let Some(vectors) = vectors(file) else { return };
    let mut count = 0;
    for (index, row) in rows(&vectors).enumerate() {
        let parsed = Row::read(row);
        assert_eq!(parsed.is_valid(parsed.flags), valid, "row {index}: {row:?}");
        for flag in Flags::all().iter() {
            let changed = if valid { parsed.flags.difference(flag) } else { parsed.flags | flag };
            assert_eq!(parsed.is_valid(changed), valid, "row {index} with {changed:?}: {row:?}");
        }
        count += 1;
    }
    println!("{file}: {count} rows");
    assert!(count >= min_rows, "only {count} rows");
}

#[test]
fn valid_transactions_are_valid() {
    check("tx_valid.json", true, 100);
}

#[test]
fn invalid_transactions_are_invalid() {
    check("tx_invalid.json", false, 80);
}
