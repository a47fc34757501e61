//! The stack of script execution, which allocates nothing per opcode.
//!
//! An element is either a slice of the script or the witness, which it borrows, or a result of at most 32 bytes (a
//! number, a boolean, a hash), which it stores inline. So it is `Copy`.

use bitcoin::script::write_scriptint;

use super::ScriptError;
use super::number::{as_bool, decode_number};

const INLINE_SIZE: usize = 32;

/// An element of the stack.
#[derive(Clone, Copy)]
pub struct Element<'a>(Repr<'a>);

#[derive(Clone, Copy)]
enum Repr<'a> {
    Borrowed(&'a [u8]),
    Inline { length: u8, bytes: [u8; INLINE_SIZE] },
}

impl<'a> Element<'a> {
    /// An element that borrows its bytes.
    pub const fn borrowed(bytes: &'a [u8]) -> Element<'a> {
        Element(Repr::Borrowed(bytes))
    }

    /// The shortest encoding of a script number. Results of arithmetic have at most five bytes.
    pub(super) fn number(value: i64) -> Element<'a> {
        let mut bytes = [0; size_of::<i64>()];
        let length = write_scriptint(&mut bytes, value);
        Element::computed(bytes.get(..length).unwrap_or_default())
    }

    /// A boolean: the byte 1, or empty.
    pub const fn boolean(value: bool) -> Element<'a> {
        const TRUE: &[u8] = &[1];
        Element(Repr::Borrowed(if value { TRUE } else { &[] }))
    }

    pub(super) fn hash<const N: usize>(hash: [u8; N]) -> Element<'a> {
        const { assert!(N <= INLINE_SIZE) }
        Element::computed(&hash)
    }

    /// A result of at most [`INLINE_SIZE`] bytes, stored inline.
    fn computed(result: &[u8]) -> Element<'a> {
        let mut bytes = [0; INLINE_SIZE];
        for (slot, byte) in bytes.iter_mut().zip(result) {
            *slot = *byte;
        }
        Element(Repr::Inline { length: result.len().min(INLINE_SIZE) as u8, bytes })
    }

    /// The element's bytes.
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Repr::Borrowed(bytes) => bytes,
            Repr::Inline { length, bytes } => bytes.get(..usize::from(*length)).unwrap_or_default(),
        }
    }

    /// The element as a boolean: false if it is zero of any length and sign.
    pub fn as_bool(&self) -> bool {
        as_bool(self.as_bytes())
    }
}

/// The stack of a script, bottom element first.
#[derive(Clone, Default)]
pub struct Stack<'a> {
    elements: Vec<Element<'a>>,
}

impl<'a> Stack<'a> {
    /// An empty stack.
    pub const fn new() -> Stack<'a> {
        Stack { elements: Vec::new() }
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.elements.len()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }

    /// The elements, bottom first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &[u8]> + ExactSizeIterator {
        self.elements.iter().map(Element::as_bytes)
    }

    /// Pushes an element.
    pub fn push(&mut self, element: Element<'a>) {
        self.elements.push(element);
    }

    /// Pops the top element. Fails with [`ScriptError::InvalidStackOperation`] if the stack is empty.
    pub fn pop(&mut self) -> Result<Element<'a>, ScriptError> {
        self.elements.pop().ok_or(ScriptError::InvalidStackOperation)
    }

    /// The top element; `None` if the stack is empty.
    pub fn last(&self) -> Option<&Element<'a>> {
        self.elements.last()
    }

    /// Copies the element at `depth`. The top is at 0.
    pub(super) fn peek(&self, depth: usize) -> Result<Element<'a>, ScriptError> {
        self.element(depth).copied()
    }

    pub(super) fn element(&self, depth: usize) -> Result<&Element<'a>, ScriptError> {
        let index = self.index(depth)?;
        self.elements.get(index).ok_or(ScriptError::InvalidStackOperation)
    }

    /// The element at `depth` as a number. A number that is too long or not minimal is [`ScriptError::UnknownError`],
    /// as in Core, which throws an exception.
    pub(super) fn number(&self, depth: usize, require_minimal: bool, max_size: usize) -> Result<i64, ScriptError> {
        let element = self.element(depth)?;
        decode_number(element.as_bytes(), require_minimal, max_size).ok_or(ScriptError::UnknownError)
    }

    pub(super) fn require(&self, count: usize) -> Result<(), ScriptError> {
        if self.len() < count { Err(ScriptError::InvalidStackOperation) } else { Ok(()) }
    }

    /// Drops the `count` top elements, or all if there are fewer.
    pub(super) fn drop_top(&mut self, count: usize) {
        self.elements.truncate(self.len().saturating_sub(count));
    }

    pub(super) fn remove(&mut self, depth: usize) -> Result<Element<'a>, ScriptError> {
        let index = self.index(depth)?;
        Ok(self.elements.remove(index))
    }

    /// Inserts an element below the `depth` top elements.
    pub(super) fn insert(&mut self, depth: usize, element: Element<'a>) -> Result<(), ScriptError> {
        self.require(depth)?;
        self.elements.insert(self.len() - depth, element);
        Ok(())
    }

    /// Rotates the `count` top elements so that the `by` lowest of them come to the top.
    pub(super) fn rotate(&mut self, count: usize, by: usize) -> Result<(), ScriptError> {
        self.require(count)?;
        let start = self.len() - count;
        if let Some(top) = self.elements.get_mut(start..) {
            top.rotate_left(by.min(count));
        }
        Ok(())
    }

    /// Copies `count` elements to the top. The lowest is at `depth - 1`.
    pub(super) fn copy(&mut self, depth: usize, count: usize) -> Result<(), ScriptError> {
        self.require(depth)?;
        let start = self.len() - depth;
        self.elements.extend_from_within(start..start + count.min(depth));
        Ok(())
    }

    fn index(&self, depth: usize) -> Result<usize, ScriptError> {
        self.len().checked_sub(depth.saturating_add(1)).ok_or(ScriptError::InvalidStackOperation)
    }
}

/// The elements of a witness, the first at the bottom.
impl<'a> FromIterator<&'a [u8]> for Stack<'a> {
    fn from_iter<I: IntoIterator<Item = &'a [u8]>>(elements: I) -> Stack<'a> {
        Stack { elements: elements.into_iter().map(Element::borrowed).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(stack: &Stack<'_>) -> Vec<u8> {
        stack.iter().map(|element| element[0]).collect()
    }

    fn sample() -> Stack<'static> {
        (1..=6).map(Element::number).fold(Stack::new(), |mut stack, element| {
            stack.push(element);
            stack
        })
    }

    #[test]
    fn depth_counts_from_the_top() {
        let mut stack = sample();
        assert_eq!(stack.peek(0).map(|top| top.as_bytes().to_vec()), Ok(vec![6]));
        assert!(stack.peek(6).is_err());
        assert_eq!(stack.remove(5).map(|bottom| bottom.as_bytes().to_vec()), Ok(vec![1]));
        assert_eq!(stack.insert(1, Element::number(9)), Ok(()));
        assert_eq!(numbers(&stack), [2, 3, 4, 5, 9, 6]);
    }

    #[test]
    fn stack_rotates_and_copies() {
        let mut stack = sample();
        assert_eq!(stack.rotate(3, 1), Ok(()));
        assert_eq!(numbers(&stack), [1, 2, 3, 5, 6, 4]);
        assert_eq!(stack.copy(4, 2), Ok(()));
        assert_eq!(numbers(&stack), [1, 2, 3, 5, 6, 4, 3, 5]);
        assert_eq!(stack.rotate(9, 1), Err(ScriptError::InvalidStackOperation));
    }

    #[test]
    fn an_operand_must_be_a_number() {
        let long = [1; 5];
        let stack: Stack<'_> = [&long[..]].into_iter().collect();
        assert_eq!(stack.number(0, false, 4), Err(ScriptError::UnknownError));
        assert_eq!(stack.number(1, false, 4), Err(ScriptError::InvalidStackOperation));
    }
}
