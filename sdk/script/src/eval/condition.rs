//! The conditions of nested OP_IF blocks.

/// The stack of conditions. Opcodes execute if all conditions are true, so it stores only the depth and the first false
/// condition (like Bitcoin Core's `ConditionStack`). Each operation takes constant time.
#[derive(Debug, Default)]
pub(super) struct ConditionStack {
    depth: usize,
    first_false: Option<usize>,
}

impl ConditionStack {
    pub(super) const fn is_empty(&self) -> bool {
        self.depth == 0
    }

    /// Whether opcodes execute.
    pub(super) const fn all_true(&self) -> bool {
        self.first_false.is_none()
    }

    /// Opens a block.
    pub(super) fn push(&mut self, condition: bool) {
        if !condition && self.first_false.is_none() {
            self.first_false = Some(self.depth);
        }
        self.depth += 1;
    }

    /// Inverts the innermost condition. Returns false if no block is open.
    pub(super) fn toggle(&mut self) -> bool {
        let Some(top) = self.depth.checked_sub(1) else {
            return false;
        };
        match self.first_false {
            None => self.first_false = Some(top),
            Some(first) if first == top => self.first_false = None,
            // An outer false condition hides this one.
            Some(_) => {}
        }
        true
    }

    /// Closes the innermost block. Returns false if no block is open.
    pub(super) fn pop(&mut self) -> bool {
        let Some(top) = self.depth.checked_sub(1) else {
            return false;
        };
        self.depth = top;
        if self.first_false == Some(top) {
            self.first_false = None;
        }
        true
    }
}
