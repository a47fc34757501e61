//! Limits and witness programs at their boundaries, which the vectors do not cover.

use bitcoin::hashes::Hash;
use bitcoin::opcodes::Opcode;
use bitcoin::opcodes::all::*;
use bitcoin::script::{Builder, PushBytesBuf};
use bitcoin::{Amount, OutPoint, Script, ScriptBuf, TxOut, Txid, Witness};

use super::spending_tx;
use crate::limits::{MAX_OPS_PER_SCRIPT, MAX_SCRIPT_SIZE};
use crate::{
    ExecutionData, Flags, NoTransaction, ScriptError, SigVersion, Stack, TxContext, eval_script, verify_input,
};

fn verify(script_sig: &Script, script_pubkey: &Script, witness: Witness, flags: Flags) -> Result<(), ScriptError> {
    let outpoint = OutPoint::new(Txid::all_zeros(), 0);
    let tx = spending_tx(outpoint, script_sig, witness, Amount::from_sat(1));
    let spent = TxOut { value: Amount::from_sat(1), script_pubkey: script_pubkey.to_owned() };
    verify_input(&TxContext::new(&tx, vec![Some(spent)]), 0, flags)
}

/// The result of the consensus rules for a script, bare and as P2WSH.
fn run(script: &[u8]) -> [Result<(), ScriptError>; 2] {
    let script = Script::from_bytes(script);
    let witness = Witness::from_slice(&[script.as_bytes()]);
    let empty = Script::new();
    [
        verify(empty, script, Witness::new(), Flags::CONSENSUS),
        verify(empty, &script.to_p2wsh(), witness, Flags::CONSENSUS),
    ]
}

/// The result for a witness program as a redeem script.
fn run_nested(program: &Script, witness: Witness, flags: Flags) -> Result<(), ScriptError> {
    let push = PushBytesBuf::try_from(program.to_bytes()).expect("a short script");
    let script_sig = Builder::new().push_slice(push).into_script();
    verify(&script_sig, &program.to_p2sh(), witness, flags)
}

fn repeat(opcode: Opcode, count: usize) -> Vec<u8> {
    vec![opcode.to_u8(); count]
}

#[test]
fn pushes_do_not_count_as_opcodes() {
    let pairs = [repeat(OP_PUSHNUM_16, 100), repeat(OP_DROP, 100)].concat();
    let full = [pairs, repeat(OP_NOP, MAX_OPS_PER_SCRIPT - 100), repeat(OP_PUSHNUM_16, 1)].concat();
    assert_eq!(run(&full), [Ok(()); 2]);
    let over = [repeat(OP_NOP, 1), full].concat();
    assert_eq!(run(&over), [Err(ScriptError::OpCount); 2]);
    // A branch that is not executed counts, too.
    let branch = [repeat(OP_PUSHBYTES_0, 1), repeat(OP_IF, 1), repeat(OP_NOP, 200), repeat(OP_ENDIF, 1)].concat();
    assert_eq!(run(&branch), [Err(ScriptError::OpCount); 2]);
}

#[test]
fn scripts_have_a_size_limit() {
    let of_size = |size: usize| {
        let push = [vec![0x4d, 0x08, 0x02], vec![1; 520], vec![OP_DROP.to_u8()]].concat();
        let mut script = push.repeat(size / push.len());
        script.resize(size, OP_PUSHNUM_1.to_u8());
        script
    };
    let [bare, _] = run(&of_size(MAX_SCRIPT_SIZE));
    assert_eq!(bare, Ok(()));
    assert_eq!(run(&of_size(MAX_SCRIPT_SIZE + 1)), [Err(ScriptError::ScriptSize); 2]);
}

#[test]
fn the_altstack_counts_towards_the_stack() {
    let pushes = |count| [repeat(OP_PUSHNUM_1, 100), repeat(OP_TOALTSTACK, 100), repeat(OP_PUSHNUM_1, count)].concat();
    let [bare, _] = run(&pushes(900));
    assert_eq!(bare, Ok(()));
    assert_eq!(run(&pushes(901)), [Err(ScriptError::StackSize); 2]);
}

#[test]
fn programs_have_two_to_forty_bytes() {
    let program = |length: u8| {
        let script = [vec![0x52, length], vec![1; length.into()]].concat();
        verify(Script::new(), Script::from_bytes(&script), Witness::new(), Flags::STANDARD)
    };
    let reserved = Err(ScriptError::DiscourageUpgradableWitnessProgram);
    assert_eq!([2, 40].map(program), [reserved; 2]);
    // Otherwise it is an ordinary script that leaves two elements.
    assert_eq!(program(41), Err(ScriptError::CleanStack));
}

#[test]
fn anchors_are_free_to_spend() {
    let verify = |script: &Script, flags| verify(Script::new(), script, Witness::new(), flags);
    let anchor = ScriptBuf::new_p2a();
    assert_eq!(verify(&anchor, Flags::STANDARD), Ok(()));
    // Neither nested in P2SH, nor with another program.
    let reserved = Err(ScriptError::DiscourageUpgradableWitnessProgram);
    assert_eq!(run_nested(&anchor, Witness::new(), Flags::STANDARD), reserved);
    assert_eq!(run_nested(&anchor, Witness::new(), Flags::CONSENSUS), Ok(()));
    let other = Script::from_bytes(&[0x51, 2, 0x4e, 0x74]);
    assert_eq!(verify(other, Flags::STANDARD), reserved);
    assert_eq!(verify(other, Flags::CONSENSUS), Ok(()));
}

#[test]
fn taproot_behind_p2sh_is_free_to_spend() {
    let program = ScriptBuf::from_bytes([vec![0x51, 32], vec![1; 32]].concat());
    let signature = Witness::from_slice(&[[0; 64]]);
    assert_eq!(run_nested(&program, signature.clone(), Flags::CONSENSUS), Ok(()));
    let reserved = Err(ScriptError::DiscourageUpgradableWitnessProgram);
    assert_eq!(run_nested(&program, signature.clone(), Flags::STANDARD), reserved);
    let bare = verify(Script::new(), &program, signature, Flags::CONSENSUS);
    assert_eq!(bare, Err(ScriptError::SchnorrSig));
}

#[test]
fn the_version_of_relative_lock_times_is_unsigned() {
    let script = Builder::new().push_int(1).push_opcode(OP_CSV).into_script();
    let outpoint = OutPoint::new(Txid::all_zeros(), 0);
    let mut tx = spending_tx(outpoint, Script::new(), Witness::new(), Amount::from_sat(1));
    tx.input[0].sequence = bitcoin::Sequence(1);
    for (version, expected) in [
        (-1, Ok(())),
        (0, Err(ScriptError::UnsatisfiedLocktime)),
        (1, Err(ScriptError::UnsatisfiedLocktime)),
        (2, Ok(())),
    ] {
        tx.version = bitcoin::transaction::Version(version);
        let spent = TxOut { value: Amount::from_sat(1), script_pubkey: script.clone() };
        let result = verify_input(&TxContext::new(&tx, vec![Some(spent)]), 0, Flags::CONSENSUS);
        assert_eq!(result, expected, "version {version}");
    }
}

#[test]
fn the_signature_is_looked_at_before_its_key() {
    let bad = |signature: &[u8], flags| {
        let signature = PushBytesBuf::try_from(signature.to_vec()).expect("a short signature");
        let script = Builder::new().push_slice(signature).push_slice([1; 5]).push_opcode(OP_CHECKSIG).into_script();
        verify(Script::new(), &script, Witness::new(), flags)
    };
    assert_eq!(bad(&[9; 9], Flags::STRICTENC), Err(ScriptError::SigDer));
    assert_eq!(bad(&[], Flags::STRICTENC), Err(ScriptError::PubkeyType));
    assert_eq!(bad(&[], Flags::empty()), Err(ScriptError::EvalFalse));
}

#[test]
fn small_numbers_are_pushes() {
    let only_pushes = |opcode: Opcode| {
        let script_pubkey = Script::from_bytes(&[0x51]);
        verify(Script::from_bytes(&[opcode.to_u8()]), script_pubkey, Witness::new(), Flags::SIGPUSHONLY)
    };
    // OP_RESERVED counts as a push, but fails when executed.
    assert_eq!(only_pushes(OP_PUSHNUM_16), Ok(()));
    assert_eq!(only_pushes(OP_RESERVED), Err(ScriptError::BadOpcode));
    assert_eq!(only_pushes(OP_NOP), Err(ScriptError::SigPushOnly));
}

#[test]
fn a_script_begins_without_a_code_separator() {
    let mut execution = ExecutionData { code_separator: 5, ..ExecutionData::default() };
    let script = Script::from_bytes(&[0x51, 0x00]);
    let mut stack = Stack::new();
    let version = SigVersion::Tapscript;
    let result = eval_script(&mut stack, script, Flags::CONSENSUS, &mut NoTransaction, version, &mut execution);
    assert_eq!((result, execution.code_separator), (Ok(()), u32::MAX));
    assert_eq!(stack.iter().collect::<Vec<_>>(), [&[1][..], &[]]);
    // The key path runs no script.
    let version = SigVersion::Taproot;
    let result = eval_script(&mut stack, script, Flags::CONSENSUS, &mut NoTransaction, version, &mut execution);
    assert_eq!(result, Err(ScriptError::UnknownError));
}
