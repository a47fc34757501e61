use bitcoin::opcodes::all::*;
use bitcoin::script::{Builder, PushBytesBuf};
use bitcoin::{
    Amount, OutPoint, PubkeyHash, Script, ScriptBuf, Transaction, TxOut, Txid, WPubkeyHash, Witness, hashes::Hash,
};

use super::spending_tx;
use crate::{Flags, legacy_sigop_count, p2sh_sigop_count, script_sigop_count, transaction_sigop_cost};

fn one_of_two() -> Builder {
    Builder::new().push_int(1).push_slice([2; 33]).push_slice([3; 33]).push_int(2).push_opcode(OP_CHECKMULTISIG)
}

fn push_of(script: &Script) -> ScriptBuf {
    let push = PushBytesBuf::try_from(script.to_bytes()).expect("a short script");
    Builder::new().push_int(0).push_slice(push).into_script()
}

/// The cost of spending `script_pubkey` by a transaction with one P2PKH output.
fn cost(script_sig: &Script, script_pubkey: &Script, witness: &[&[u8]], flags: Flags) -> u64 {
    let (tx, spent) = spend(script_sig, script_pubkey, witness);
    transaction_sigop_cost(&tx, |_| Some(&spent), flags).expect("the spent output is known")
}

fn spend(script_sig: &Script, script_pubkey: &Script, witness: &[&[u8]]) -> (Transaction, TxOut) {
    let outpoint = OutPoint::new(Txid::from_byte_array([1; 32]), 0);
    let mut tx = spending_tx(outpoint, script_sig, Witness::from_slice(witness), Amount::from_sat(1));
    tx.output[0].script_pubkey = ScriptBuf::new_p2pkh(&PubkeyHash::all_zeros());
    (tx, TxOut { value: Amount::from_sat(2), script_pubkey: script_pubkey.to_owned() })
}

const OUTPUT_COST: u64 = 4;

#[test]
fn multisigs_count_by_their_keys_only_if_accurate() {
    let script = one_of_two()
        .push_opcode(OP_IF)
        .push_opcode(OP_CHECKSIG)
        .push_opcode(OP_CHECKSIGVERIFY)
        .push_opcode(OP_ENDIF)
        .into_script();
    assert_eq!(script_sigop_count(&script, true), 4);
    assert_eq!(script_sigop_count(&script, false), 22);
    // The number counts only as the opcode directly before.
    let pushed = Builder::new().push_slice([2]).push_opcode(OP_CHECKMULTISIGVERIFY).into_script();
    assert_eq!(script_sigop_count(&pushed, true), 20);
    let apart = Builder::new().push_int(2).push_opcode(OP_NOP).push_opcode(OP_CHECKMULTISIG).into_script();
    assert_eq!(script_sigop_count(&apart, true), 20);
    // Pushed bytes and the bytes after a malformed push do not count.
    assert_eq!(script_sigop_count(Script::from_bytes(&[0xac, 0x01, 0xac, 0x05, 0xac]), true), 1);
}

#[test]
fn redeem_scripts_count_if_the_script_sig_only_pushes() {
    let redeem = one_of_two().into_script();
    let script_pubkey = redeem.to_p2sh();
    assert_eq!(p2sh_sigop_count(&push_of(&redeem), &script_pubkey), 2);
    let not_pushes = [push_of(&redeem).to_bytes(), vec![OP_NOP.to_u8()]].concat();
    assert_eq!(p2sh_sigop_count(Script::from_bytes(&not_pushes), &script_pubkey), 0);
    let small_number_last = [push_of(&redeem).to_bytes(), vec![OP_PUSHNUM_1.to_u8()]].concat();
    assert_eq!(p2sh_sigop_count(Script::from_bytes(&small_number_last), &script_pubkey), 0);
    assert_eq!(p2sh_sigop_count(&push_of(&redeem), &redeem), 0);
}

#[test]
fn costs_depend_on_where_the_operations_are() {
    let empty = Script::new();
    let multisig = one_of_two().into_script();
    let nested = |program: &Script| {
        let push = PushBytesBuf::try_from(program.to_bytes()).expect("a short script");
        Builder::new().push_slice(push).into_script()
    };
    // The scriptPubKey of a spent output costs nothing; a scriptSig does.
    assert_eq!(cost(empty, &multisig, &[], Flags::CONSENSUS), OUTPUT_COST);
    assert_eq!(cost(&multisig, empty, &[], Flags::CONSENSUS), 4 * 20 + OUTPUT_COST);

    let script_hash = multisig.to_p2sh();
    assert_eq!(cost(&push_of(&multisig), &script_hash, &[], Flags::CONSENSUS), 4 * 2 + OUTPUT_COST);
    assert_eq!(cost(&push_of(&multisig), &script_hash, &[], Flags::empty()), OUTPUT_COST);

    let key_hash = ScriptBuf::new_p2wpkh(&WPubkeyHash::all_zeros());
    assert_eq!(cost(empty, &key_hash, &[&[], &[]], Flags::CONSENSUS), 1 + OUTPUT_COST);
    assert_eq!(cost(empty, &key_hash, &[&[], &[]], Flags::P2SH), OUTPUT_COST);
    assert_eq!(cost(&nested(&key_hash), &key_hash.to_p2sh(), &[], Flags::CONSENSUS), 1 + OUTPUT_COST);

    let program = multisig.to_p2wsh();
    let witness = [&[][..], multisig.as_bytes()];
    assert_eq!(cost(empty, &program, &witness, Flags::CONSENSUS), 2 + OUTPUT_COST);
    assert_eq!(cost(&nested(&program), &program.to_p2sh(), &witness, Flags::CONSENSUS), 2 + OUTPUT_COST);
    assert_eq!(cost(empty, &program, &[], Flags::CONSENSUS), OUTPUT_COST);

    // Taproot has a separate budget.
    let taproot = [vec![0x51, 32], vec![1; 32]].concat();
    assert_eq!(cost(empty, Script::from_bytes(&taproot), &witness, Flags::CONSENSUS), OUTPUT_COST);
}

#[test]
fn a_coinbase_spends_nothing() {
    let (mut tx, _) = spend(Script::from_bytes(&[OP_CHECKSIG.to_u8(); 2]), Script::new(), &[]);
    assert_eq!(legacy_sigop_count(&tx), 3);
    assert_eq!(transaction_sigop_cost(&tx, |_| None, Flags::CONSENSUS), None);
    tx.input[0].previous_output = OutPoint::null();
    assert_eq!(transaction_sigop_cost(&tx, |_| None, Flags::CONSENSUS), Some(12));
}
