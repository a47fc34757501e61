//! Compares the results for random, mostly meaningful spends with those of Core's interpreter.
//!
//! `OUTRIGGER_DIFFERENTIAL_CASES` sets the number of cases per test. The default takes seconds.

mod programs;
pub(super) mod spends;

use std::env;

use bitcoin::consensus::serialize;
use bitcoin::{Transaction, TxOut};

use super::known;
use super::random::Random;
use crate::{Flags, ScriptError, TxContext, verify_input};

const DEFAULT_CASES: u64 = 4_000;

/// The flags that the reference library supports.
const REFERENCE_FLAGS: Flags = Flags::CONSENSUS;

fn cases() -> u64 {
    env::var("OUTRIGGER_DIFFERENTIAL_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(DEFAULT_CASES)
}

/// A random subset of the supported flags, mostly all of them.
fn random_flags(random: &mut Random) -> Flags {
    if !random.one_in(4) {
        return REFERENCE_FLAGS;
    }
    Flags::from_bits_truncate(random.next() as u32 & REFERENCE_FLAGS.bits()).with_implied()
}

pub(super) fn reference(tx: &Transaction, spent: &[TxOut], input: usize, flags: Flags) -> bool {
    let utxos: Vec<_> = spent
        .iter()
        .map(|output| bitcoinconsensus::Utxo {
            script_pubkey: output.script_pubkey.as_bytes().as_ptr(),
            script_pubkey_len: output.script_pubkey.len() as u32,
            value: output.value.to_sat() as i64,
        })
        .collect();
    let output = &spent[input];
    let result = bitcoinconsensus::verify_with_flags(
        output.script_pubkey.as_bytes(),
        output.value.to_sat(),
        &serialize(tx),
        Some(&utxos),
        input,
        flags.bits(),
    );
    // The library returns this error for a failed script. Other errors mean a wrong call.
    assert!(matches!(result, Ok(()) | Err(bitcoinconsensus::Error::ERR_SCRIPT)), "{result:?}");
    result.is_ok()
}

/// Compares both results for an input and returns ours.
fn compare(tx: &Transaction, spent: &[TxOut], input: usize, flags: Flags, case: u64) -> Result<(), ScriptError> {
    let ours = verify_input(&TxContext::new(tx, known(spent)), input, flags);
    let theirs = reference(tx, spent, input, flags);
    assert_eq!(ours.is_ok(), theirs, "case {case}: {ours:?} under {flags:?}\n{tx:#?}\n{spent:#?}");
    ours
}
