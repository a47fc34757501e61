//! Arithmetic opcodes. Operands have at most four bytes; results may have five.

use bitcoin::opcodes::Opcode;
use bitcoin::opcodes::all::*;

use super::Machine;
use crate::{Checker, Element, ScriptError};

impl<C: Checker + ?Sized> Machine<'_, '_, C> {
    /// Opcodes with one operand: `(in -- out)`.
    pub(super) fn execute_unary(&mut self, opcode: Opcode) -> Result<(), ScriptError> {
        let value = self.number(0)?;
        let result = match opcode {
            OP_1ADD => value + 1,
            OP_1SUB => value - 1,
            OP_NEGATE => -value,
            OP_ABS => value.abs(),
            OP_NOT => i64::from(value == 0),
            OP_0NOTEQUAL => i64::from(value != 0),
            _ => return Err(ScriptError::BadOpcode),
        };
        self.stack.pop()?;
        self.push(Element::number(result))
    }

    /// Opcodes with two operands: `(x1 x2 -- out)`.
    pub(super) fn execute_binary(&mut self, opcode: Opcode) -> Result<(), ScriptError> {
        self.stack.require(2)?;
        let first = self.number(1)?;
        let second = self.number(0)?;
        let result = match opcode {
            OP_ADD => first + second,
            OP_SUB => first - second,
            OP_BOOLAND => i64::from(first != 0 && second != 0),
            OP_BOOLOR => i64::from(first != 0 || second != 0),
            OP_NUMEQUAL | OP_NUMEQUALVERIFY => i64::from(first == second),
            OP_NUMNOTEQUAL => i64::from(first != second),
            OP_LESSTHAN => i64::from(first < second),
            OP_GREATERTHAN => i64::from(first > second),
            OP_LESSTHANOREQUAL => i64::from(first <= second),
            OP_GREATERTHANOREQUAL => i64::from(first >= second),
            OP_MIN => first.min(second),
            OP_MAX => first.max(second),
            _ => return Err(ScriptError::BadOpcode),
        };
        self.stack.drop_top(2);
        if opcode == OP_NUMEQUALVERIFY {
            return self.finish(result != 0, true, ScriptError::NumEqualVerify);
        }
        self.push(Element::number(result))
    }

    /// OP_WITHIN: `(x min max -- bool)`, true if min <= x < max.
    pub(super) fn execute_within(&mut self) -> Result<(), ScriptError> {
        self.stack.require(3)?;
        let value = self.number(2)?;
        let from = self.number(1)?;
        let below = self.number(0)?;
        self.stack.drop_top(3);
        self.push(Element::boolean((from..below).contains(&value)))
    }
}
