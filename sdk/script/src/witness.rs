//! Witness programs: version 0 (BIP141), taproot (BIP341), and undefined ones.

use bitcoin::hashes::{Hash, sha256};
use bitcoin::taproot::{
    TAPROOT_ANNEX_PREFIX, TAPROOT_CONTROL_MAX_NODE_COUNT, TAPROOT_CONTROL_NODE_SIZE, TAPROOT_LEAF_MASK,
    TAPROOT_LEAF_TAPSCRIPT,
};
use bitcoin::{Script, Witness};
use secp256k1::Parity;

use super::crypto::commits_to_tree;
use super::eval::eval_script;
use super::limits::{MAX_SCRIPT_ELEMENT_SIZE, MAX_STACK_SIZE, VALIDATION_WEIGHT_OFFSET};
use super::parse::Reader;
use super::sighash::{annex_hash, tap_leaf_hash, tap_merkle_root};
use super::{Checker, ExecutionData, Flags, ScriptError, SigVersion, Stack};

/// Size of a P2WPKH program, in bytes.
pub(super) const KEY_HASH_SIZE: usize = 20;
/// Size of a P2WSH program, in bytes.
pub(super) const SCRIPT_HASH_SIZE: usize = 32;
/// The pay-to-anchor program, of witness version 1.
const ANCHOR_PROGRAM: [u8; 2] = [0x4e, 0x73];

/// Verifies a witness against a program. `is_p2sh` is true if the program is a redeem script.
pub(super) fn verify_witness_program<C: Checker + ?Sized>(
    witness: &Witness,
    version: u8,
    program: &[u8],
    flags: Flags,
    checker: &mut C,
    is_p2sh: bool,
) -> Result<(), ScriptError> {
    if version == 1
        && !is_p2sh
        && let Ok(output_key) = program.try_into()
    {
        return verify_taproot(witness, output_key, flags, checker);
    }
    match (version, program.len()) {
        (0, SCRIPT_HASH_SIZE) => verify_script_hash(witness, program, flags, checker),
        (0, KEY_HASH_SIZE) => verify_key_hash(witness, program, flags, checker),
        (0, _) => Err(ScriptError::WitnessProgramWrongLength),
        (1, _) if !is_p2sh && program == ANCHOR_PROGRAM => Ok(()),
        _ if flags.contains(Flags::DISCOURAGE_UPGRADABLE_WITNESS_PROGRAM) => {
            Err(ScriptError::DiscourageUpgradableWitnessProgram)
        }
        // Anyone may spend an undefined program until a soft fork defines it.
        _ => Ok(()),
    }
}

/// P2WSH: the last element is the witness script.
fn verify_script_hash<C: Checker + ?Sized>(
    witness: &Witness,
    program: &[u8],
    flags: Flags,
    checker: &mut C,
) -> Result<(), ScriptError> {
    let script = witness.last().ok_or(ScriptError::WitnessProgramWitnessEmpty)?;
    if sha256::Hash::hash(script).as_byte_array() != program {
        return Err(ScriptError::WitnessProgramMismatch);
    }
    let mut stack: Stack<'_> = witness.iter().collect();
    stack.drop_top(1);
    let mut execution = ExecutionData::default();
    execute(stack, Script::from_bytes(script), flags, SigVersion::WitnessV0, checker, &mut execution)
}

/// P2WPKH: the script is the implied P2PKH.
fn verify_key_hash<C: Checker + ?Sized>(
    witness: &Witness,
    program: &[u8],
    flags: Flags,
    checker: &mut C,
) -> Result<(), ScriptError> {
    if witness.len() != 2 {
        return Err(ScriptError::WitnessProgramMismatch);
    }
    // DUP HASH160 <20 bytes> ... EQUALVERIFY CHECKSIG
    let mut script = [0; 5 + KEY_HASH_SIZE];
    let parts = [&[0x76, 0xa9, KEY_HASH_SIZE as u8][..], program, &[0x88, 0xac]];
    for (slot, byte) in script.iter_mut().zip(parts.into_iter().flatten()) {
        *slot = *byte;
    }
    let stack = witness.iter().collect();
    let mut execution = ExecutionData::default();
    execute(stack, Script::from_bytes(&script), flags, SigVersion::WitnessV0, checker, &mut execution)
}

/// P2TR: a single element is a signature for the output key; more are a script path spend.
fn verify_taproot<C: Checker + ?Sized>(
    witness: &Witness,
    output_key: &[u8; 32],
    flags: Flags,
    checker: &mut C,
) -> Result<(), ScriptError> {
    if !flags.contains(Flags::TAPROOT) {
        return Ok(());
    }
    let mut elements: Vec<&[u8]> = witness.iter().collect();
    if elements.is_empty() {
        return Err(ScriptError::WitnessProgramWitnessEmpty);
    }
    let mut execution = ExecutionData::default();
    if let [_, .., annex @ [TAPROOT_ANNEX_PREFIX, ..]] = elements.as_slice() {
        execution.annex = Some(annex_hash(annex));
        elements.pop();
    }
    match elements.as_slice() {
        [signature] => checker.check_schnorr_signature(signature, output_key, SigVersion::Taproot, &execution),
        [inputs @ .., script, control] => {
            execution.validation_weight_left = witness.size() as i64 + VALIDATION_WEIGHT_OFFSET;
            let stack = inputs.iter().copied().collect();
            verify_leaf(stack, script, control, output_key, flags, checker, &mut execution)
        }
        [] => Err(ScriptError::WitnessProgramWitnessEmpty),
    }
}

/// Checks that the output key commits to the leaf, and executes a tapscript. Undefined leaf versions succeed.
fn verify_leaf<'a, C: Checker + ?Sized>(
    stack: Stack<'a>,
    script: &'a [u8],
    control: &[u8],
    output_key: &[u8; 32],
    flags: Flags,
    checker: &mut C,
    execution: &mut ExecutionData,
) -> Result<(), ScriptError> {
    let (first, internal_key, path) = split_control(control).ok_or(ScriptError::TaprootWrongControlSize)?;
    let version = first & TAPROOT_LEAF_MASK;
    let leaf_hash = tap_leaf_hash(version, script);
    let parity = if first & 1 == 0 { Parity::Even } else { Parity::Odd };
    if !commits_to_tree(output_key, internal_key, tap_merkle_root(leaf_hash, path), parity) {
        return Err(ScriptError::WitnessProgramMismatch);
    }
    if version == TAPROOT_LEAF_TAPSCRIPT {
        execution.leaf_hash = Some(leaf_hash);
        return execute_tapscript(stack, Script::from_bytes(script), flags, checker, execution);
    }
    if flags.contains(Flags::DISCOURAGE_UPGRADABLE_TAPROOT_VERSION) {
        return Err(ScriptError::DiscourageUpgradableTaprootVersion);
    }
    Ok(())
}

/// The first byte, internal key and Merkle path of a control block; `None` if its size is invalid.
fn split_control(control: &[u8]) -> Option<(u8, &[u8; 32], &[u8])> {
    let (first, rest) = control.split_first()?;
    let (internal_key, path) = rest.split_first_chunk()?;
    let fits = path.len() % TAPROOT_CONTROL_NODE_SIZE == 0
        && path.len() <= TAPROOT_CONTROL_MAX_NODE_COUNT * TAPROOT_CONTROL_NODE_SIZE;
    fits.then_some((*first, internal_key, path))
}

/// Executes a tapscript. It succeeds if it contains an OP_SUCCESSx before any malformed push (BIP342).
fn execute_tapscript<'a, C: Checker + ?Sized>(
    stack: Stack<'a>,
    script: &'a Script,
    flags: Flags,
    checker: &mut C,
    execution: &mut ExecutionData,
) -> Result<(), ScriptError> {
    for op in Reader::new(script.as_bytes()) {
        if is_op_success(op?.opcode) {
            if flags.contains(Flags::DISCOURAGE_OP_SUCCESS) {
                return Err(ScriptError::DiscourageOpSuccess);
            }
            return Ok(());
        }
    }
    if stack.len() > MAX_STACK_SIZE {
        return Err(ScriptError::StackSize);
    }
    execute(stack, script, flags, SigVersion::Tapscript, checker, execution)
}

/// Executes a witness script, which must leave exactly one element, a true one.
fn execute<'a, C: Checker + ?Sized>(
    mut stack: Stack<'a>,
    script: &'a Script,
    flags: Flags,
    sig_version: SigVersion,
    checker: &mut C,
    execution: &mut ExecutionData,
) -> Result<(), ScriptError> {
    if stack.iter().any(|element| element.len() > MAX_SCRIPT_ELEMENT_SIZE) {
        return Err(ScriptError::PushSize);
    }
    eval_script(&mut stack, script, flags, checker, sig_version, execution)?;
    if stack.len() != 1 {
        return Err(ScriptError::CleanStack);
    }
    require_true(&stack)
}

const fn is_op_success(opcode: u8) -> bool {
    matches!(opcode, 80 | 98 | 126..=129 | 131..=134 | 137..=138 | 141..=142 | 149..=153 | 187..=254)
}

/// Fails unless the top element is true.
pub(super) fn require_true(stack: &Stack<'_>) -> Result<(), ScriptError> {
    if stack.last().is_some_and(|top| top.as_bool()) { Ok(()) } else { Err(ScriptError::EvalFalse) }
}
