//! What the host has told with a call, until its code asks for it.

use std::cell::RefCell;

use crate::ahead::Told;

thread_local! {
    /// What came with the call that this thread runs.
    static TOLD: RefCell<Option<Came>> = const { RefCell::new(None) };
}

struct Came {
    told: Told,
    token: u64,
    /// It is of no use: the code has asked something else first, or too late.
    is_passed: bool,
}

/// This came with a call that this thread begins.
pub fn keep(told: Told, token: u64) {
    TOLD.set(Some(Came { told, token, is_passed: false }));
}

/// The call has ended. Whether what came with it was of no use.
pub fn end() -> bool {
    TOLD.take().is_some()
}

/// The code of a call asks this: what came with the call, where it is that, and nothing newer than what is numbered `seen` is known.
pub fn take(place: u32, token: u64, request: &[u8], seen: u64) -> Option<Told> {
    let mut came = TOLD.try_with(RefCell::take).ok().flatten()?;
    let is_asked = !came.is_passed && (came.told.place, came.token) == (place, token) && request.is_empty();
    if is_asked && came.told.is_current(seen) {
        return Some(came.told);
    }
    came.is_passed = true;
    TOLD.set(Some(came));
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ahead::now;

    #[test]
    fn told_answer_is_given_once_to_the_first_question_where_nothing_newer_is_known() {
        let keep = |at| keep(Told { place: 3, status: 0, since: 5, number: 6, at, bytes: vec![1] }, 7);
        let take = |token, seen| take(3, token, b"", seen).map(|told| told.bytes);
        keep(now());
        assert_eq!((take(7, 5), take(7, 5), end()), (Some(vec![1]), None, false));
        keep(now());
        assert_eq!((take(7, 6), take(7, 5), end()), (None, None, true), "something newer is known");
        keep(now());
        assert_eq!((take(8, 5), take(7, 5), end()), (None, None, true), "another question came first");
        keep(now());
        assert_eq!((super::take(3, 7, b"x", 5), take(7, 5), end()), (None, None, true), "it was asked with arguments");
        assert_eq!((take(7, 5), end()), (None, false));
        keep(0);
        assert_eq!((take(7, 5), end()), (None, true), "it is long ago");
    }
}
