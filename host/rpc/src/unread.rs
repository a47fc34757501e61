//! Answers that wait for their clients to read, bounded over all connections.
//!
//! An answer counts from the first blocked write until it is sent. Beyond the bound, the connections that have read
//! nothing for the longest time are reset.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use parking_lot::Mutex;

use super::figures::EdgeFigures;
use super::slots::Link;

pub(super) struct Unread {
    most: u64,
    figures: Arc<EdgeFigures>,
    state: Mutex<UnreadState>,
}

#[derive(Default)]
struct UnreadState {
    bytes: u64,
    next: u64,
    held: HashMap<u64, HeldReply>,
}

struct HeldReply {
    bytes: u64,
    /// When the client last read some of it.
    since: Instant,
    link: Arc<Link>,
}

pub(super) struct UnreadReply {
    unread: Arc<Unread>,
    link: Arc<Link>,
    number: Option<u64>,
}

impl Unread {
    pub(super) fn new(most: u64, figures: Arc<EdgeFigures>) -> Arc<Self> {
        Arc::new(Self { most, figures, state: Mutex::default() })
    }

    fn hold(&self, link: &Arc<Link>, bytes: u64, since: Instant) -> u64 {
        let mut state = self.state.lock();
        let number = state.next;
        state.next += 1;
        state.held.insert(number, HeldReply { bytes, since, link: link.clone() });
        state.bytes += bytes;
        self.make_room(&mut state, number);
        number
    }

    /// Enforces the bound after `last` was added or grew.
    fn make_room(&self, state: &mut UnreadState, last: u64) {
        // An answer that exceeds the bound by itself resets only its own connection.
        if state.held.get(&last).is_some_and(|held| held.bytes > self.most) {
            self.drop_reply(state, last);
        }
        while state.bytes > self.most {
            let oldest =
                state.held.iter().min_by_key(|(number, held)| (held.since, **number)).map(|(number, _)| *number);
            let Some(oldest) = oldest else { break };
            self.drop_reply(state, oldest);
        }
        self.figures.unread_bytes.store(state.bytes, Ordering::Relaxed);
    }

    fn drop_reply(&self, state: &mut UnreadState, number: u64) {
        let Some(held) = state.release(number) else { return };
        tracing::warn!(
            peer = %held.link.peer(),
            bytes = held.bytes,
            "rpc.max_unread_bytes" = self.most,
            "an answer that is not read is dropped"
        );
        self.figures.cut_unread.fetch_add(1, Ordering::Relaxed);
        held.link.close();
    }
}

impl UnreadState {
    fn release(&mut self, number: u64) -> Option<HeldReply> {
        let held = self.held.remove(&number)?;
        self.bytes -= held.bytes;
        Some(held)
    }
}

impl UnreadReply {
    pub(super) fn new(unread: Arc<Unread>, link: Arc<Link>) -> Self {
        Self { unread, link, number: None }
    }

    /// Records that the socket is full while `bytes` bytes wait to be sent.
    pub(super) fn blocked(&mut self, bytes: u64) {
        let Some(number) = self.number else {
            self.number = Some(self.unread.hold(&self.link, bytes, Instant::now()));
            return;
        };
        // Another answer may be queued after this one.
        let mut state = self.unread.state.lock();
        let Some(held) = state.held.get_mut(&number).filter(|held| held.bytes < bytes) else { return };
        let more = bytes - held.bytes;
        held.bytes = bytes;
        state.bytes += more;
        self.unread.make_room(&mut state, number);
    }

    pub(super) fn moved(&self) {
        if let Some(number) = self.number
            && let Some(held) = self.unread.state.lock().held.get_mut(&number)
        {
            held.since = Instant::now();
        }
    }

    pub(super) fn sent(&mut self) {
        if let Some(number) = self.number.take() {
            let mut state = self.unread.state.lock();
            state.release(number);
            self.unread.figures.unread_bytes.store(state.bytes, Ordering::Relaxed);
        }
    }
}

impl Drop for UnreadReply {
    fn drop(&mut self) {
        self.sent();
    }
}

#[cfg(test)]
mod tests {
    use super::super::peers::Peer;
    use super::super::slots::{ConnectionSlot, ConnectionSlots};
    use super::*;

    #[test]
    fn unread_answer_that_was_left_for_longest_is_dropped() {
        let figures = Arc::<EdgeFigures>::default();
        let (slots, unread) = (ConnectionSlots::new(9, figures.clone()), Unread::new(100, figures.clone()));
        let links: Vec<ConnectionSlot> = (0..4).map(|_| slots.enter(Peer::Ip([10, 0, 0, 1].into())).unwrap()).collect();
        let mut replies: Vec<_> = links.iter().map(|slot| UnreadReply::new(unread.clone(), slot.0.clone())).collect();
        let held =
            |number: usize| unread.state.lock().held.values().any(|held| Arc::ptr_eq(&held.link, &links[number].0));
        let bytes = || figures.unread_bytes.load(Ordering::Relaxed);
        replies[0].blocked(60);
        replies[1].blocked(40);
        replies[1].blocked(40);
        replies[0].moved();
        assert_eq!(bytes(), 100);
        replies[2].blocked(10);
        assert!(held(0) && !held(1) && held(2));
        replies[0].sent();
        assert_eq!((bytes(), figures.cut_unread.load(Ordering::Relaxed)), (10, 1));
        replies[3].blocked(500);
        assert!(held(2) && !held(3), "an answer longer than the bound drops no other");
        replies[2].blocked(30);
        assert_eq!(bytes(), 30, "an answer may grow while it waits");
        replies[2].blocked(20);
        assert_eq!(bytes(), 30);
        replies[2].blocked(101);
        assert!(!held(2));
        drop(replies);
        assert_eq!(bytes(), 0);
    }
}
