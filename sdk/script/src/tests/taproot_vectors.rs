//! The wallet vectors of BIP341: script trees, signature hashes, key path spends.

use bitcoin::consensus::deserialize;
use bitcoin::hashes::Hash;
use bitcoin::{Amount, ScriptBuf, Transaction, TxOut};
use serde_json::Value;

use super::{bytes, known, vectors};
use crate::sighash::{tap_leaf_hash, tap_merkle_root};
use crate::{Flags, ScriptError, TxContext, verify_input};

fn leaves(tree: &Value) -> Vec<&Value> {
    match tree {
        Value::Array(branches) => branches.iter().flat_map(leaves).collect(),
        Value::Null => Vec::new(),
        leaf => vec![leaf],
    }
}

#[test]
fn bip341_leaf_hashes_and_merkle_roots() {
    let Some(file) = vectors("bip341_wallet.json") else {
        return;
    };
    let mut count = 0;
    for output in file["scriptPubKey"].as_array().expect("a list of outputs") {
        for (index, leaf) in leaves(&output["given"]["scriptTree"]).into_iter().enumerate() {
            let version = leaf["leafVersion"].as_u64().expect("a leaf version") as u8;
            let hash = tap_leaf_hash(version, &bytes(&leaf["script"]));
            let control = bytes(&output["expected"]["scriptPathControlBlocks"][index]);
            let root = tap_merkle_root(hash, &control[33..]);
            assert_eq!(hash.as_byte_array().as_slice(), bytes(&output["intermediary"]["leafHashes"][index]));
            assert_eq!(root.as_byte_array().as_slice(), bytes(&output["intermediary"]["merkleRoot"]));
            count += 1;
        }
    }
    println!("bip341_wallet.json: {count} leaves");
    assert!(count >= 10, "only {count} leaves");
}

#[test]
fn bip341_key_path_signature_hashes() {
    let Some(file) = vectors("bip341_wallet.json") else {
        return;
    };
    let mut count = 0;
    for case in file["keyPathSpending"].as_array().expect("a list of spends") {
        let spent: Vec<_> = case["given"]["utxosSpent"].as_array().expect("spent outputs").iter().map(output).collect();
        let unsigned: Transaction = deserialize(&bytes(&case["given"]["rawUnsignedTx"])).expect("a transaction");
        let context = TxContext::new(&unsigned, known(&spent));
        for spending in case["inputSpending"].as_array().expect("a list of inputs") {
            let input = spending["given"]["txinIndex"].as_u64().expect("an index") as usize;
            let hash_type = spending["given"]["hashType"].as_u64().expect("a hash type") as u8;
            let sighash = context.taproot_sighash(input, hash_type, None, None).expect("a signature hash");
            assert_eq!(sighash.as_byte_array().as_slice(), bytes(&spending["intermediary"]["sigHash"]));
            count += 1;
        }
        verify_signed(&bytes(&case["auxiliary"]["fullySignedTx"]), &spent);
    }
    println!("bip341_wallet.json: {count} signature hashes");
    assert!(count >= 7, "only {count} signature hashes");
}

fn output(value: &Value) -> TxOut {
    TxOut {
        value: Amount::from_sat(value["amountSats"].as_u64().expect("an amount")),
        script_pubkey: ScriptBuf::from_bytes(bytes(&value["scriptPubKey"])),
    }
}

/// Checks that all inputs verify, and that no taproot input does after a change of an amount that it commits to.
fn verify_signed(tx: &[u8], spent: &[TxOut]) {
    let tx: Transaction = deserialize(tx).expect("a transaction");
    let context = TxContext::new(&tx, known(spent));
    let mut changed = spent.to_vec();
    changed[0].value += Amount::ONE_SAT;
    let changed_context = TxContext::new(&tx, known(&changed));
    for (index, output) in spent.iter().enumerate() {
        assert_eq!(verify_input(&context, index, Flags::STANDARD), Ok(()), "input {index}");
        let anyone_can_pay = tx.input[index].witness.nth(0).is_some_and(|sig| sig.len() == 65 && sig[64] & 0x80 != 0);
        if output.script_pubkey.is_p2tr() && !anyone_can_pay {
            let result = verify_input(&changed_context, index, Flags::CONSENSUS);
            assert_eq!(result, Err(ScriptError::SchnorrSig), "input {index}");
        }
    }
}
