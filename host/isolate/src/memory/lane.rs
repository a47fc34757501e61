//! One end of a lane over shared memory.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::SLOTS;
use super::end::End;
use super::mapping::{Area, Region, SLOT_BYTES};
use super::waiting::{FOR_ANSWERS, FOR_CALLS, FOR_PIECES, FOR_SERVICES, Looking, sleep, wake};
use super::words::{WORD, Writer, copy_out, wipe};
use crate::body::{Incoming, Received};
use crate::budget::Budget;
use crate::frame::{ANSWER_WAITS, FrameError, HEAD_LEN, Head, Kind, MESSAGE_TIME, SILENCE};

/// How soon is looked again whether the other side has taken a message, which is wiped then, or has sent one without waking this
/// side.
const LOOK_AFTER: Duration = Duration::from_millis(1);
const LOOK_AFTER_AT_MOST: Duration = Duration::from_secs(1);

/// How soon the host looks again whether a runner has ended that it waits for to take something: the end changes no counter of that.
const LOOK_FOR_END: Duration = Duration::from_millis(10);

/// Which end of a lane.
pub enum Side {
    /// The host trusts nothing that it reads, and no runner to go on.
    Host {
        /// Whether the runner has ended.
        end: Arc<End>,
        /// For the long messages of all lanes of the runner.
        budget: Arc<Budget>,
    },
    /// The runner's.
    Runner,
}

/// What a side waits for: whether it pays to look before it sleeps differs.
#[derive(Clone, Copy)]
enum Awaited {
    /// A message.
    Message,
    /// The next piece of one, or a slot for it: the other side is at it.
    Piece,
}

/// One end of a lane.
pub struct MemoryLane {
    side: Side,
    ours: Area,
    theirs: Area,
    /// How many slots were sent, and how many of these were wiped.
    sent: u32,
    wiped: u32,
    /// The words of each slot that hold something of ours.
    used: [usize; SLOTS as usize],
    /// How many slots of the other side were taken.
    taken: u32,
    looking: Looking,
    /// The same for the answer of a service, while one was asked.
    looking_for_service: Looking,
    asked: bool,
    looking_for_pieces: Looking,
    /// Whether messages may come that do not wake this side.
    looks_again: bool,
}

impl MemoryLane {
    /// The end of the lane in these regions; none where they have no such place.
    pub fn new(side: Side, place: usize, ours: &Arc<Region>, theirs: &Arc<Region>) -> Option<Self> {
        let looking = Looking::new(if matches!(side, Side::Host { .. }) { FOR_ANSWERS } else { FOR_CALLS });
        Some(Self {
            side,
            ours: Area::new(ours, place)?,
            theirs: Area::new(theirs, place)?,
            sent: 0,
            wiped: 0,
            used: [0; SLOTS as usize],
            taken: 0,
            looking,
            looking_for_service: Looking::new(FOR_SERVICES),
            asked: false,
            looking_for_pieces: Looking::new(FOR_PIECES),
            looks_again: false,
        })
    }

    /// Sends a message whose body is these parts, one behind the other.
    ///
    /// # Errors
    /// The other side is gone or out of step, or does not take a long message.
    pub fn send(&mut self, head: Head, parts: &[&[u8]]) -> Result<(), FrameError> {
        self.send_without_waking(head, parts)?;
        self.wake_other();
        Ok(())
    }

    /// The same, but for waking the other side once it is there whole.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub fn send_without_waking(&mut self, head: Head, parts: &[&[u8]]) -> Result<(), FrameError> {
        self.asked = head.kind == Kind::Ask;
        self.looks_again = match head.kind {
            Kind::Answer => self.looks_again,
            kind => matches!(kind, Kind::Call | Kind::CallAhead) && head.code == ANSWER_WAITS,
        };
        let (head, len) = head.with_body(parts)?;
        let head = head.encode();
        let mut parts = parts.iter();
        let mut part = &head[..];
        let mut slots = (HEAD_LEN + len).div_ceil(SLOT_BYTES);
        self.wait_for_slot(None)?;
        let mut until = None;
        loop {
            self.wipe_taken();
            let mut writer = Writer::new(self.ours.slot(self.sent));
            loop {
                part = writer.push(part);
                match parts.as_slice() {
                    [next, ..] if part.is_empty() => part = next,
                    _ => break,
                }
                parts.next();
            }
            let used = writer.finish();
            self.publish(used);
            slots -= 1;
            if slots == 0 {
                return Ok(());
            }
            self.wake_other();
            self.wait_for_slot(Some(*until.get_or_insert_with(|| Instant::now() + MESSAGE_TIME)))?;
        }
    }

    fn publish(&mut self, used: usize) {
        if let Some(entry) = self.used.get_mut((self.sent % SLOTS) as usize) {
            *entry = used;
        }
        self.sent = self.sent.wrapping_add(1);
        self.ours.published().store(self.sent, Ordering::SeqCst);
    }

    /// Waits for a message, whose body is kept where it has at most `limit` bytes, at most until `until`.
    ///
    /// # Errors
    /// The other side is gone, or has sent what is no message, or no more of one; the time is over.
    pub fn receive(&mut self, limit: usize, until: Option<Instant>) -> Result<Received, FrameError> {
        if !self.wait(Awaited::Message, until)? {
            return Err(std::io::Error::from(std::io::ErrorKind::TimedOut).into());
        }
        let (head, mut incoming) = self.take_head(limit)?;
        if incoming.missing() > 0 {
            let whole = [until, Some(Instant::now() + MESSAGE_TIME)].into_iter().flatten().min();
            while incoming.missing() > 0 {
                self.take_piece(&mut incoming, whole)?;
            }
        }
        Ok((head, incoming.finish()))
    }

    /// Takes the slot in which a message begins.
    fn take_head(&mut self, limit: usize) -> Result<(Head, Incoming), FrameError> {
        let (front, rest) = self.theirs.slot(self.taken).split_at(HEAD_LEN / WORD);
        let mut head = [0; HEAD_LEN];
        copy_out(front, &mut head);
        let head = Head::parse(&head)?;
        let budget = match &self.side {
            Side::Host { budget, .. } => Some(budget),
            Side::Runner => None,
        };
        let mut incoming = Incoming::new(head.len as usize, limit, budget);
        let count = incoming.take(SLOT_BYTES - HEAD_LEN, |to| copy_out(rest, to));
        self.has_taken(HEAD_LEN + count)?;
        Ok((head, incoming))
    }

    /// Waits for the next slot of a message, and takes it.
    fn take_piece(&mut self, incoming: &mut Incoming, whole: Option<Instant>) -> Result<(), FrameError> {
        // Who looks finds it, mostly: the clock is read only where it is not there yet.
        if !self.is_there()? && !self.wait(Awaited::Piece, self.go_on_by(whole))? {
            return Err(FrameError::Silent);
        }
        let slot = self.theirs.slot(self.taken);
        let count = incoming.take(SLOT_BYTES, |to| copy_out(slot, to));
        self.has_taken(count)
    }

    /// By when the other side must have gone on with a message that must have come, or be taken, until then. The runner trusts its
    /// host to go on.
    fn go_on_by(&self, whole: Option<Instant>) -> Option<Instant> {
        match self.side {
            Side::Host { .. } => [whole, Some(Instant::now() + SILENCE)].into_iter().flatten().min(),
            Side::Runner => None,
        }
    }

    /// The next slot was copied, of which so many bytes were used.
    fn has_taken(&mut self, bytes: usize) -> Result<(), FrameError> {
        if matches!(self.side, Side::Host { .. }) {
            // Only the host may write here too. The other one wipes what it has sent.
            wipe(self.theirs.slot(self.taken), bytes.div_ceil(WORD));
        }
        self.taken = self.taken.wrapping_add(1);
        self.ours.taken().store(self.taken, Ordering::SeqCst);
        if matches!(self.side, Side::Runner) && self.theirs.closed().load(Ordering::SeqCst) != 0 {
            return Err(FrameError::Closed);
        }
        if self.theirs.wants_room().load(Ordering::SeqCst) != 0 {
            wake(self.ours.taken());
        }
        // It has taken what it answers.
        self.wipe_taken();
        Ok(())
    }

    /// Wakes the other side where it sleeps until something is published.
    fn wake_other(&self) {
        if self.theirs.sleeps().load(Ordering::SeqCst) != 0 {
            wake(self.ours.published());
        }
    }

    /// Whether a message has come.
    pub fn has_message(&self) -> bool {
        self.theirs.published().load(Ordering::Acquire) != self.taken
    }

    /// How many slots were sent, ever; the count wraps.
    pub fn sent(&self) -> u32 {
        self.sent
    }

    /// As [`crate::lane::Lane::close`]: how many slots the other side has taken, ever. Either the runner sees this when it has taken
    /// one, or this side sees that it has.
    pub fn close(&self) -> u32 {
        self.ours.closed().store(1, Ordering::SeqCst);
        self.theirs.taken().load(Ordering::SeqCst)
    }

    /// Waits until a slot is free. The host waits within a message alone, which must be taken until `whole`: a runner that does not
    /// take whole messages is out of step.
    fn wait_for_slot(&mut self, whole: Option<Instant>) -> Result<(), FrameError> {
        let (mut until, mut has_looked) = (None, false);
        loop {
            let taken = self.theirs.taken().load(Ordering::SeqCst);
            let under_way = self.sent.wrapping_sub(taken);
            if under_way < SLOTS {
                return Ok(());
            }
            if let Side::Host { end, .. } = &self.side {
                if whole.is_none() || under_way > SLOTS {
                    return Err(FrameError::OutOfStep);
                }
                if end.has_come() {
                    return Err(std::io::Error::from(std::io::ErrorKind::BrokenPipe).into());
                }
            }
            let theirs = &self.theirs;
            let looks = !std::mem::replace(&mut has_looked, true);
            if looks && self.looking_for_pieces.look(|| theirs.taken().load(Ordering::Acquire) != taken) {
                continue;
            }
            until = until.or_else(|| self.go_on_by(whole));
            let left = until.map(|until: Instant| until.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Err(FrameError::Silent);
            }
            self.ours.wants_room().store(1, Ordering::SeqCst);
            // It may not know of the messages that fill them.
            self.wake_other();
            sleep(self.theirs.taken(), taken, left.map(|left| left.min(LOOK_FOR_END)));
            self.ours.wants_room().store(0, Ordering::SeqCst);
        }
    }

    /// Waits until the other side has published something, at most until `until`. Whether it has.
    fn wait(&mut self, awaited: Awaited, until: Option<Instant>) -> Result<bool, FrameError> {
        let mut pause = LOOK_AFTER;
        let mut has_looked = false;
        while !self.is_there()? {
            let (theirs, taken) = (&self.theirs, self.taken);
            let looking = match awaited {
                Awaited::Piece => &mut self.looking_for_pieces,
                Awaited::Message if self.asked => &mut self.looking_for_service,
                Awaited::Message => &mut self.looking,
            };
            // Once for a message: whether that pays is found out by how often it did.
            let looks = !std::mem::replace(&mut has_looked, true);
            if looks && looking.look(|| theirs.published().load(Ordering::Acquire) != taken) {
                continue;
            }
            self.wipe_taken();
            let mut limit = until.map(|until| until.saturating_duration_since(Instant::now()));
            if limit.is_some_and(|limit| limit.is_zero()) {
                return Ok(false);
            }
            if self.wiped != self.sent || self.looks_again {
                limit = Some(limit.map_or(pause, |limit| limit.min(pause)));
                pause = (pause * 2).min(LOOK_AFTER_AT_MOST);
            } else if matches!(self.side, Side::Host { .. }) {
                // The runner can move who sleeps here to another counter, where nobody wakes them: its end is seen all the same.
                limit = Some(limit.map_or(LOOK_AFTER_AT_MOST, |limit| limit.min(LOOK_AFTER_AT_MOST)));
            }
            self.ours.sleeps().store(1, Ordering::SeqCst);
            if self.theirs.published().load(Ordering::SeqCst) == taken {
                sleep(self.theirs.published(), taken, limit);
            }
            self.ours.sleeps().store(0, Ordering::SeqCst);
        }
        Ok(true)
    }

    fn is_there(&self) -> Result<bool, FrameError> {
        let (published, has_ended) = match &self.side {
            Side::Host { end, .. } => end.published(&self.theirs),
            Side::Runner => (self.theirs.published().load(Ordering::SeqCst), false),
        };
        match published.wrapping_sub(self.taken) {
            0 if has_ended => Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into()),
            waiting if waiting > SLOTS => Err(FrameError::OutOfStep),
            waiting => Ok(waiting > 0),
        }
    }

    /// Wipes what was sent and taken, in the host: messages hold secrets. It also wipes what it takes, which the runner sent.
    fn wipe_taken(&mut self) {
        if matches!(self.side, Side::Runner) {
            self.wiped = self.sent;
            return;
        }
        let taken = self.theirs.taken().load(Ordering::SeqCst);
        while self.wiped != self.sent && self.wiped != taken {
            let used = self.used.get((self.wiped % SLOTS) as usize).copied().unwrap_or_default();
            wipe(self.ours.slot(self.wiped), used);
            self.wiped = self.wiped.wrapping_add(1);
        }
    }
}
