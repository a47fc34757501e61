//! Both ends of lanes in one process, and false runners.

use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::mapping::{Area, SLOTS};
use super::*;
use crate::body::Body;
use crate::frame::{ANSWER_WAITS, FrameError, HEAD_LEN, Head, Kind};
use crate::lane::Lane;
use crate::passing::{self, Parcel};
use crate::socket::SocketLane;

/// What the memory of long messages is in these tests.
const BUDGET: usize = 4 << 20;

/// The two ends of a lane, and what they lie in.
struct Ends {
    host: Lane,
    runner: Lane,
    ours: Arc<Region>,
    theirs: Arc<Region>,
    end: Arc<End>,
    budget: Arc<Budget>,
    /// The runner's end of the socket.
    socket: UnixStream,
}

fn ends() -> Ends {
    let ((ours, read), (theirs, written)) = (Region::create(false).unwrap(), Region::create(true).unwrap());
    let (here, there) = UnixStream::pair().unwrap();
    let (end, budget) = (Arc::new(End::default()), Budget::new(BUDGET));
    let side = Side::Host { end: end.clone(), budget: budget.clone() };
    let socket = there.try_clone().unwrap();
    let host = MemoryLane::new(side, here, 3, &ours, &theirs).unwrap();
    let (read, written) = (Region::open(read, false).unwrap(), Region::open(written, true).unwrap());
    let runner = MemoryLane::new(Side::Runner, there, 3, &written, &read).unwrap();
    let (host, runner) = (Lane::Memory(Box::new(host)), Lane::Memory(Box::new(runner)));
    Ends { host, runner, ours, theirs, end, budget, socket }
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + len) as u8 | 1).collect()
}

/// What the runner's end does: each message goes back with its bytes in two parts, behind `extra` messages without an answer.
fn echo(mut runner: Lane, messages: usize) {
    for _ in 0..messages {
        let (head, body) = runner.receive(usize::MAX).unwrap();
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
            let (head, body) = host.receive(usize::MAX).unwrap();
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
        messages in proptest::collection::vec((prop_oneof![0..40_usize, INLINE - 9..INLINE + 9, 0..300_000_usize], 0..9_u64), 1..12)
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
        for _ in 0..9 {
            let (head, body) = runner.receive(usize::MAX).unwrap();
            runner.send(head, &[&body]).unwrap();
        }
        runner
    });
    for len in [1, 8, 9, INLINE, 100, INLINE - 1, 0, 3, INLINE + 1] {
        host.send(Head::new(Kind::Call), &[&bytes(len)]).unwrap();
        assert_eq!(host.receive(usize::MAX).unwrap().1.len(), len);
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
fn messages_that_are_too_long_are_refused_and_their_memory_is_bounded() {
    let Ends { mut host, mut runner, budget, .. } = ends();
    let answers = std::thread::spawn(move || {
        let sent: Vec<_> = [BUDGET + 1, BUDGET / 2, BUDGET]
            .map(|len| runner.send(Head::new(Kind::Reply), &[&bytes(len)]).is_ok())
            .into();
        runner.send(Head::new(Kind::Returned), &[b"done"]).unwrap();
        sent
    });
    let (_, kept) = host.receive(usize::MAX).unwrap();
    assert_eq!(*kept, *bytes(BUDGET / 2));
    assert_eq!(&*host.receive(usize::MAX).unwrap().1, b"done", "the others found no room");
    assert_eq!(answers.join().unwrap(), [false, true, false]);
    assert!(budget.take(BUDGET).is_none());
    drop(kept);
    assert!(budget.take(BUDGET).is_some(), "it comes back");
}

#[test]
fn lane_that_is_closed_tells_exactly_what_the_runner_does_not_do() {
    for round in 0..500_u64 {
        let Ends { mut host, mut runner, .. } = ends();
        let sent = u64::from(SLOTS);
        for token in 0..sent {
            host.send_without_waking(Head { token, ..Head::new(Kind::Call) }, &[]).unwrap();
        }
        let runs = std::thread::spawn(move || {
            let taken = std::iter::from_fn(|| runner.receive(usize::MAX).ok().map(|(head, _)| head.token));
            taken.take(sent as usize).collect::<Vec<_>>()
        });
        (0..round * 10).for_each(|_| std::hint::spin_loop());
        let untaken = host.close() as u64;
        let begun = runs.join().unwrap();
        // One more may have been taken, of which the runner then does nothing.
        let told = sent - untaken;
        assert!((told.saturating_sub(1)..=told).contains(&(begun.len() as u64)), "{untaken} {begun:?}");
        assert!(begun.iter().copied().eq(0..begun.len() as u64));
    }
}

#[test]
fn messages_that_wake_nobody_are_found_all_the_same() {
    let Ends { mut host, mut runner, ours, .. } = ends();
    host.send(Head { code: ANSWER_WAITS, ..Head::new(Kind::Call) }, &[]).unwrap();
    let area = Area::new(&ours, 3).unwrap();
    let waiting = std::thread::spawn(move || host.receive(9).unwrap().0.kind);
    runner.receive(9).unwrap();
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
fn lie(lie: impl FnOnce(&Area, Lane)) -> (Result<(Head, Body), FrameError>, Ends) {
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
    let publish = |area: &Area, head| {
        put(area, 0, head);
        area.published().store(1, Ordering::SeqCst);
    };
    let (heard, _) = lie(|area, _| {
        area.slot(0)[0].store(99, Ordering::SeqCst);
        area.published().store(1, Ordering::SeqCst);
    });
    assert!(matches!(heard, Err(FrameError::Kind(99))), "{heard:?}");
    let (heard, _) = lie(|area, _| publish(area, Head { len: 2 << 20, ..Head::new(Kind::Reply) }));
    assert!(matches!(heard, Err(FrameError::TooLong { .. })), "{heard:?}");
    let (heard, _) = lie(|area, _| publish(area, Head { len: INLINE as u32 + 1, ..Head::new(Kind::Reply) }));
    assert!(matches!(heard, Err(FrameError::NoRoom { .. })), "no memory was asked for: {heard:?}");
    let (heard, _) = lie(|area, _| {
        let room = Head { extra: INLINE as u64 + 1, ..Head::new(Kind::Room) };
        put(area, 0, room);
        put(area, 1, room);
        area.published().store(2, Ordering::SeqCst);
    });
    assert!(matches!(heard, Err(FrameError::OutOfTurn(Kind::Room))), "asked for twice: {heard:?}");
    let (heard, _) = lie(|area, _| {
        put(area, 0, Head { extra: INLINE as u64 + 1, ..Head::new(Kind::Room) });
        put(area, 1, Head { len: INLINE as u32 + 2, ..Head::new(Kind::Reply) });
        area.published().store(2, Ordering::SeqCst);
    });
    assert!(matches!(heard, Err(FrameError::NoRoom { .. })), "of another length: {heard:?}");
}

#[test]
fn long_message_that_could_still_be_written_is_a_fault() {
    let mut ends = ends();
    let len = INLINE + 1;
    let area = Area::new(&ends.theirs, 3).unwrap();
    let socket = ends.socket.try_clone().unwrap();
    put(&area, 0, Head { extra: len as u64, ..Head::new(Kind::Room) });
    area.published().store(1, Ordering::SeqCst);
    let liar = std::thread::spawn(move || {
        let Some(Parcel::Memory(file)) = passing::receive(&socket).unwrap() else { panic!("no memory") };
        let kept = Region::writable(file.as_fd(), len).unwrap();
        put(&area, 1, Head { len: len as u32, ..Head::new(Kind::Reply) });
        area.published().store(2, Ordering::SeqCst);
        waiting::wake(area.published());
        kept
    });
    let heard = ends.host.receive_within(1 << 20, Duration::from_secs(20));
    assert!(matches!(heard, Err(FrameError::Unsealed { .. })), "{heard:?}");
    drop(liar.join().unwrap());
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
    ends.socket.set_nonblocking(true).unwrap();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let (mut heard, mut faults) = (0, 0);
    for _ in 0..200_000 {
        let taken = ours.taken().load(Ordering::SeqCst);
        let slot = area.slot(taken);
        slot.iter().take(HEAD_LEN / 8 + 8).for_each(|word| word.store(next(), Ordering::SeqCst));
        // Most have a kind, and a length that could be.
        if next() % 8 > 0 {
            slot[0].store(next() % 20, Ordering::SeqCst);
            slot[3].store((next() % (2 * INLINE as u64)) << 32, Ordering::SeqCst);
            slot[2].store(next() % (4 * INLINE as u64), Ordering::SeqCst);
        }
        area.published().store(taken.wrapping_add(1), Ordering::SeqCst);
        match ends.host.receive_within(INLINE + 1000, Duration::ZERO) {
            Ok((head, body)) => {
                assert_eq!(head.len as usize, body.len());
                heard += 1;
            }
            Err(_) => faults += 1,
        }
        // What it was given of memory, it drops.
        while let Ok(Some(_)) = passing::receive(&ends.socket) {}
    }
    assert!(heard > 10_000 && faults > 10_000, "{heard} {faults}");
}
