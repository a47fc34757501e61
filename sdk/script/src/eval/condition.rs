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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn condition_stack_behaves_as_a_list_of_conditions() {
        // All sequences of eight actions, compared with a plain vector.
        for choices in 0..4u32.pow(8) {
            let mut stack = ConditionStack::default();
            let mut plain: Vec<bool> = Vec::new();
            for step in 0..8 {
                match choices >> (2 * step) & 3 {
                    0 => assert_eq!(stack.pop(), plain.pop().is_some()),
                    1 => {
                        assert_eq!(stack.toggle(), !plain.is_empty());
                        if let Some(last) = plain.last_mut() {
                            *last = !*last;
                        }
                    }
                    choice => {
                        stack.push(choice == 2);
                        plain.push(choice == 2);
                    }
                }
                assert_eq!(stack.is_empty(), plain.is_empty());
                assert_eq!(stack.all_true(), plain.iter().all(|condition| *condition));
            }
        }
    }
}
