//! Core's `sighash.json`: legacy signature hashes of random transactions.

use bitcoin::consensus::deserialize;
use bitcoin::hashes::Hash;
use bitcoin::{ScriptBuf, Transaction, TxOut};

use super::{bytes, rows, vectors};
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

        let context = TxContext::new(&tx, Vec::<TxOut>::new());
        let sighash = context.legacy_sighash(input, &script_code, hash_type).expect("an input of the transaction");
        assert_eq!(sighash.as_byte_array().as_slice(), expected, "{row:?}");
        count += 1;
    }
    println!("sighash.json: {count} rows");
    assert!(count >= 500, "only {count} rows");
}
