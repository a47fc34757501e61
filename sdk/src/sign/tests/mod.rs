//! Tests of the solver as a whole. What bitcoind answers to whole requests is tested with the plugin `signing`.

mod batches;
mod policies;
mod vectors;

use bitcoin::absolute::LockTime;
use bitcoin::hashes::Hash;
use bitcoin::transaction::Version;
use bitcoin::{Amount, OutPoint, ScriptBuf, Sequence, Transaction, TxIn, TxOut, Txid, Witness};

/// An unsigned transaction with one output that spends made-up outpoints.
fn spend(inputs: u32) -> Transaction {
    let input = |vout| TxIn {
        previous_output: OutPoint { txid: Txid::all_zeros(), vout },
        script_sig: ScriptBuf::new(),
        sequence: Sequence::MAX,
        witness: Witness::new(),
    };
    Transaction {
        version: Version::TWO,
        lock_time: LockTime::ZERO,
        input: (0..inputs).map(input).collect(),
        output: vec![TxOut { value: Amount::from_sat(1_000), script_pubkey: ScriptBuf::new() }],
    }
}

fn pays(script_pubkey: ScriptBuf) -> Option<TxOut> {
    Some(TxOut { value: Amount::from_sat(100_000), script_pubkey })
}
