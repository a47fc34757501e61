//! Receives the body of a message in pieces.

use std::io::{ErrorKind, Read, Result};

use outrigger_abi::OwnedBytes;

use crate::frame::Head;

/// The most bytes that are read at once. A body uses at most this much memory beyond the bytes that have arrived.
const PIECE: usize = 256 << 10;

/// A message. The program's allocator wipes its body when it is freed.
pub type Message = (Head, std::result::Result<Vec<u8>, DiscardedBody>);

/// A body that was read and dropped: it is too long, or memory ran out.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("a message of {len} bytes is too long, or there is no memory for it now")]
pub struct DiscardedBody {
    pub len: usize,
}

impl DiscardedBody {
    /// The error text that the client gets instead of this answer.
    pub fn as_answer(self) -> OwnedBytes {
        let len = self.len;
        format!("The plugin's answer of {len} bytes is too long, or there is no memory for it now").into_bytes().into()
    }
}

/// A body that is still arriving.
pub struct Incoming {
    kept: std::result::Result<Vec<u8>, DiscardedBody>,
    missing: usize,
}

impl Incoming {
    /// Starts a body of `len` bytes. The body is discarded if it is longer than `limit`, or if its memory cannot be reserved
    /// now. The memory is only touched as bytes arrive.
    pub fn new(len: usize, limit: usize) -> Self {
        let mut bytes = Vec::new();
        let has_room = len <= limit && bytes.try_reserve_exact(len).is_ok();
        Self { kept: if has_room { Ok(bytes) } else { Err(DiscardedBody { len }) }, missing: len }
    }

    pub fn missing(&self) -> usize {
        self.missing
    }

    /// Appends bytes that were read ahead. Returns how many of them belong to this body.
    pub fn push(&mut self, bytes: &[u8]) -> usize {
        let count = bytes.len().min(self.missing);
        if let Ok(kept) = &mut self.kept {
            kept.extend_from_slice(bytes.get(..count).unwrap_or_default());
        }
        self.missing -= count;
        count
    }

    /// Reads the next bytes. The end of the reader is an error.
    pub fn read(&mut self, mut from: impl Read) -> Result<()> {
        let wanted = self.missing.min(PIECE);
        let mut scratch = Vec::new();
        let bytes = self.kept.as_mut().unwrap_or(&mut scratch);
        let before = bytes.len();
        bytes.resize(before + wanted, 0);
        let read = from.read(bytes.get_mut(before..).unwrap_or_default());
        bytes.truncate(before + read.as_ref().copied().unwrap_or(0));
        self.missing -= match read {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => 0,
            Err(error) => return Err(error),
        };
        Ok(())
    }

    /// The whole body, unless it was discarded.
    pub fn finish(self) -> std::result::Result<Vec<u8>, DiscardedBody> {
        self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_within_the_limit_are_kept_and_others_discarded() {
        let receive = |len: usize, limit| {
            let bytes = vec![7; len + 1];
            let mut incoming = Incoming::new(len, limit);
            let mut from = &bytes[incoming.push(&bytes[..len / 3])..];
            while incoming.missing() > 0 {
                incoming.read(&mut from).unwrap();
            }
            assert_eq!(from.len(), 1, "bytes beyond the body are not read");
            incoming.finish()
        };
        for len in [0, 1, PIECE, 3 * PIECE + 1] {
            assert_eq!(receive(len, len).unwrap(), vec![7; len]);
        }
        assert!(matches!(receive(9, 8), Err(DiscardedBody { len: 9 })));
        assert!(Incoming::new(usize::MAX, usize::MAX).finish().is_err(), "more than there is memory for");
        assert!(Incoming::new(1, 1).read(&b""[..]).is_err());
    }
}
