//! Executes a script on a stack.
//!
//! The checks run in Core's order, since the order determines the error that a client sees.

mod condition;
mod data;
mod numeric;
mod signature;

use bitcoin::Script;
use bitcoin::opcodes::Opcode;
use bitcoin::opcodes::all::*;

use self::condition::ConditionStack;
use super::checker::SEQUENCE_LOCKTIME_DISABLE_FLAG;
use super::limits::{MAX_OPS_PER_SCRIPT, MAX_SCRIPT_ELEMENT_SIZE, MAX_SCRIPT_SIZE, MAX_STACK_SIZE};
use super::number::{MAX_LOCKTIME_NUMBER_SIZE, MAX_NUMBER_SIZE};
use super::parse::{OP_16, OP_PUSHDATA4, Op, Reader, is_minimal_push};
use super::{Checker, Element, ExecutionData, Flags, ScriptError, SigVersion, Stack};

/// Executes a script on `stack`, which keeps its elements even if the script fails. The caller checks the final stack.
/// Resets the `code_separator` of `execution`. Only tapscript uses its other members.
pub fn eval_script<'a, C: Checker + ?Sized>(
    stack: &mut Stack<'a>,
    script: &'a Script,
    flags: Flags,
    checker: &mut C,
    sig_version: SigVersion,
    execution: &mut ExecutionData,
) -> Result<(), ScriptError> {
    let limited = match sig_version {
        SigVersion::Base | SigVersion::WitnessV0 => true,
        SigVersion::Tapscript => false,
        // The key path runs no script.
        SigVersion::Taproot => return Err(ScriptError::UnknownError),
    };
    if limited && script.len() > MAX_SCRIPT_SIZE {
        return Err(ScriptError::ScriptSize);
    }
    execution.code_separator = u32::MAX;
    let mut machine = Machine {
        stack,
        altstack: Stack::new(),
        conditions: ConditionStack::default(),
        script: script.as_bytes(),
        code_start: 0,
        op_count: 0,
        op_position: 0,
        limited,
        require_minimal: flags.contains(Flags::MINIMALDATA),
        flags,
        sig_version,
        checker,
        execution,
    };
    machine.run()
}

/// The state of a running script.
struct Machine<'s, 'a, C: ?Sized> {
    stack: &'s mut Stack<'a>,
    altstack: Stack<'a>,
    conditions: ConditionStack,
    script: &'a [u8],
    /// The offset of the scriptCode, after the last executed OP_CODESEPARATOR.
    code_start: usize,
    /// The opcodes above OP_16 so far, plus the keys of multisigs.
    op_count: usize,
    /// The index of the current opcode.
    op_position: u32,
    /// Whether the limits on size and opcodes apply; false in tapscript.
    limited: bool,
    require_minimal: bool,
    flags: Flags,
    sig_version: SigVersion,
    checker: &'s mut C,
    execution: &'s mut ExecutionData,
}

impl<'a, C: Checker + ?Sized> Machine<'_, 'a, C> {
    fn run(&mut self) -> Result<(), ScriptError> {
        let mut reader = Reader::new(self.script);
        while let Some(op) = reader.next() {
            self.step(op?, reader.position())?;
            if self.stack.len() + self.altstack.len() > MAX_STACK_SIZE {
                return Err(ScriptError::StackSize);
            }
            // No script is long enough to overflow the counter.
            self.op_position = self.op_position.wrapping_add(1);
        }
        if self.conditions.is_empty() { Ok(()) } else { Err(ScriptError::UnbalancedConditional) }
    }

    /// Checks an opcode, and executes it if all conditions are true. `next` is the offset of the next one.
    #[inline]
    fn step(&mut self, op: Op<'a>, next: usize) -> Result<(), ScriptError> {
        if op.data.len() > MAX_SCRIPT_ELEMENT_SIZE {
            return Err(ScriptError::PushSize);
        }
        let executes = self.conditions.all_true();
        if op.opcode <= OP_PUSHDATA4 {
            if executes {
                if self.require_minimal && !is_minimal_push(op.opcode, op.data) {
                    return Err(ScriptError::MinimalData);
                }
                self.stack.push(Element::borrowed(op.data));
            }
            return Ok(());
        }
        if self.limited && op.opcode > OP_16 {
            self.count_ops(1)?;
        }
        if is_disabled(op.opcode) {
            return Err(ScriptError::DisabledOpcode);
        }
        let opcode = Opcode::from(op.opcode);
        if opcode == OP_CODESEPARATOR
            && self.sig_version == SigVersion::Base
            && self.flags.contains(Flags::CONST_SCRIPTCODE)
        {
            return Err(ScriptError::OpCodeSeparator);
        }
        if executes {
            self.execute(opcode, next)
        } else if (OP_IF.to_u8()..=OP_ENDIF.to_u8()).contains(&op.opcode) {
            self.execute_conditional(opcode, false)
        } else {
            Ok(())
        }
    }

    fn count_ops(&mut self, ops: usize) -> Result<(), ScriptError> {
        self.op_count += ops;
        if self.op_count > MAX_OPS_PER_SCRIPT { Err(ScriptError::OpCount) } else { Ok(()) }
    }

    /// Executes an opcode other than a data push.
    fn execute(&mut self, opcode: Opcode, next: usize) -> Result<(), ScriptError> {
        match opcode {
            OP_PUSHNUM_NEG1 => self.push(Element::number(-1)),
            OP_PUSHNUM_1 | OP_PUSHNUM_2 | OP_PUSHNUM_3 | OP_PUSHNUM_4 | OP_PUSHNUM_5 | OP_PUSHNUM_6 | OP_PUSHNUM_7
            | OP_PUSHNUM_8 | OP_PUSHNUM_9 | OP_PUSHNUM_10 | OP_PUSHNUM_11 | OP_PUSHNUM_12 | OP_PUSHNUM_13
            | OP_PUSHNUM_14 | OP_PUSHNUM_15 | OP_PUSHNUM_16 => {
                self.push(Element::number(i64::from(opcode.to_u8() - OP_PUSHNUM_NEG1.to_u8()) - 1))
            }

            OP_NOP => Ok(()),
            OP_CLTV => self.check_lock_time(),
            OP_CSV => self.check_sequence(),
            OP_NOP1 | OP_NOP4 | OP_NOP5 | OP_NOP6 | OP_NOP7 | OP_NOP8 | OP_NOP9 | OP_NOP10 => {
                self.discourage(Flags::DISCOURAGE_UPGRADABLE_NOPS, ScriptError::DiscourageUpgradableNops)
            }
            OP_IF | OP_NOTIF | OP_ELSE | OP_ENDIF => self.execute_conditional(opcode, true),
            OP_VERIFY => {
                if !self.stack.element(0)?.as_bool() {
                    return Err(ScriptError::Verify);
                }
                self.stack.pop().map(drop)
            }
            OP_RETURN => Err(ScriptError::OpReturn),

            OP_1ADD | OP_1SUB | OP_NEGATE | OP_ABS | OP_NOT | OP_0NOTEQUAL => self.execute_unary(opcode),
            OP_WITHIN => self.execute_within(),

            OP_CODESEPARATOR => {
                self.code_start = next;
                self.execution.code_separator = self.op_position;
                Ok(())
            }
            OP_CHECKSIG => self.check_sig(false),
            OP_CHECKSIGVERIFY => self.check_sig(true),
            OP_CHECKSIGADD => self.check_sig_add(),
            OP_CHECKMULTISIG => self.check_multisig(false),
            OP_CHECKMULTISIGVERIFY => self.check_multisig(true),

            _ if (OP_ADD.to_u8()..=OP_MAX.to_u8()).contains(&opcode.to_u8()) => self.execute_binary(opcode),
            _ => self.execute_data(opcode),
        }
    }

    fn push(&mut self, element: Element<'a>) -> Result<(), ScriptError> {
        self.stack.push(element);
        Ok(())
    }

    /// The operand at `depth` of an arithmetic opcode.
    fn number(&self, depth: usize) -> Result<i64, ScriptError> {
        self.stack.number(depth, self.require_minimal, MAX_NUMBER_SIZE)
    }

    fn discourage(&self, flag: Flags, error: ScriptError) -> Result<(), ScriptError> {
        if self.flags.contains(flag) { Err(error) } else { Ok(()) }
    }

    /// Handles OP_IF to OP_ENDIF, even in branches that are not executed. OP_VERIF and OP_VERNOTIF in between fail.
    fn execute_conditional(&mut self, opcode: Opcode, executes: bool) -> Result<(), ScriptError> {
        let balanced = match opcode {
            OP_IF | OP_NOTIF => {
                let condition = executes && self.take_condition()? == (opcode == OP_IF);
                self.conditions.push(condition);
                true
            }
            OP_ELSE => self.conditions.toggle(),
            OP_ENDIF => self.conditions.pop(),
            _ => return Err(ScriptError::BadOpcode),
        };
        if balanced { Ok(()) } else { Err(ScriptError::UnbalancedConditional) }
    }

    /// Pops the argument of OP_IF or OP_NOTIF.
    fn take_condition(&mut self) -> Result<bool, ScriptError> {
        let argument = self.stack.last().ok_or(ScriptError::UnbalancedConditional)?;
        let minimal = matches!(argument.as_bytes(), [] | [1]);
        let condition = argument.as_bool();
        if self.sig_version == SigVersion::Tapscript && !minimal {
            return Err(ScriptError::TapscriptMinimalIf);
        }
        if self.sig_version == SigVersion::WitnessV0 && self.flags.contains(Flags::MINIMALIF) && !minimal {
            return Err(ScriptError::MinimalIf);
        }
        self.stack.pop()?;
        Ok(condition)
    }

    /// OP_CHECKLOCKTIMEVERIFY (BIP65): `(lock_time -- lock_time)`.
    fn check_lock_time(&mut self) -> Result<(), ScriptError> {
        if !self.flags.contains(Flags::CHECKLOCKTIMEVERIFY) {
            return Ok(());
        }
        let lock_time = self.stack.number(0, self.require_minimal, MAX_LOCKTIME_NUMBER_SIZE)?;
        if lock_time < 0 {
            return Err(ScriptError::NegativeLocktime);
        }
        if self.checker.check_lock_time(lock_time) { Ok(()) } else { Err(ScriptError::UnsatisfiedLocktime) }
    }

    /// OP_CHECKSEQUENCEVERIFY (BIP112): `(sequence -- sequence)`.
    fn check_sequence(&mut self) -> Result<(), ScriptError> {
        if !self.flags.contains(Flags::CHECKSEQUENCEVERIFY) {
            return Ok(());
        }
        let sequence = self.stack.number(0, self.require_minimal, MAX_LOCKTIME_NUMBER_SIZE)?;
        if sequence < 0 {
            return Err(ScriptError::NegativeLocktime);
        }
        // An operand with this bit is reserved for soft forks.
        if sequence & SEQUENCE_LOCKTIME_DISABLE_FLAG != 0 || self.checker.check_sequence(sequence) {
            return Ok(());
        }
        Err(ScriptError::UnsatisfiedLocktime)
    }
}

/// Whether an opcode fails even in a branch that is not executed (CVE-2010-5137): OP_CAT to OP_RIGHT, OP_INVERT to
/// OP_XOR, OP_2MUL, OP_2DIV, OP_MUL to OP_RSHIFT.
const fn is_disabled(opcode: u8) -> bool {
    matches!(opcode, 0x7e..=0x81 | 0x83..=0x86 | 0x8d..=0x8e | 0x95..=0x99)
}
