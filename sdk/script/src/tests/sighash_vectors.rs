//! Core's `sighash.json`: legacy signature hashes of random transactions; and the errors of signature hashes.

use bitcoin::consensus::deserialize;
use bitcoin::hashes::Hash;
use bitcoin::{Amount, OutPoint, Script, ScriptBuf, Transaction, TxOut, Witness};

use super::{bytes, known, rows, spending_tx, vectors};
use crate::TxContext;

#[test]
fn sighash_vectors_are_reproduced() {
    let Some(file) = vectors("sighash.json") else {
        return;
    };
    let mut count = 0;
    // The first row names the columns.
    for row in rows(&file).filter(|row| row.len() == 5) {
        let tx: Transaction = deserialize(&bytes(&row[0])).expect("a transaction");
        let script_code = ScriptBuf::from_bytes(bytes(&row[1]));
        let input = row[2].as_u64().expect("an input index") as usize;
        let hash_type = row[3].as_i64().expect("a hash type") as u32;
        let mut expected = bytes(&row[4]);
        // The file has hashes in reverse byte order.
        expected.reverse();

        let context = TxContext::new(&tx, Vec::<Option<TxOut>>::new());
        let sighash = context.legacy_sighash(input, &script_code, hash_type).expect("an input of the transaction");
        assert_eq!(sighash.as_byte_array().as_slice(), expected, "{row:?}");
        count += 1;
    }
    println!("sighash.json: {count} rows");
    assert!(count >= 500, "only {count} rows");
}

#[test]
fn an_unknown_input_type_or_output_has_no_sighash() {
    let code = Script::new();
    let tx = spending_tx(OutPoint::null(), code, Witness::new(), Amount::from_sat(1));
    let context = TxContext::new(&tx, known(&tx.output));
    assert_eq!(context.legacy_sighash(1, code, 1), None);
    assert_eq!(context.segwit_v0_sighash(1, code, Amount::ZERO, 1), None);
    assert_eq!(context.taproot_sighash(1, 0, None, None), None);
    assert_eq!(context.taproot_sighash(0, 0x80, None, None), None);
    let unknown = TxContext::new(&tx, vec![None::<TxOut>]);
    assert_eq!(unknown.taproot_sighash(0, 0, None, None), None);

    let without_outputs = Transaction { output: Vec::new(), ..tx.clone() };
    let context = TxContext::new(&without_outputs, known(&tx.output));
    assert_eq!(context.taproot_sighash(0, 3, None, None), None);
}
