//! The wire format between host and runner: a head of fixed length and a body.
//!
//! Both sides are the same build of the same program, so the format has no versions. The host trusts no runner: each
//! head is checked, and a body is kept only up to the reader's limit.

use std::time::Duration;

/// JSON-RPC's internal error, for errors of neither the plugin nor a method.
pub const INTERNAL_ERROR: i32 = -32603;

/// The bit of a call's code that marks an inline method. The method's function returns at once, so its answer and its end are one
/// message ([`Kind::Done`]).
pub const INLINE: i32 = 1;
/// The position of the release's lowest bit in a call's code.
pub const RELEASE_SHIFT: u32 = 8;

pub const HEAD_LEN: usize = 32;

/// How long a runner may pause within a message, or leave one unread.
pub const SILENCE: Duration = Duration::from_secs(1);

/// The time limit of a whole message.
pub const MESSAGE_TIME: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Kind {
    /// To the runner: its plugin and sandbox. The first message on the control socket.
    Hello = 1,
    /// From the runner: its library is open (code 0), or the reason why not.
    Ready,
    /// To the runner: the plugin's `init`, with options and services.
    Init,
    /// To the runner: the plugin's `start`.
    Start,
    /// A call: its token, its deadline in milliseconds (0 for none), its method with its length in `place`, its
    /// parameters. Code: the bit [`INLINE`] marks an inline method, and above
    /// [`RELEASE_SHIFT`] stands the release whose answers the client expects.
    Call,
    /// The call with this token is cancelled.
    Cancel,
    Event,
    Quiesce,
    Stop,
    Destroy,
    /// To the runner: the status and response of a service, or the status of a reply that requested one.
    Answer,
    /// From the runner: a request to a service, on behalf of the call in `token`.
    Ask,
    /// From the runner: the answer of a call. `extra` 1 requests a status.
    Reply,
    /// From the runner: a function of the plugin, for the call in `token`, has returned this status and, on failure, a
    /// reason.
    Returned,
    /// From the runner, before it opens the library: the enforced sandbox.
    Confined,
    /// From the runner: the answer of a call of an inline method, whose function has returned success.
    Done,
}

impl Kind {
    const ALL: [Self; 16] = [
        Self::Hello,
        Self::Ready,
        Self::Init,
        Self::Start,
        Self::Call,
        Self::Cancel,
        Self::Event,
        Self::Quiesce,
        Self::Stop,
        Self::Destroy,
        Self::Answer,
        Self::Ask,
        Self::Reply,
        Self::Returned,
        Self::Confined,
        Self::Done,
    ];
}

/// Why a message is invalid or could not be exchanged.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    #[error("a message of the unknown kind {0}")]
    Kind(u32),
    /// The length of the body does not fit into a head.
    #[error("a message of {len} bytes")]
    TooLong { len: usize },
    #[error("a message {0:?} out of turn")]
    OutOfTurn(Kind),
    /// The peer paused within a message, or does not read one.
    #[error("a message that was not finished or read in time")]
    Silent,
    /// The peer closed the channel, or the system failed.
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Head {
    pub kind: Kind,
    /// A status or an error code.
    pub code: i32,
    pub token: u64,
    pub extra: u64,
    /// Depending on the kind, a service and its function ([`place_of`]), or a length within the body.
    pub place: u32,
    pub len: u32,
}

impl Head {
    pub fn new(kind: Kind) -> Self {
        Self { kind, code: 0, token: 0, extra: 0, place: 0, len: 0 }
    }

    pub fn encode(&self) -> [u8; HEAD_LEN] {
        let mut bytes = [0; HEAD_LEN];
        let (front, back) = bytes.split_at_mut(24);
        let mut words = front.chunks_exact_mut(8);
        let fields = [u64::from(self.kind as u32) | (u64::from(self.code as u32) << 32), self.token, self.extra];
        fields.iter().zip(&mut words).for_each(|(field, word)| word.copy_from_slice(&field.to_le_bytes()));
        back.copy_from_slice(&(u64::from(self.place) | (u64::from(self.len) << 32)).to_le_bytes());
        bytes
    }

    pub fn parse(bytes: &[u8; HEAD_LEN]) -> Result<Self, FrameError> {
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(bytes.get(at..at + 8).unwrap_or(&[0; 8]));
            u64::from_le_bytes(word)
        };
        let (low, high) = (|word: u64| word as u32, |word: u64| (word >> 32) as u32);
        let first = word(0);
        let kind = Kind::ALL.into_iter().find(|kind| *kind as u32 == low(first));
        let kind = kind.ok_or(FrameError::Kind(low(first)))?;
        let last = word(24);
        Ok(Self { kind, code: high(first) as i32, token: word(8), extra: word(16), place: low(last), len: high(last) })
    }
}

/// Encodes service and function for [`Kind::Ask`].
pub fn place_of(service: usize, function: usize) -> u32 {
    let half = |number: usize| u32::from(u16::try_from(number).unwrap_or(u16::MAX));
    half(service) << 16 | half(function)
}

/// Decodes service and function, as encoded by [`place_of`].
pub fn function_at(place: u32) -> (usize, usize) {
    ((place >> 16) as usize, (place & 0xffff) as usize)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn heads_are_read_as_they_were_written(
            kind in 0..Kind::ALL.len(), code: i32, token: u64, extra: u64, place: u32, len: u32
        ) {
            let head = Head { kind: Kind::ALL[kind], code, token, extra, place, len };
            prop_assert_eq!(Head::parse(&head.encode()).unwrap(), head);
        }

        #[test]
        fn any_bytes_are_a_head_or_none(rest: [u8; HEAD_LEN], kind in 0..20_u8) {
            // Few random numbers are a kind.
            let mut bytes = rest;
            bytes[..4].copy_from_slice(&[kind, 0, 0, 0]);
            for bytes in [rest, bytes] {
                if let Ok(head) = Head::parse(&bytes) {
                    prop_assert_eq!(head.encode(), bytes);
                }
            }
        }

        #[test]
        fn functions_of_services_have_places_of_their_own(service in 0..200_usize, function in 0..200_usize) {
            prop_assert_eq!(function_at(place_of(service, function)), (service, function));
        }
    }
}
