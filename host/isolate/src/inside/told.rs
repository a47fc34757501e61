//! What the host has told with a call, until its code asks for it.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use crate::ahead::Told;

/// How long an answer that came with a call is one of the moment.
const LASTS: Duration = Duration::from_millis(1);

thread_local! {
    /// What came with the call that this thread runs.
    static TOLD: RefCell<Option<Came>> = const { RefCell::new(None) };
}

struct Came {
    told: Told,
    token: u64,
    at: Instant,
    /// The code has asked something else first.
    is_passed: bool,
}

/// This came with a call that this thread begins.
pub fn keep(told: Told, token: u64) {
    TOLD.set(Some(Came { told, token, at: Instant::now(), is_passed: false }));
}

/// The call has ended. Whether what came with it was not asked for.
pub fn end() -> bool {
    TOLD.take().is_some()
}

/// The code of a call asks this: what came with the call, where it is that, and nothing newer than what is numbered `seen` is known.
pub fn take(place: u32, token: u64, request: &[u8], seen: u64) -> Option<Told> {
    let mut came = TOLD.try_with(RefCell::take).ok().flatten()?;
    if came.is_passed || (came.told.place, came.token) != (place, token) || !request.is_empty() {
        came.is_passed = true;
        TOLD.set(Some(came));
        return None;
    }
    (came.told.since >= seen && came.at.elapsed() < LASTS).then_some(came.told)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(since: u64) -> Told {
        Told { place: 3, status: 0, since, number: since + 1, bytes: vec![1] }
    }

    #[test]
    fn told_answer_is_given_once_to_the_first_question_where_nothing_newer_is_known() {
        let take = |token, seen| take(3, token, b"", seen).map(|told| told.bytes);
        keep(told(5), 7);
        assert_eq!((take(7, 5), take(7, 5), end()), (Some(vec![1]), None, false));
        keep(told(5), 7);
        assert_eq!((take(7, 6), end()), (None, false), "something newer is known");
        keep(told(5), 7);
        assert_eq!((take(8, 5), take(7, 5), end()), (None, None, true), "another question came first");
        keep(told(5), 7);
        assert_eq!((super::take(3, 7, b"x", 5), take(7, 5), end()), (None, None, true), "it was asked with arguments");
        assert_eq!((take(7, 5), end()), (None, false));
        let long_ago = Instant::now().checked_sub(LASTS).unwrap();
        TOLD.set(Some(Came { told: told(5), token: 7, at: long_ago, is_passed: false }));
        assert_eq!(take(7, 5), None);
    }
}
