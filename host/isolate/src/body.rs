//! The body of a message that was received.

use std::fmt;
use std::ops::Deref;

use outrigger_abi::OwnedBytes;

use crate::memory::{Sealed, Share};

/// The bytes of a message: copied, or in memory that nobody writes any more. A copy is wiped when it is dropped.
#[derive(Default)]
pub struct Body(Kept);

enum Kept {
    Copied(Vec<u8>),
    Sealed {
        bytes: Sealed,
        /// What it takes of the runner's budget, in the host.
        _share: Option<Share>,
    },
}

impl Default for Kept {
    fn default() -> Self {
        Self::Copied(Vec::new())
    }
}

impl Body {
    /// Memory that counts as long as the body is there.
    pub fn shared(sealed: Sealed, share: Share) -> Self {
        Self(Kept::Sealed { bytes: sealed, _share: Some(share) })
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Kept::Copied(bytes))
    }
}

impl From<Sealed> for Body {
    fn from(sealed: Sealed) -> Self {
        Self(Kept::Sealed { bytes: sealed, _share: None })
    }
}

impl From<Body> for OwnedBytes {
    fn from(body: Body) -> Self {
        if body.is_empty() { Self::EMPTY } else { Self::held_by(body) }
    }
}

impl Deref for Body {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Kept::Copied(bytes) => bytes,
            Kept::Sealed { bytes, .. } => bytes,
        }
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
        if let Kept::Copied(bytes) = &mut self.0 {
            bytes.fill(0);
            // Nobody reads them any more, which must not make the writing pointless.
            std::hint::black_box(bytes);
        }
    }
}
