//! Random programs over all opcodes.
//!
//! Most random programs fail, and two interpreters easily agree on a failure. So a program that succeeds here gets checks
//! of all elements of its final stack. The reference then accepts it only if its final stack is the same.

use bitcoin::hashes::Hash;
use bitcoin::opcodes::all::*;
use bitcoin::script::{Builder, PushBytesBuf};
use bitcoin::taproot::{LeafVersion, TaprootBuilder};
use bitcoin::{Amount, OutPoint, Script, ScriptBuf, Sequence, Transaction, TxOut, Txid, Witness, XOnlyPublicKey};
use secp256k1::Secp256k1;

use super::super::spending_tx;
use super::{REFERENCE_FLAGS, Random, cases, compare, random_flags};
use crate::{ExecutionData, ScriptError, SigVersion, Stack, TransactionChecker, TxContext, eval_script};

const MAX_CHECKED: usize = 60;

/// Numbers at the limits of script numbers.
const NUMBERS: [i64; 14] = [-1, 0, 1, 2, 3, 16, 17, 127, 128, -255, 256, 0x7fff_ffff, -0x7fff_ffff, 0x8000_0000];

/// Most open blocks that are closed at the end of a program.
const MAX_OPEN_BLOCKS: usize = 6;

fn instruction(random: &mut Random) -> Vec<u8> {
    match random.below(12) {
        0..4 => Builder::new().push_int(*random.pick(&NUMBERS)).into_bytes(),
        4 => {
            let length = random.below(6);
            let data = PushBytesBuf::try_from(random.bytes(length)).expect("short data");
            Builder::new().push_slice(data).into_bytes()
        }
        5 => vec![OP_PUSHNUM_1.to_u8() + random.below(4) as u8],
        6 => vec![random.pick(&[OP_IF, OP_NOTIF, OP_ELSE, OP_ENDIF, OP_VERIFY, OP_CODESEPARATOR]).to_u8()],
        7 => vec![random.pick(&[OP_CLTV, OP_CSV, OP_WITHIN, OP_CHECKSIG, OP_CHECKMULTISIG, OP_CHECKSIGADD]).to_u8()],
        8 if random.one_in(4) => vec![random.next() as u8],
        // The stack opcodes, then arithmetic and hashes.
        8 | 9 => vec![OP_TOALTSTACK.to_u8() + random.below(20) as u8],
        _ => vec![OP_1ADD.to_u8() + random.below(33) as u8],
    }
}

/// A random program. With `grown` it only gets instructions after which it still succeeds.
fn program(random: &mut Random, grown: Option<SigVersion>) -> Vec<u8> {
    let mut script = Vec::new();
    for _ in 0..1 + random.below(40) {
        let longer = [script.clone(), instruction(random)].concat();
        if grown.is_none_or(|sig_version| closed(&longer, sig_version).is_some()) {
            script = longer;
        }
    }
    grown.and_then(|sig_version| closed(&script, sig_version)).unwrap_or(script)
}

/// The program with its open blocks closed; `None` if it then fails.
fn closed(program: &[u8], sig_version: SigVersion) -> Option<Vec<u8>> {
    (0..MAX_OPEN_BLOCKS)
        .map(|open| [program, &[OP_ENDIF.to_u8()].repeat(open)].concat())
        .find(|script| checked_program(script, sig_version).is_some())
}

fn check_stack(program: &[u8], stack: &Stack<'_>) -> Vec<u8> {
    let mut script = program.to_vec();
    for element in stack.iter().rev() {
        let data = PushBytesBuf::try_from(element.to_vec()).expect("short data");
        script.extend(Builder::new().push_slice(data).push_opcode(OP_EQUALVERIFY).into_bytes());
    }
    script.push(OP_PUSHNUM_1.to_u8());
    script
}

/// Runs a program under the rules of `sig_version`. Returns it with checks of its final stack.
fn checked_program(program: &[u8], sig_version: SigVersion) -> Option<Vec<u8>> {
    let tx = unsigned();
    let context = TxContext::new(&tx, Vec::<Option<TxOut>>::new());
    let mut checker = TransactionChecker::new(&context, 0);
    let mut stack = Stack::new();
    let mut execution = ExecutionData { validation_weight_left: 1000, ..ExecutionData::default() };
    let script = Script::from_bytes(program);
    eval_script(&mut stack, script, REFERENCE_FLAGS, &mut checker, sig_version, &mut execution).ok()?;
    (stack.len() <= MAX_CHECKED).then(|| check_stack(program, &stack))
}

fn unsigned() -> Transaction {
    let outpoint = OutPoint::new(Txid::all_zeros(), 1);
    let mut tx = spending_tx(outpoint, Script::new(), Witness::new(), Amount::from_sat(1));
    tx.input[0].sequence = Sequence(3);
    tx
}

/// The output and witness that run a script under the rules of `sig_version`.
fn output_of(script: Vec<u8>, sig_version: SigVersion) -> (ScriptBuf, Witness) {
    let script = ScriptBuf::from_bytes(script);
    match sig_version {
        SigVersion::Base | SigVersion::Taproot => (script, Witness::new()),
        SigVersion::WitnessV0 => (script.to_p2wsh(), Witness::from_slice(&[script.as_bytes()])),
        SigVersion::Tapscript => {
            let internal = XOnlyPublicKey::from_slice(&[2; 32]).expect("a point");
            let builder = TaprootBuilder::new().add_leaf(0, script.clone()).expect("a full tree");
            let info = builder.finalize(&Secp256k1::new(), internal).expect("a complete tree");
            let control = info.control_block(&(script.clone(), LeafVersion::TapScript)).expect("the leaf is there");
            let witness = Witness::from_slice(&[script.into_bytes(), control.serialize()]);
            (ScriptBuf::new_p2tr_tweaked(info.output_key()), witness)
        }
    }
}

fn compare_program(
    script: Vec<u8>,
    sig_version: SigVersion,
    random: &mut Random,
    case: u64,
) -> Result<(), ScriptError> {
    let (script_pubkey, witness) = output_of(script, sig_version);
    let mut tx = unsigned();
    tx.input[0].witness = witness;
    let spent = [TxOut { value: Amount::from_sat(2), script_pubkey }];
    compare(&tx, &spent, 0, random_flags(random), case)
}

#[test]
fn random_programs_leave_the_same_stack() {
    let (mut ran, mut failed) = (0, 0);
    for case in 0..cases() {
        let mut random = Random::new(!case);
        let sig_version = *random.pick(&[SigVersion::Base, SigVersion::WitnessV0, SigVersion::Tapscript]);
        let grown = (!random.one_in(3)).then_some(sig_version);
        let program = program(&mut random, grown);
        match checked_program(&program, sig_version) {
            Some(script) => {
                let result = compare_program(script, sig_version, &mut random, case);
                ran += u64::from(result.is_ok());
            }
            None => {
                // Both interpreters fail, unless an OP_SUCCESSx in tapscript makes it succeed.
                let _ = compare_program(program, sig_version, &mut random, case);
                failed += 1;
            }
        }
    }
    println!("random programs: {ran} with their whole stack checked, {failed} that fail");
    assert!(ran > cases() / 2, "only {ran} programs ran");
}
