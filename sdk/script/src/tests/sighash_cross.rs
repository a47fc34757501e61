//! Compares signature hashes of random transactions with the `bitcoin` crate's.

use bitcoin::absolute::LockTime;
use bitcoin::hashes::Hash;
use bitcoin::sighash::{Annex, Prevouts, SighashCache, TapSighashType};
use bitcoin::transaction::Version;
use bitcoin::{
    Amount, EcdsaSighashType, OutPoint, ScriptBuf, Sequence, TapLeafHash, Transaction, TxIn, TxOut, Txid, Witness,
};

use super::random::Random;
use crate::{SighashError, TxContext, annex_hash};

const TRANSACTIONS: u64 = 200;

pub(super) fn random_script(random: &mut Random, most: usize) -> ScriptBuf {
    let length = random.below(most);
    // Only opcodes without data, and no OP_CODESEPARATOR, which the `bitcoin` crate leaves to the caller.
    ScriptBuf::from_bytes((0..length).map(|_| 0x51 + random.below(0x50) as u8).collect())
}

pub(super) fn random_tx(random: &mut Random) -> (Transaction, Vec<TxOut>) {
    let output = |random: &mut Random| TxOut {
        value: Amount::from_sat(random.next() >> 14),
        script_pubkey: random_script(random, 300),
    };
    let input = |random: &mut Random| TxIn {
        previous_output: OutPoint::new(Txid::from_slice(&random.bytes(32)).expect("32 bytes"), random.next() as u32),
        script_sig: random_script(random, 9),
        sequence: Sequence(random.next() as u32),
        witness: Witness::new(),
    };
    let tx = Transaction {
        version: Version(random.next() as i32),
        lock_time: LockTime::from_consensus(random.next() as u32),
        input: (0..1 + random.below(6)).map(|_| input(random)).collect(),
        output: (0..random.below(6)).map(|_| output(random)).collect(),
    };
    let spent = tx.input.iter().map(|_| output(random)).collect();
    (tx, spent)
}

#[test]
fn ecdsa_hashes_agree() {
    for case in 0..TRANSACTIONS {
        let mut random = Random::new(case);
        let (tx, spent) = random_tx(&mut random);
        let context = TxContext::new(&tx, spent.as_slice());
        let mut cache = SighashCache::new(&tx);
        for (index, output) in spent.iter().enumerate() {
            let code = random_script(&mut random, 600);
            for hash_type in [1, 2, 3, 0x81, 0x82, 0x83] {
                let legacy = cache.legacy_signature_hash(index, &code, hash_type).expect("an input");
                assert_eq!(context.legacy_sighash(index, &code, hash_type), Ok(legacy), "{case} {hash_type}");
                let kind = EcdsaSighashType::from_consensus(hash_type);
                let segwit = cache.p2wsh_signature_hash(index, &code, output.value, kind).expect("an input");
                let ours = context.segwit_v0_sighash(index, &code, output.value, hash_type);
                assert_eq!(ours, Ok(segwit), "{case} {hash_type}");
            }
        }
    }
}

#[test]
fn taproot_hashes_agree() {
    for case in 0..TRANSACTIONS {
        let mut random = Random::new(case);
        let (tx, spent) = random_tx(&mut random);
        let context = TxContext::new(&tx, spent.as_slice());
        let mut cache = SighashCache::new(&tx);
        for index in 0..spent.len() {
            let annex = random.one_in(2).then(|| [vec![0x50], random.bytes(5)].concat());
            let leaf_hash = TapLeafHash::from_slice(&random.bytes(32)).expect("32 bytes");
            let leaf = random.one_in(2).then(|| (leaf_hash, random.next() as u32));
            for hash_type in [0, 1, 2, 3, 0x81, 0x82, 0x83] {
                let kind = TapSighashType::from_consensus_u8(hash_type).expect("a hash type");
                let bitcoin_annex = annex.as_deref().map(|annex| Annex::new(annex).expect("an annex"));
                let theirs = cache.taproot_signature_hash(index, &Prevouts::All(&spent), bitcoin_annex, leaf, kind);
                let ours = context.taproot_sighash(index, hash_type, annex.as_deref().map(annex_hash), leaf);
                match theirs {
                    Ok(theirs) => assert_eq!(ours, Ok(theirs), "{case} {hash_type}"),
                    Err(_) => assert_eq!(ours, Err(SighashError::NoMatchingOutput { index })),
                }
            }
        }
    }
}

#[test]
fn sighash_of_an_unknown_input_type_or_output_is_an_error() {
    let (tx, spent) = random_tx(&mut Random::new(1));
    let inputs = tx.input.len();
    let context = TxContext::new(&tx, spent.as_slice());
    let code = ScriptBuf::new();
    let error = SighashError::InputIndex { index: inputs, inputs };
    assert_eq!(context.legacy_sighash(inputs, &code, 1), Err(error));
    assert_eq!(context.segwit_v0_sighash(inputs, &code, Amount::ZERO, 1), Err(error));
    assert_eq!(context.taproot_sighash(inputs, 0, None, None), Err(error));
    assert_eq!(context.taproot_sighash(0, 0x80, None, None), Err(SighashError::HashType(0x80)));

    let unknown = TxContext::new(&tx, vec![None; inputs]);
    assert_eq!(unknown.taproot_sighash(0, 0, None, None), Err(SighashError::MissingSpentOutput { index: 0 }));
}
