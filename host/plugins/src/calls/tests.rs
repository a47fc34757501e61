use super::*;

#[test]
fn a_call_is_answered_once_and_only_by_its_own_instance() {
    let calls = Calls::default();
    let (token, mut receiver) = calls.open(1, 0);
    assert_eq!(calls.answer(2, token, Answer::Result(Bytes::from_static(b"1"))), Err(UnwantedAnswer::Foreign));
    assert_eq!(calls.answer(1, token, Answer::Result(Bytes::from_static(b"2"))), Ok(()));
    assert_eq!(calls.answer(1, token, Answer::Result(Bytes::from_static(b"3"))), Err(UnwantedAnswer::Second));
    assert_eq!(receiver.try_recv().unwrap(), Answer::Result(Bytes::from_static(b"2")));
}

#[test]
fn dropped_guard_cancels_once() {
    let calls = Calls::default();
    let (token, _receiver) = calls.open(1, 0);
    let mut cancelled = Vec::new();
    drop(CallGuard::new(&calls, token, |token, _| cancelled.push(token)));
    assert_eq!(cancelled, [token]);
    assert_eq!(calls.answer(1, token, Answer::Result(Bytes::new())), Err(UnwantedAnswer::Abandoned));
    let (token, _receiver) = calls.open(1, 0);
    CallGuard::new(&calls, token, |_, _| unreachable!("it was answered")).answered();
    assert_eq!(calls.waiting(1), 1);
    let (token, _receiver) = calls.open(1, 0);
    CallGuard::new(&calls, token, |_, _| unreachable!("it never began")).not_begun();
    assert!(!calls.begin(token, FREE));
}

#[test]
fn calls_distinguish_late_abandoned_second_and_foreign_answers() {
    let calls = Calls::default();
    let one = || Answer::Result(Bytes::from_static(b"1"));
    let (late, _receiver) = calls.open(1, 3);
    let (abandoned, _receiver) = calls.open(1, 4);
    let (second, _receiver) = calls.open(1, 5);
    let (expired, _receiver) = calls.open(1, 6);
    [late, expired].iter().for_each(|token| calls.describe(*token, Some("wrapped".into()), None));
    assert!(calls.give_up(late, true).is_some() && calls.give_up(abandoned, false).is_some());
    assert_eq!((calls.answer(1, second, one()), calls.expire(1, expired, one())), (Ok(()), Ok(())));
    let (foreign, _receiver) = calls.open(2, 7);
    let cases = [late, abandoned, second, expired, foreign];
    assert_eq!([late, expired].map(|token| calls.name_of(token).as_deref() == Some("wrapped")), [true; 2]);
    let why = cases.map(|token| (Calls::method_of(token), calls.answer(1, token, one()).unwrap_err()));
    use UnwantedAnswer::{Abandoned, Foreign, Late, Second};
    let expected = [Late, Abandoned, Second, Late, Foreign];
    assert_eq!(why, [3, 4, 5, 6, 7].map(|method| (method, expected[method - 3])));
    assert_eq!(calls.open(1, 1 << 20).0 >> METHOD_SHIFT, LAST_METHOD);
}

const FREE: Run = Run { due: None, lane: Lane::Pool };

#[test]
fn calls_given_up_while_they_run_are_reported_when_they_end() {
    let calls = Calls::default();
    let (token, _receiver) = calls.open(1, 0);
    assert!(calls.begin(token, FREE));
    assert_eq!(calls.give_up(token, false), Some(Phase::Running));
    assert!(!calls.end_unless_given_up(token));
    calls.end(token);
    assert!(calls.end_unless_given_up(token));
    let (token, _receiver) = calls.open(1, 0);
    assert!(calls.begin(token, FREE));
    assert!(calls.end_unless_given_up(token));
    assert_eq!(calls.give_up(token, false), Some(Phase::Kept));
    assert_eq!(calls.give_up(token, false), None);
}

#[test]
fn overdue_calls_are_found_once_with_or_without_a_client() {
    let calls = Calls::default();
    let now = Instant::now();
    let run = Run { due: Some(now), ..FREE };
    let long = Run { lane: Lane::Long, ..run };
    let (left, _receiver) = calls.open(7, 0);
    let (waiting, _receiver) = calls.open(7, 0);
    let (later, _receiver) = calls.open(7, 0);
    assert!(calls.begin(left, run) && calls.begin(waiting, long));
    assert!(calls.begin(later, Run { due: Some(now + std::time::Duration::from_secs(1)), ..FREE }));
    assert_eq!((calls.due(left), calls.due(waiting)), (Some(now), None), "a long-running call has any time");
    assert_eq!(calls.give_up(left, false), Some(Phase::Running));
    let mut found = calls.find_overdue(now);
    found.sort_by_key(|found| found.token);
    let overdue = |token, run| Overdue { token, instance: 7, run };
    assert_eq!(found, [overdue(left, run), overdue(waiting, long)]);
    assert_eq!(calls.find_overdue(now), []);
    assert_eq!((calls.stuck(7), calls.long(7)), (1, 1));
    calls.end(left);
    assert!(calls.end_unless_given_up(waiting));
    assert_eq!((calls.stuck(7), calls.long(7)), (0, 0));
}

#[test]
fn an_overdue_call_counts_as_stuck_until_its_code_returns() {
    let calls = Calls::default();
    let (token, _receiver) = calls.open(7, 0);
    let mut told = 0;
    assert!(calls.begin(token, FREE));
    assert_eq!(CallGuard::new(&calls, token, |_, _| told += 1).expired(), Some(Phase::Running));
    assert_eq!((told, calls.stuck(7), calls.stuck(8)), (1, 1, 0));
    assert!(!calls.end_unless_given_up(token));
    calls.end(token);
    assert_eq!(calls.stuck(7), 0);
    let (token, _receiver) = calls.open(7, 0);
    let guard = CallGuard::new(&calls, token, |_, _| unreachable!("it never began"));
    assert_eq!(guard.expired(), Some(Phase::Queued));
    assert_eq!(calls.stuck(7), 0);
}

#[test]
fn calls_know_which_calls_wait_for_them() {
    let calls = Calls::default();
    let [(outer, _first), (wrapped, _second), (asked, _third), (other, _fourth)] =
        [1, 2, 3, 4].map(|instance| calls.open(instance, 0));
    calls.nest(wrapped, outer);
    calls.nest(asked, wrapped);
    calls.nest(other, 0);
    assert_eq!([outer, wrapped, asked, other, 0].map(|token| calls.depth(token)), [0, 1, 2, 1, 0]);
    assert_eq!([1, 2, 3, 4].map(|instance| calls.is_within(asked, instance)), [true, true, true, false]);
    assert_eq!([outer, other, 0].map(|token| calls.is_within(token, 2)), [false; 3]);
    assert_eq!(calls.answer(2, wrapped, Answer::Result(Bytes::new())), Ok(()));
    assert!(!calls.is_within(asked, 1), "nobody waits any more for the answer of the answered call");
}
