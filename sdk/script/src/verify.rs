//! Verifies an input: its scriptSig, scriptPubKey, redeem script and witness.

use bitcoin::{Script, Witness};

use super::checker::TransactionChecker;
use super::eval::eval_script;
use super::parse::{is_push_of, is_push_only, witness_program};
use super::sighash::TxContext;
use super::witness::{require_true, verify_witness_program};
use super::{Checker, ExecutionData, Flags, ScriptError, SigVersion, Stack};

/// Verifies an input of a transaction against the output that it spends. The error is the script's, or
/// [`ScriptError::UnknownError`] if the input does not exist or its spent output is unknown.
pub fn verify_input(context: &TxContext<'_>, input_index: usize, flags: Flags) -> Result<(), ScriptError> {
    let input = context.tx().input.get(input_index).ok_or(ScriptError::UnknownError)?;
    let spent = context.spent_output(input_index).ok_or(ScriptError::UnknownError)?;
    let mut checker = TransactionChecker::new(context, input_index);
    verify_script(&input.script_sig, &spent.script_pubkey, &input.witness, flags, &mut checker)
}

/// Verifies that `script_sig` and `witness` satisfy `script_pubkey`. Flags [imply](Flags::with_implied) others. The
/// error is the first in Core's order of checks.
pub fn verify_script<C: Checker + ?Sized>(
    script_sig: &Script,
    script_pubkey: &Script,
    witness: &Witness,
    flags: Flags,
    checker: &mut C,
) -> Result<(), ScriptError> {
    let flags = flags.with_implied();
    if flags.contains(Flags::SIGPUSHONLY) && !is_push_only(script_sig.as_bytes()) {
        return Err(ScriptError::SigPushOnly);
    }
    let pays_to_script_hash = flags.contains(Flags::P2SH) && script_pubkey.is_p2sh();

    let mut stack = Stack::new();
    eval_base(&mut stack, script_sig, flags, checker)?;
    let pushed = if pays_to_script_hash { stack.clone() } else { Stack::new() };
    eval_base(&mut stack, script_pubkey, flags, checker)?;
    require_true(&stack)?;

    let mut stack_size = stack.len();
    let mut had_witness = false;
    if flags.contains(Flags::WITNESS)
        && let Some((version, program)) = witness_program(script_pubkey.as_bytes())
    {
        if !script_sig.is_empty() {
            return Err(ScriptError::WitnessMalleated);
        }
        verify_witness_program(witness, version, program, flags, checker, false)?;
        // The program's own rules leave a single element.
        (stack_size, had_witness) = (1, true);
    }
    if pays_to_script_hash {
        (stack_size, had_witness) = verify_redeem_script(script_sig, pushed, witness, flags, checker)?;
    }

    if flags.contains(Flags::CLEANSTACK) && stack_size != 1 {
        return Err(ScriptError::CleanStack);
    }
    if flags.contains(Flags::WITNESS) && !had_witness && !witness.is_empty() {
        return Err(ScriptError::WitnessUnexpected);
    }
    Ok(())
}

/// Executes the redeem script of a P2SH output (BIP16) on the stack that the scriptSig `pushed`. Returns the number of
/// elements left on the stack, and whether the redeem script is a witness program.
fn verify_redeem_script<C: Checker + ?Sized>(
    script_sig: &Script,
    mut pushed: Stack<'_>,
    witness: &Witness,
    flags: Flags,
    checker: &mut C,
) -> Result<(usize, bool), ScriptError> {
    if !is_push_only(script_sig.as_bytes()) {
        return Err(ScriptError::SigPushOnly);
    }
    let element = pushed.pop()?;
    let redeem_script = Script::from_bytes(element.as_bytes());
    // Its elements may borrow from the redeem script, too.
    let mut stack = pushed;
    eval_base(&mut stack, redeem_script, flags, checker)?;
    require_true(&stack)?;

    if flags.contains(Flags::WITNESS)
        && let Some((version, program)) = witness_program(redeem_script.as_bytes())
    {
        if !is_push_of(script_sig.as_bytes(), redeem_script.as_bytes()) {
            return Err(ScriptError::WitnessMalleatedP2sh);
        }
        verify_witness_program(witness, version, program, flags, checker, true)?;
        return Ok((1, true));
    }
    Ok((stack.len(), false))
}

/// Executes a script outside of a witness.
fn eval_base<'a, C: Checker + ?Sized>(
    stack: &mut Stack<'a>,
    script: &'a Script,
    flags: Flags,
    checker: &mut C,
) -> Result<(), ScriptError> {
    eval_script(stack, script, flags, checker, SigVersion::Base, &mut ExecutionData::default())
}
