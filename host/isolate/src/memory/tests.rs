//! Both ends of lanes in one process, and false runners.

use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::mapping::{Area, SLOT_BYTES};
use super::*;
use crate::body::{Left, Received};
use crate::budget::Budget;
use crate::frame::{ANSWER_WAITS, FrameError, HEAD_LEN, Head, Kind};
use crate::lane::Lane;
use crate::socket::SocketLane;

/// What the memory of long messages is in these tests.
const BUDGET: usize = 4 << 20;

/// The longest body of one slot.
const INLINE: usize = SLOT_BYTES - HEAD_LEN;

/// The two ends of a lane, and what they lie in.
struct Ends {
    host: Lane,
    runner: Lane,
    ours: Arc<Region>,
    theirs: Arc<Region>,
    end: Arc<End>,
    budget: Arc<Budget>,
}

fn ends() -> Ends {
    let ((ours, read), (theirs, written)) = (Region::create(false).unwrap(), Region::create(true).unwrap());
    let (end, budget) = (Arc::new(End::default()), Budget::new(BUDGET));
    let side = Side::Host { end: end.clone(), budget: budget.clone() };
    let host = MemoryLane::new(side, 3, &ours, &theirs).unwrap();
    let (read, written) = (Region::open(read, false).unwrap(), Region::open(written, true).unwrap());
    let runner = MemoryLane::new(Side::Runner, 3, &written, &read).unwrap();
    let (host, runner) = (Lane::Memory(Box::new(host)), Lane::Memory(Box::new(runner)));
    Ends { host, runner, ours, theirs, end, budget }
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + len) as u8 | 1).collect()
}

/// A message that has come with its body.
fn whole(received: Result<Received, FrameError>) -> (Head, crate::body::Body) {
    let (head, body) = received.unwrap();
    (head, body.unwrap())
}

/// What the runner's end does: each message goes back with its bytes in two parts, behind `extra` messages without an answer.
fn echo(mut runner: Lane, messages: usize) {
    for _ in 0..messages {
        let (head, body) = whole(runner.receive(usize::MAX));
        for number in 0..head.extra {
            runner.send(Head { token: number, ..Head::new(Kind::Reply) }, &[&body]).unwrap();
        }
        let (front, back) = body.split_at(body.len() / 3);
        runner.send(Head { kind: Kind::Returned, ..head }, &[front, back]).unwrap();
    }
}

fn talk(mut host: Lane, runner: Lane, messages: &[(usize, u64)]) -> Vec<(Head, usize)> {
    let count = messages.len();
    let other = std::thread::spawn(move || echo(runner, count));
    let mut heard = Vec::new();
    for (number, (len, replies)) in messages.iter().enumerate() {
        let sent = bytes(*len);
        let head = Head { token: number as u64, extra: *replies, ..Head::new(Kind::Call) };
        host.send(head, &[&sent[..len / 2], &[], &sent[len / 2..]]).unwrap();
        for _ in 0..=*replies {
            let (head, body) = whole(host.receive(usize::MAX));
            assert_eq!(*body, *sent);
            heard.push((head, body.len()));
        }
    }
    other.join().unwrap();
    heard
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn lanes_of_memory_carry_what_lanes_of_sockets_do(
        messages in proptest::collection::vec((prop_oneof![0..40_usize, INLINE - 9..INLINE + 9, 0..300_000_usize, 2_000_000..2_200_000_usize], 0..9_u64), 1..12)
    ) {
        let Ends { host, runner, .. } = ends();
        let (one, other) = UnixStream::pair().unwrap();
        let sockets = talk(Lane::Socket(SocketLane::new(one)), Lane::Socket(SocketLane::new(other)), &messages);
        prop_assert_eq!(talk(host, runner, &messages), sockets);
    }
}

/// Whether anything is left in the slots of a lane.
fn is_clean(region: &Arc<Region>) -> bool {
    let area = Area::new(region, 3).unwrap();
    (0..SLOTS).all(|slot| area.slot(slot).iter().all(|word| word.load(Ordering::SeqCst) == 0))
}

#[test]
fn nothing_is_left_of_messages_that_were_taken() {
    let Ends { mut host, mut runner, ours, theirs, .. } = ends();
    let other = std::thread::spawn(move || {
        for _ in 0..11 {
            let (head, body) = whole(runner.receive(usize::MAX));
            runner.send(head, &[&body]).unwrap();
        }
        runner
    });
    for len in [1, 8, 9, INLINE, 100, INLINE - 1, 0, 3, INLINE + 1, 20 * INLINE, 3] {
        host.send(Head::new(Kind::Call), &[&bytes(len)]).unwrap();
        assert_eq!(whole(host.receive(usize::MAX)).1.len(), len);
    }
    drop(other.join().unwrap());
    assert!(is_clean(&theirs) && is_clean(&ours));
}

#[test]
fn end_of_a_runner_is_heard_after_all_that_it_has_said() {
    let Ends { mut host, mut runner, theirs, end, .. } = ends();
    let waiting = std::thread::spawn(move || {
        let kinds: Vec<_> = std::iter::repeat_with(|| host.receive(9).map(|(head, _)| head.kind)).take(3).collect();
        assert!(matches!(kinds[..], [Ok(Kind::Reply), Ok(Kind::Returned), Err(FrameError::Io(_))]), "{kinds:?}");
    });
    runner.send(Head::new(Kind::Reply), &[]).unwrap();
    runner.send(Head::new(Kind::Returned), &[b"reason"]).unwrap();
    end.tell(&theirs);
    end.tell(&theirs);
    waiting.join().unwrap();
}

#[test]
fn waiting_ends_in_time() {
    let Ends { mut host, .. } = ends();
    let began = Instant::now();
    assert!(matches!(host.receive_within(9, Duration::from_millis(20)), Err(FrameError::Io(_))));
    assert!(began.elapsed() >= Duration::from_millis(20));
}

#[test]
fn messages_that_are_too_long_are_left_and_their_memory_is_bounded() {
    let Ends { mut host, mut runner, budget, .. } = ends();
    let answers = std::thread::spawn(move || {
        for len in [BUDGET + 1, BUDGET / 2, BUDGET, 2 * INLINE] {
            runner.send(Head::new(Kind::Reply), &[&bytes(len)]).unwrap();
        }
        runner.send(Head::new(Kind::Returned), &[b"done"]).unwrap();
    });
    let left = |received: Result<Received, FrameError>| received.unwrap().1.unwrap_err().len;
    assert_eq!(left(host.receive(usize::MAX)), BUDGET + 1);
    let (_, kept) = whole(host.receive(usize::MAX));
    assert_eq!(*kept, *bytes(BUDGET / 2));
    assert_eq!(left(host.receive(usize::MAX)), BUDGET, "half of it is taken");
    assert_eq!(left(host.receive(INLINE)), 2 * INLINE, "more than is read");
    assert_eq!(&*whole(host.receive(usize::MAX)).1, b"done", "what follows is read as it is");
    answers.join().unwrap();
    assert!(budget.take(BUDGET).is_none());
    drop(kept);
    assert!(budget.take(BUDGET).is_some(), "it comes back");
}

#[test]
fn a_runner_that_does_not_go_on_with_a_long_message_is_given_up() {
    let long = Head { len: 9 * INLINE as u32, ..Head::new(Kind::Reply) };
    let (heard, mut ends) = lie(|area, _| {
        put(area, 0, long);
        area.published().store(1, Ordering::SeqCst);
    });
    assert!(matches!(heard, Err(FrameError::Silent)), "{heard:?}");
    let sent = ends.host.send(Head::new(Kind::Answer), &[&bytes(9 * INLINE)]);
    assert!(matches!(sent, Err(FrameError::Silent)), "{sent:?}");
    assert!(ends.host.close().lacks(ends.host.mark()), "nothing of it was taken");
}

#[test]
fn end_of_a_runner_is_heard_within_a_long_message() {
    let mut reading = ends();
    let area = Area::new(&reading.theirs, 3).unwrap();
    put(&area, 0, Head { len: 2 * INLINE as u32, ..Head::new(Kind::Reply) });
    area.published().store(1, Ordering::SeqCst);
    let mut writing = ends();
    let ended = |end: &Arc<End>, theirs: &Arc<Region>| end.tell(theirs);
    std::thread::scope(|scope| {
        let reads = scope.spawn(|| reading.host.receive(usize::MAX));
        let writes = scope.spawn(|| writing.host.send(Head::new(Kind::Answer), &[&bytes(9 * INLINE)]));
        ended(&reading.end, &reading.theirs);
        ended(&writing.end, &writing.theirs);
        let (read, written) = (reads.join().unwrap(), writes.join().unwrap());
        assert!(matches!(read, Err(FrameError::Io(_))), "{read:?}");
        assert!(matches!(written, Err(FrameError::Io(_))), "{written:?}");
    });
}

#[test]
fn lane_that_is_closed_tells_exactly_what_the_runner_does_not_do() {
    for round in 0..500_u64 {
        let Ends { mut host, mut runner, .. } = ends();
        let sent = u64::from(SLOTS);
        let send = |token| {
            host.send_without_waking(Head { token, ..Head::new(Kind::Call) }, &[]).unwrap();
            host.mark()
        };
        let marks: Vec<_> = (0..sent).map(send).collect();
        let runs = std::thread::spawn(move || {
            let taken = std::iter::from_fn(|| runner.receive(usize::MAX).ok().map(|(head, _)| head.token));
            taken.take(sent as usize).collect::<Vec<_>>()
        });
        (0..round * 10).for_each(|_| std::hint::spin_loop());
        let taken = host.close();
        let told = marks.iter().take_while(|mark| !taken.lacks(**mark)).count();
        assert!(marks.iter().skip(told).all(|mark| taken.lacks(*mark)));
        let begun = runs.join().unwrap();
        // One more may have been taken, of which the runner then does nothing.
        assert!((told.saturating_sub(1)..=told).contains(&begun.len()), "{told} {begun:?}");
        assert!(begun.iter().copied().eq(0..begun.len() as u64));
    }
}

#[test]
fn call_that_was_taken_is_told_as_taken_whatever_was_sent_after_it() {
    for len in [0, 20 * INLINE] {
        let Ends { mut host, mut runner, .. } = ends();
        host.send(Head::new(Kind::Call), &[]).unwrap();
        let call = host.mark();
        whole(runner.receive(9));
        runner.send(Head::new(Kind::Ask), &[]).unwrap();
        whole(host.receive(9));
        // The runner does not take the answer, which fills the slots where it is long.
        let sent = host.send(Head::new(Kind::Answer), &[&bytes(len)]);
        assert_eq!(sent.is_err(), len > 0);
        let taken = host.close();
        assert!(!taken.lacks(call) && taken.lacks(host.mark()), "{taken:?}");
    }
}

#[test]
fn messages_that_wake_nobody_are_found_all_the_same() {
    let Ends { mut host, mut runner, ours, .. } = ends();
    host.send(Head { code: ANSWER_WAITS, ..Head::new(Kind::Call) }, &[]).unwrap();
    let area = Area::new(&ours, 3).unwrap();
    let waiting = std::thread::spawn(move || host.receive(9).unwrap().0.kind);
    whole(runner.receive(9));
    while area.sleeps().load(Ordering::SeqCst) == 0 && !waiting.is_finished() {
        std::hint::spin_loop();
    }
    runner.send_without_waking(Head::new(Kind::Reply), &[]).unwrap();
    assert_eq!(waiting.join().unwrap(), Kind::Reply);
}

#[test]
fn more_messages_than_there_are_slots_wake_whoever_takes_them() {
    let Ends { mut host, mut runner, .. } = ends();
    let count = u64::from(SLOTS) * 5;
    let telling = std::thread::spawn(move || {
        for token in 0..count {
            runner.send_without_waking(Head { token, ..Head::new(Kind::Reply) }, &[]).unwrap();
        }
        runner.send(Head { token: count, ..Head::new(Kind::Returned) }, &[]).unwrap();
    });
    for token in 0..=count {
        assert_eq!(host.receive(9).unwrap().0.token, token);
    }
    telling.join().unwrap();
}

/// A false runner: what `lie` does with its end, and how the host takes it.
fn lie(lie: impl FnOnce(&Area, Lane)) -> (Result<Received, FrameError>, Ends) {
    let mut ends = ends();
    let runner = std::mem::replace(&mut ends.runner, Lane::Socket(SocketLane::new(UnixStream::pair().unwrap().0)));
    lie(&Area::new(&ends.theirs, 3).unwrap(), runner);
    (ends.host.receive_within(1 << 20, Duration::from_secs(20)), ends)
}

fn put(area: &Area, slot: u32, head: Head) {
    for (chunk, word) in head.encode().chunks_exact(8).zip(area.slot(slot)) {
        word.store(u64::from_ne_bytes(chunk.try_into().unwrap()), Ordering::SeqCst);
    }
}

#[test]
fn counts_that_cannot_be_are_a_fault() {
    for count in [SLOTS + 1, u32::MAX, 1 << 31] {
        let (heard, _) = lie(|area, _| area.published().store(count, Ordering::SeqCst));
        assert!(matches!(heard, Err(FrameError::OutOfStep)), "{heard:?}");
    }
    // One that takes nothing, and one that claims to have taken what was not sent.
    for taken in [0, 2 * SLOTS + 1] {
        let (_, mut ends) = lie(|area, mut runner| {
            runner.send(Head::new(Kind::Ask), &[]).unwrap();
            area.taken().store(taken, Ordering::SeqCst);
        });
        let sent = (0..=SLOTS).map(|_| ends.host.send(Head::new(Kind::Answer), &[])).find(Result::is_err);
        assert!(matches!(sent, Some(Err(FrameError::OutOfStep))), "{sent:?}");
    }
}

#[test]
fn heads_that_cannot_be_are_a_fault() {
    let (heard, _) = lie(|area, _| {
        area.slot(0)[0].store(99, Ordering::SeqCst);
        area.published().store(1, Ordering::SeqCst);
    });
    assert!(matches!(heard, Err(FrameError::Kind(99))), "{heard:?}");
}

#[test]
fn runner_cannot_write_what_the_host_says() {
    let (_region, file) = Region::create(false).unwrap();
    assert!(Region::open(&file, false).is_ok());
    assert!(Region::open(&file, true).is_err());
    let file = std::fs::File::from(file);
    assert!(std::io::Write::write(&mut &file, b"x").is_err());
    assert!(file.set_len(0).is_err() && file.set_len(1 << 40).is_err());
}

#[test]
fn whatever_a_runner_publishes_is_a_message_or_a_fault() {
    let mut ends = ends();
    let (area, ours) = (Area::new(&ends.theirs, 3).unwrap(), Area::new(&ends.ours, 3).unwrap());
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let (mut heard, mut left, mut faults) = (0, 0, 0);
    for _ in 0..200_000 {
        let taken = ours.taken().load(Ordering::SeqCst);
        // More than one where it has several pieces.
        let published = taken.wrapping_add(1 + (next() % u64::from(SLOTS)) as u32);
        for at in 0..published.wrapping_sub(taken) {
            let slot = area.slot(taken.wrapping_add(at));
            slot.iter().take(HEAD_LEN / 8 + 8).for_each(|word| word.store(next(), Ordering::SeqCst));
            // Most have a kind, and a length that could be.
            if next() % 8 > 0 {
                slot[0].store(next() % 20, Ordering::SeqCst);
                slot[3].store((next() % (3 * INLINE as u64)) << 32, Ordering::SeqCst);
            }
        }
        area.published().store(published, Ordering::SeqCst);
        match ends.host.receive_within(2 * INLINE, Duration::ZERO) {
            Ok((head, Ok(body))) => {
                assert_eq!(head.len as usize, body.len());
                heard += 1;
            }
            Ok((head, Err(Left { len }))) => {
                assert!(head.len as usize == len && len > 2 * INLINE);
                left += 1;
            }
            Err(_) => faults += 1,
        }
    }
    assert!(heard > 10_000 && left > 1000 && faults > 10_000, "{heard} {left} {faults}");
}
