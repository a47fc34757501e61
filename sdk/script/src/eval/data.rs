//! Opcodes that move, compare and hash elements.

use bitcoin::hashes::{Hash, hash160, ripemd160, sha1, sha256, sha256d};
use bitcoin::opcodes::Opcode;
use bitcoin::opcodes::all::*;

use super::Machine;
use crate::{Checker, Element, ScriptError};

impl<C: Checker + ?Sized> Machine<'_, '_, C> {
    /// Executes such an opcode. Fails for any other.
    pub(super) fn execute_data(&mut self, opcode: Opcode) -> Result<(), ScriptError> {
        match opcode {
            OP_TOALTSTACK => {
                let element = self.stack.pop()?;
                self.altstack.push(element);
                Ok(())
            }
            OP_FROMALTSTACK => {
                let element = self.altstack.pop().map_err(|_| ScriptError::InvalidAltstackOperation)?;
                self.push(element)
            }
            OP_DROP => self.stack.pop().map(drop),
            OP_2DROP => {
                self.stack.require(2)?;
                self.stack.drop_top(2);
                Ok(())
            }
            OP_DUP => self.stack.copy(1, 1),
            OP_2DUP => self.stack.copy(2, 2),
            OP_3DUP => self.stack.copy(3, 3),
            OP_OVER => self.stack.copy(2, 1),
            OP_2OVER => self.stack.copy(4, 2),
            OP_ROT => self.stack.rotate(3, 1),
            OP_2ROT => self.stack.rotate(6, 2),
            OP_SWAP => self.stack.rotate(2, 1),
            OP_2SWAP => self.stack.rotate(4, 2),
            OP_NIP => self.stack.remove(1).map(drop),
            OP_TUCK => {
                self.stack.require(2)?;
                let top = self.stack.peek(0)?;
                self.stack.insert(2, top)
            }
            OP_IFDUP => {
                let top = self.stack.peek(0)?;
                if top.as_bool() { self.push(top) } else { Ok(()) }
            }
            OP_DEPTH => self.push(Element::number(self.stack.len() as i64)),
            OP_SIZE => {
                let size = self.stack.element(0)?.as_bytes().len();
                self.push(Element::number(size as i64))
            }
            OP_PICK | OP_ROLL => self.execute_pick(opcode),
            OP_EQUAL | OP_EQUALVERIFY => self.execute_equal(opcode),
            OP_RIPEMD160 | OP_SHA1 | OP_SHA256 | OP_HASH160 | OP_HASH256 => self.execute_hash(opcode),
            _ => Err(ScriptError::BadOpcode),
        }
    }

    /// OP_PICK: `(xn ... x0 n -- xn ... x0 xn)`. OP_ROLL removes xn.
    fn execute_pick(&mut self, opcode: Opcode) -> Result<(), ScriptError> {
        self.stack.require(2)?;
        let depth = self.number(0)?;
        self.stack.pop()?;
        let depth = usize::try_from(depth).map_err(|_| ScriptError::InvalidStackOperation)?;
        let element = if opcode == OP_ROLL { self.stack.remove(depth)? } else { self.stack.peek(depth)? };
        self.push(element)
    }

    /// OP_EQUAL: `(x1 x2 -- bool)`.
    fn execute_equal(&mut self, opcode: Opcode) -> Result<(), ScriptError> {
        let equal = self.stack.element(1)?.as_bytes() == self.stack.element(0)?.as_bytes();
        self.stack.drop_top(2);
        self.finish(equal, opcode == OP_EQUALVERIFY, ScriptError::EqualVerify)
    }

    /// The hash opcodes: `(x -- hash)`.
    fn execute_hash(&mut self, opcode: Opcode) -> Result<(), ScriptError> {
        let element = self.stack.element(0)?;
        let bytes = element.as_bytes();
        let hash = match opcode {
            OP_RIPEMD160 => Element::hash(ripemd160::Hash::hash(bytes).to_byte_array()),
            OP_SHA1 => Element::hash(sha1::Hash::hash(bytes).to_byte_array()),
            OP_SHA256 => Element::hash(sha256::Hash::hash(bytes).to_byte_array()),
            OP_HASH160 => Element::hash(hash160::Hash::hash(bytes).to_byte_array()),
            _ => Element::hash(sha256d::Hash::hash(bytes).to_byte_array()),
        };
        self.stack.pop()?;
        self.push(hash)
    }

    /// Pushes the result of a check. The VERIFY form of an opcode pushes only false, and then fails, since callers may
    /// inspect the stack of a failed script.
    pub(super) fn finish(&mut self, result: bool, verify: bool, error: ScriptError) -> Result<(), ScriptError> {
        if verify && result {
            return Ok(());
        }
        self.stack.push(Element::boolean(result));
        if verify { Err(error) } else { Ok(()) }
    }
}
