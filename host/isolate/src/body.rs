//! The body of a message: as it comes, and as it is once it has come.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use outrigger_abi::OwnedBytes;

use crate::budget::{Budget, Share};
use crate::frame::Head;

/// The longest body that counts for no budget: there are no more of these than calls and questions.
const SHORT: usize = 64 << 10;

/// A message that has come.
pub type Received = (Head, Result<Body, Left>);

/// A body of which nothing was kept: it is longer than may be, or there is no memory for it.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("a message of {len} bytes is too long, or there is no memory for it now")]
pub struct Left {
    /// Its length.
    pub len: usize,
}

impl Left {
    /// What a caller is told whose answer it was.
    pub fn of_answer(self) -> OwnedBytes {
        let len = self.len;
        format!("The plugin's answer of {len} bytes is too long, or there is no memory for it now").into_bytes().into()
    }
}

/// The bytes of a message, which are wiped when it is dropped.
#[derive(Default)]
pub struct Body {
    bytes: Vec<u8>,
    /// What they take of a budget, for as long as they are there.
    _share: Option<Share>,
}

impl From<Body> for OwnedBytes {
    fn from(body: Body) -> Self {
        if body.is_empty() { Self::EMPTY } else { Self::held_by(body) }
    }
}

impl Deref for Body {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl AsRef<[u8]> for Body {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.len())
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        self.bytes.fill(0);
        // Nobody reads them any more, which must not make the writing pointless.
        std::hint::black_box(&mut self.bytes);
    }
}

/// A body that comes piece by piece.
pub struct Incoming {
    kept: Result<Body, Left>,
    missing: usize,
}

impl Incoming {
    /// One of which a head has told the length. It is kept where it has at most `limit` bytes and there is memory for it, of which a
    /// long one takes its share of the budget. That memory is touched only as the body comes.
    pub fn new(len: usize, limit: usize, budget: Option<&Arc<Budget>>) -> Self {
        Self { kept: Self::room(len, limit, budget).ok_or(Left { len }), missing: len }
    }

    fn room(len: usize, limit: usize, budget: Option<&Arc<Budget>>) -> Option<Body> {
        if len > limit {
            return None;
        }
        let _share = match budget.filter(|_| len > SHORT) {
            Some(budget) => Some(budget.take(len)?),
            None => None,
        };
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(len).ok()?;
        Some(Body { bytes, _share })
    }

    /// How many bytes are still to come.
    pub fn missing(&self) -> usize {
        self.missing
    }

    /// The next bytes have come, of which there are `here`: `copy` copies as many as it is given a place for. How many these are.
    pub fn take(&mut self, here: usize, copy: impl FnOnce(&mut [u8])) -> usize {
        let count = here.min(self.missing);
        if let Ok(Body { bytes, .. }) = &mut self.kept {
            let before = bytes.len();
            bytes.resize(before + count, 0);
            copy(bytes.get_mut(before..).unwrap_or_default());
        }
        self.missing -= count;
        count
    }

    /// The whole body.
    ///
    /// # Errors
    /// It was not kept.
    pub fn finish(self) -> Result<Body, Left> {
        self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_kept_within_its_limit_and_the_budget() {
        let budget = Budget::new(3 * SHORT);
        let receive = |len, limit| {
            let mut incoming = Incoming::new(len, limit, Some(&budget));
            while incoming.missing() > 0 {
                incoming.take(SHORT - 1, |to| to.fill(7));
            }
            incoming.finish()
        };
        let kept = receive(2 * SHORT, 2 * SHORT).unwrap();
        assert_eq!(*kept, vec![7; 2 * SHORT]);
        assert!(matches!(receive(2 * SHORT, usize::MAX), Err(Left { len }) if len == 2 * SHORT), "the budget");
        assert!(receive(9, 8).is_err() && receive(9, 9).is_ok());
        assert!(receive(SHORT, SHORT).is_ok(), "a short one takes nothing");
        drop(kept);
        assert!(receive(3 * SHORT, usize::MAX).is_ok(), "it comes back");
        assert!(Incoming::new(usize::MAX, usize::MAX, None).finish().is_err(), "more than there is memory for");
    }
}
