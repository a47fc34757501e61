//! What the code of a call is likely to ask first, told with the call.
//!
//! Most of the time of a short call goes into the question that its code asks of the host. So the host remembers which of the
//! functions that only read the moment the code of each method asked first, and tells the answer together with the next call of
//! that method. The runner gives it to the code that asks just that as its first question, unless the plugin has learned anything
//! newer of the host meanwhile: nothing is seen that could not have been answered then.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use outrigger_abi::Response;
use parking_lot::{Mutex, RwLock};

use crate::frame::{Head, Kind};

/// The bytes of what stands before an answer.
const FRONT: usize = 32;

/// An answer that was told with a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Told {
    /// The function.
    pub place: u32,
    /// Its status.
    pub status: i32,
    /// The number of what the runner had been told last before this was asked.
    pub since: u64,
    /// The number of this.
    pub number: u64,
    /// What it answered.
    pub bytes: Vec<u8>,
}

impl Told {
    /// What stands in the message before the answer's bytes.
    fn front(&self) -> [u8; FRONT] {
        let mut bytes = [0; FRONT];
        let len = u32::try_from(self.bytes.len()).unwrap_or(u32::MAX);
        let words =
            [u64::from(self.place) | (u64::from(self.status as u32) << 32), self.since, self.number, u64::from(len)];
        bytes.chunks_exact_mut(8).zip(words).for_each(|(to, word)| to.copy_from_slice(&word.to_le_bytes()));
        bytes
    }

    /// As it stands before the method of a call.
    pub fn encode(&self) -> Vec<u8> {
        [&self.front()[..], &self.bytes].concat()
    }

    /// Takes it off the body of a message; none where there is none.
    pub fn take(body: &mut &[u8]) -> Option<Self> {
        let (front, rest) = body.split_first_chunk::<FRONT>()?;
        let (words, _) = front.as_chunks::<8>();
        let mut words = words.iter().map(|word| u64::from_le_bytes(*word));
        let (function, since, number, len) = (words.next()?, words.next()?, words.next()?, words.next()?);
        let (bytes, rest) = rest.split_at_checked(usize::try_from(len).ok()?)?;
        *body = rest;
        let (place, status) = (function as u32, (function >> 32) as u32 as i32);
        Some(Self { place, status, since, number, bytes: bytes.to_vec() })
    }
}

/// What one runner is told ahead, in the host.
pub struct Ahead {
    /// The functions that only read the moment.
    moments: Vec<u32>,
    /// Which of them the code of a method asked first.
    first: RwLock<HashMap<Vec<u8>, u32>>,
    /// Numbers what the runner is told: answers, events, and what is told ahead where it differs from the last time.
    told: AtomicU64,
    last: Mutex<HashMap<u32, (i32, Vec<u8>)>>,
}

impl Ahead {
    /// For these functions, none of which changes anything or has arguments.
    pub fn new(moments: Vec<u32>) -> Self {
        Self { moments, first: RwLock::default(), told: AtomicU64::new(0), last: Mutex::default() }
    }

    /// The number of what the runner is told next.
    pub fn number(&self) -> u64 {
        self.told.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// What the code of a method is told ahead, as `ask` answers it now.
    pub fn of(&self, method: &[u8], ask: impl FnOnce(u32) -> Response) -> Option<Told> {
        let place = *self.first.read().get(method)?;
        let since = self.told.load(Ordering::SeqCst);
        let Response { status, bytes } = ask(place);
        let mut last = self.last.lock();
        let is_known = last.get(&place).is_some_and(|(code, known)| *code == status && known[..] == bytes[..]);
        let number = if is_known { self.told.load(Ordering::SeqCst) } else { self.number() };
        if !is_known {
            last.insert(place, (status, bytes.to_vec()));
        }
        Some(Told { place, status, since, number, bytes: bytes.to_vec() })
    }

    /// The first message that the code of a method has sent, in a call that was told nothing.
    pub fn learn(&self, method: &[u8], first: &Head, len: usize) {
        if first.kind == Kind::Ask && len == 0 && self.moments.contains(&first.place) {
            self.first.write().insert(method.to_vec(), first.place);
        }
    }

    /// The code of a method did not ask for what it was told.
    pub fn forget(&self, method: &[u8]) {
        self.first.write().remove(method);
    }
}

#[cfg(test)]
mod tests {
    use outrigger_abi::STATUS_OK;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_told_is_read_as_it_was_written(
            place: u32, status: i32, since: u64, number: u64, bytes: Vec<u8>, rest: Vec<u8>
        ) {
            let told = Told { place, status, since, number, bytes };
            let message = [told.encode(), rest.clone()].concat();
            let mut body = &message[..];
            prop_assert_eq!(Told::take(&mut body), Some(told));
            prop_assert_eq!(body, &rest[..]);
        }

        #[test]
        fn any_bytes_are_something_told_or_nothing(bytes: Vec<u8>) {
            let mut body = &bytes[..];
            if let Some(told) = Told::take(&mut body) {
                prop_assert_eq!([&told.encode(), body].concat(), bytes);
            }
        }
    }

    #[test]
    fn only_a_moment_that_was_asked_first_is_told_ahead_until_it_is_not_asked() {
        let ahead = Ahead::new(vec![3]);
        let ask = |place| Head { place, ..Head::new(Kind::Ask) };
        let answer = |byte: u8| move |_| Response { status: STATUS_OK, bytes: vec![byte].into() };
        assert_eq!(ahead.of(b"m", answer(1)), None);
        ahead.learn(b"m", &ask(2), 0);
        ahead.learn(b"m", &ask(3), 1);
        ahead.learn(b"m", &Head { place: 3, ..Head::new(Kind::Reply) }, 0);
        assert_eq!(ahead.of(b"m", answer(1)), None);
        ahead.learn(b"m", &ask(3), 0);
        let told = |byte| ahead.of(b"m", answer(byte)).map(|told| (told.since, told.number, told.bytes));
        assert_eq!(told(1), Some((0, 1, vec![1])));
        assert_eq!(told(1), Some((1, 1, vec![1])), "it is nothing new");
        assert_eq!(ahead.number(), 2);
        assert_eq!(told(2), Some((2, 3, vec![2])));
        ahead.forget(b"m");
        assert_eq!(told(2), None);
    }
}
