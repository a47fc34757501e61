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
use rustix::time::{ClockId, clock_gettime};

use crate::frame::{Head, Kind};

/// The bytes of what stands before an answer.
const FRONT: usize = 40;

/// How long an answer that came with a call is one of the moment, in nanoseconds.
const LASTS: u64 = 1_000_000;

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
    /// When it was asked, by the clock of [`now`].
    pub at: u64,
    /// What it answered.
    pub bytes: Vec<u8>,
}

impl Told {
    /// As it stands before the method of a call.
    pub fn encode(&self) -> Vec<u8> {
        let len = u32::try_from(self.bytes.len()).unwrap_or(u32::MAX);
        let function = u64::from(self.place) | (u64::from(self.status as u32) << 32);
        let mut bytes = Vec::with_capacity(FRONT + self.bytes.len());
        for word in [function, self.since, self.number, self.at, u64::from(len)] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes.extend_from_slice(&self.bytes);
        bytes
    }

    /// Takes it off the body of a message; none where there is none.
    pub fn take(body: &mut &[u8]) -> Option<Self> {
        let (front, rest) = body.split_first_chunk::<FRONT>()?;
        let (words, _) = front.as_chunks::<8>();
        let mut words = words.iter().map(|word| u64::from_le_bytes(*word));
        let (function, since, number) = (words.next()?, words.next()?, words.next()?);
        let (at, len) = (words.next()?, words.next()?);
        let (bytes, rest) = rest.split_at_checked(usize::try_from(len).ok()?)?;
        *body = rest;
        let (place, status) = (function as u32, (function >> 32) as u32 as i32);
        Some(Self { place, status, since, number, at, bytes: bytes.to_vec() })
    }

    /// Whether it is what the host would answer now, where the plugin knows nothing newer than what is numbered `seen`.
    pub fn is_current(&self, seen: u64) -> bool {
        self.since >= seen && now().saturating_sub(self.at) < LASTS
    }
}

/// The time of a clock that host and runner share and nobody sets, in nanoseconds.
pub fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    let part = |number: i64| u64::try_from(number).unwrap_or_default();
    part(time.tv_sec).saturating_mul(1_000_000_000).saturating_add(part(time.tv_nsec))
}

/// What one runner is told ahead, in the host.
pub struct Ahead {
    /// The functions that only read the moment.
    moments: Vec<u32>,
    /// Which of them the code of a method asked first.
    first: RwLock<HashMap<Vec<u8>, u32>>,
    /// Numbers what the runner is told: answers, events, and what is told ahead where it differs from the last time.
    told: AtomicU64,
    last: Mutex<Last>,
}

/// What was told ahead last.
#[derive(Default)]
struct Last {
    answers: HashMap<u32, (i32, Vec<u8>)>,
    /// How often anything was.
    times: u64,
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
        let (times, since, at) = (self.last.lock().times, self.told.load(Ordering::SeqCst), now());
        let Response { status, bytes } = ask(place);
        let mut last = self.last.lock();
        let number = if last.answers.get(&place).is_some_and(|(code, known)| *code == status && **known == *bytes) {
            self.told.load(Ordering::SeqCst)
        } else if last.times == times {
            last.answers.insert(place, (status, bytes.to_vec()));
            self.number()
        } else {
            // Another call was told something meanwhile, and which of the two is newer is not known.
            return None;
        };
        last.times += 1;
        Some(Told { place, status, since, number, at, bytes: bytes.to_vec() })
    }

    /// The first message that the code of a method has sent, in a call that was told nothing.
    pub fn learn(&self, method: &[u8], first: &Head) {
        if first.kind == Kind::Ask && first.len == 0 && self.moments.contains(&first.place) {
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
            place: u32, status: i32, since: u64, number: u64, at: u64, bytes: Vec<u8>, rest: Vec<u8>
        ) {
            let told = Told { place, status, since, number, at, bytes };
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
        ahead.learn(b"m", &ask(2));
        ahead.learn(b"m", &Head { len: 1, ..ask(3) });
        ahead.learn(b"m", &Head { place: 3, ..Head::new(Kind::Reply) });
        assert_eq!(ahead.of(b"m", answer(1)), None);
        ahead.learn(b"m", &ask(3));
        let told = |byte| ahead.of(b"m", answer(byte)).map(|told| (told.since, told.number, told.bytes));
        assert_eq!(told(1), Some((0, 1, vec![1])));
        assert_eq!(told(1), Some((1, 1, vec![1])), "it is nothing new");
        assert_eq!(ahead.number(), 2);
        assert_eq!(told(2), Some((2, 3, vec![2])));
        ahead.forget(b"m");
        assert_eq!(told(2), None);
    }

    #[test]
    fn answer_that_may_be_older_than_another_one_is_not_told() {
        let ahead = Ahead::new(vec![3]);
        ahead.learn(b"m", &Head { place: 3, ..Head::new(Kind::Ask) });
        let answer = |byte: u8| Response { status: STATUS_OK, bytes: vec![byte].into() };
        let tell = |byte| ahead.of(b"m", |_| answer(byte)).map(|told| (told.since, told.number));
        assert_eq!(tell(2), Some((0, 1)));
        let overtaken = |inner: u8, outer: u8| {
            ahead.of(b"m", |_| {
                assert!(tell(inner).is_some());
                answer(outer)
            })
        };
        assert_eq!(overtaken(2, 1), None, "the other call knows what was known before");
        assert_eq!(overtaken(4, 3), None);
        assert_eq!(overtaken(5, 5).map(|told| (told.since, told.number)), Some((2, 3)), "both know the same");
    }

    #[test]
    fn answer_is_current_for_a_millisecond_where_nothing_newer_is_known() {
        let told = |at| Told { place: 0, status: 0, since: 5, number: 6, at, bytes: Vec::new() };
        assert!(told(now()).is_current(5));
        assert!(!told(now()).is_current(6));
        assert!(!told(now() - LASTS).is_current(5));
    }
}
