//! Core's `script_tests.json`: pairs of scripts with flags and the exact error.

use bitcoin::absolute::LockTime;
use bitcoin::script::Builder;
use bitcoin::transaction::Version;
use bitcoin::{Amount, OutPoint, ScriptBuf, Sequence, Transaction, TxIn, TxOut, Witness};
use serde_json::Value;

use super::{asm, bytes, known, read_flags, rows, spending_tx, text, vectors};
use crate::{Flags, ScriptError, TxContext, verify_input};

/// The least number of rows. Fewer rows mean that the test does not parse the file correctly.
const MIN_ROWS: usize = 1_200;

struct Row {
    script_sig: ScriptBuf,
    spent: TxOut,
    witness: Witness,
    flags: Flags,
    expected: String,
}

impl Row {
    fn read(row: &[Value]) -> Row {
        let (funding, row) = match row {
            [Value::Array(funding), row @ ..] => (funding.as_slice(), row),
            row => (&[][..], row),
        };
        let [script_sig, script_pubkey, flags, expected, ..] = row else {
            unreachable!("a row has scripts, flags and an error: {row:?}");
        };
        let (amount, witness) = funding
            .split_last()
            .map_or((0.0, &[][..]), |(amount, witness)| (amount.as_f64().expect("an amount in bitcoin"), witness));
        Row {
            script_sig: asm::parse(text(script_sig)),
            spent: TxOut {
                value: Amount::from_btc(amount).expect("an amount in range"),
                script_pubkey: asm::parse(text(script_pubkey)),
            },
            witness: witness.iter().map(bytes).collect::<Vec<_>>().into(),
            flags: read_flags(flags),
            expected: text(expected).to_owned(),
        }
    }

    fn verify(&self, flags: Flags) -> Result<(), ScriptError> {
        let credit = Transaction {
            version: Version::ONE,
            lock_time: LockTime::ZERO,
            input: vec![TxIn {
                previous_output: OutPoint::null(),
                script_sig: Builder::new().push_int(0).push_int(0).into_script(),
                sequence: Sequence::MAX,
                witness: Witness::new(),
            }],
            output: vec![self.spent.clone()],
        };
        let outpoint = OutPoint::new(credit.compute_txid(), 0);
        let tx = spending_tx(outpoint, &self.script_sig, self.witness.clone(), self.spent.value);
        verify_input(&TxContext::new(&tx, known(&credit.output)), 0, flags)
    }
}

fn name(result: Result<(), ScriptError>) -> &'static str {
    result.map_or_else(|error| error.name(), |()| "OK")
}

#[test]
fn script_vectors_have_their_results() {
    let Some(file) = vectors("script_tests.json") else {
        return;
    };
    let mut failures = Vec::new();
    let mut count = 0;
    for row in rows(&file) {
        let parsed = Row::read(row);
        let actual = name(parsed.verify(parsed.flags));
        if actual != parsed.expected {
            failures.push(format!("{actual}: {row:?}"));
        }
        count += 1;
    }
    println!("script_tests.json: {count} rows");
    assert!(failures.is_empty(), "{} rows differ:\n{}", failures.len(), failures.join("\n"));
    assert!(count >= MIN_ROWS, "only {count} rows");
}

#[test]
fn script_vectors_keep_their_results_when_flags_only_take_away() {
    let Some(file) = vectors("script_tests.json") else {
        return;
    };
    for row in rows(&file) {
        let parsed = Row::read(row);
        let succeeds = parsed.expected == "OK";
        for flag in Flags::all().iter() {
            let changed = if succeeds { parsed.flags.difference(flag) } else { parsed.flags | flag };
            assert_eq!(parsed.verify(changed).is_ok(), succeeds, "with {changed:?}: {row:?}");
        }
    }
}
