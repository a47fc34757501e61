//! One end of a lane over shared memory.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::INLINE;
use super::budget::{Budget, Share};
use super::end::End;
use super::mapping::{Area, Region, SLOTS, Sealed, fill, fixed_file, sealed_file};
use super::waiting::{FOR_ANSWERS, FOR_CALLS, FOR_SERVICES, Looking, sleep, wake};
use crate::body::Body;
use crate::frame::{ANSWER_WAITS, FrameError, HEAD_LEN, Head, Kind};
use crate::passing::{self, Parcel};

/// The bytes of a word of memory.
const WORD: usize = 8;

/// How soon is looked again whether the other side has taken a message, which is wiped then, or has sent one without waking this
/// side.
const LOOK_AFTER: Duration = Duration::from_millis(1);
const LOOK_AFTER_AT_MOST: Duration = Duration::from_secs(1);

/// Which end of a lane.
pub enum Side {
    /// The host trusts nothing that it reads. It makes the memory of long messages.
    Host {
        /// Whether the runner has ended.
        end: Arc<End>,
        /// For the long messages of all lanes of the runner.
        budget: Arc<Budget>,
    },
    /// The runner's.
    Runner,
}

/// One end of a lane.
pub struct MemoryLane {
    side: Side,
    /// Memory of long messages goes this way.
    socket: UnixStream,
    ours: Area,
    theirs: Area,
    /// How many messages were sent, and how many of these were wiped.
    sent: u32,
    wiped: u32,
    /// The words of each slot that hold a message of ours.
    used: [usize; SLOTS as usize],
    /// How many messages of the other side were taken.
    taken: u32,
    looking: Looking,
    /// The same for the answer of a service, while one was asked.
    looking_for_service: Looking,
    asked: bool,
    /// The memory that the runner has asked for, in the host.
    room: Option<Room>,
    /// Whether messages may come that do not wake this side.
    looks_again: bool,
}

struct Room {
    file: OwnedFd,
    len: usize,
    share: Share,
}

impl MemoryLane {
    /// The end of the lane in these regions; none where they have no such place.
    pub fn new(side: Side, socket: UnixStream, place: usize, ours: &Arc<Region>, theirs: &Arc<Region>) -> Option<Self> {
        let looking = Looking::new(if matches!(side, Side::Host { .. }) { FOR_ANSWERS } else { FOR_CALLS });
        Some(Self {
            side,
            socket,
            ours: Area::new(ours, place)?,
            theirs: Area::new(theirs, place)?,
            sent: 0,
            wiped: 0,
            used: [0; SLOTS as usize],
            taken: 0,
            looking,
            looking_for_service: Looking::new(FOR_SERVICES),
            asked: false,
            room: None,
            looks_again: false,
        })
    }

    /// Sends a message whose body is these parts, one behind the other.
    ///
    /// # Errors
    /// The other side is gone or out of step; there is no memory for so long a body.
    pub fn send(&mut self, head: Head, parts: &[&[u8]]) -> Result<(), FrameError> {
        self.send_without_waking(head, parts)?;
        self.wake_other();
        Ok(())
    }

    /// The same, but for waking the other side.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub fn send_without_waking(&mut self, head: Head, parts: &[&[u8]]) -> Result<(), FrameError> {
        self.asked = head.kind == Kind::Ask;
        self.looks_again = match head.kind {
            Kind::Answer => self.looks_again,
            kind => matches!(kind, Kind::Call | Kind::CallAhead) && head.code == ANSWER_WAITS,
        };
        let len: usize = parts.iter().map(|part| part.len()).sum();
        let too_long = || FrameError::TooLong { len, limit: u32::MAX as usize };
        let head = Head { len: u32::try_from(len).map_err(|_| too_long())?, ..head };
        if len <= INLINE {
            return self.publish(head, parts);
        }
        match self.side {
            Side::Host { .. } => {
                let file = sealed_file(parts, len)?;
                passing::send(&self.socket, &Parcel::Memory(file.as_fd()))?;
            }
            Side::Runner => {
                self.publish(Head { extra: len as u64, ..Head::new(Kind::Room) }, &[])?;
                self.wake_other();
                match passing::receive(&self.socket)? {
                    Some(Parcel::Memory(file)) => drop(fill(file, parts)?),
                    _ => return Err(FrameError::NoRoom { len }),
                }
            }
        }
        self.publish(head, &[])
    }

    /// Waits for a message, whose body may have `limit` bytes, at most until `until`.
    ///
    /// # Errors
    /// The other side is gone, or has sent what is no message, or a longer one; the time is over.
    pub fn receive(&mut self, limit: usize, until: Option<Instant>) -> Result<(Head, Body), FrameError> {
        loop {
            self.wait(until)?;
            let (head, copied) = self.take(limit)?;
            if head.kind == Kind::Room {
                self.make_room(head.extra, limit)?;
                if until.is_some_and(|until| until <= Instant::now()) {
                    return Err(std::io::Error::from(std::io::ErrorKind::TimedOut).into());
                }
                continue;
            }
            let body = match copied {
                Some(bytes) => Body::from(bytes),
                None => self.long_body(head.len as usize)?,
            };
            return Ok((head, body));
        }
    }

    /// Copies the next message out of its slot. A body that lies elsewhere is none.
    fn take(&mut self, limit: usize) -> Result<(Head, Option<Vec<u8>>), FrameError> {
        let slot = self.theirs.slot(self.taken);
        let (front, rest) = slot.split_at(HEAD_LEN / WORD);
        let mut head = [0; HEAD_LEN];
        copy_out(front, &mut head);
        let head = Head::parse(&head)?;
        let len = head.len as usize;
        if len > limit {
            return Err(FrameError::TooLong { len, limit });
        }
        let copied = (len <= INLINE).then(|| {
            let mut bytes = vec![0; len];
            copy_out(rest, &mut bytes);
            bytes
        });
        if matches!(self.side, Side::Host { .. }) {
            // Only the host may write here too. The other one wipes what it has sent.
            wipe(slot, words(copied.as_ref().map_or(0, Vec::len)));
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
        Ok((head, copied))
    }

    /// Makes the memory that the runner asks for.
    fn make_room(&mut self, len: u64, limit: usize) -> Result<(), FrameError> {
        let Side::Host { budget, .. } = &self.side else { return Err(FrameError::OutOfTurn(Kind::Room)) };
        if self.room.is_some() {
            return Err(FrameError::OutOfTurn(Kind::Room));
        }
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        let share = if len <= limit { budget.take(len) } else { None };
        let Some((share, file)) = share.and_then(|share| Some((share, fixed_file(len).ok()?))) else {
            return Ok(passing::send(&self.socket, &Parcel::NoMemory)?);
        };
        passing::send(&self.socket, &Parcel::Memory(file.as_fd()))?;
        self.room = Some(Room { file, len, share });
        Ok(())
    }

    /// The body of a message that lies in memory of its own.
    fn long_body(&mut self, len: usize) -> Result<Body, FrameError> {
        if matches!(self.side, Side::Runner) {
            return match passing::receive(&self.socket)? {
                Some(Parcel::Memory(file)) => Ok(Body::from(Sealed::new(file, len)?)),
                _ => Err(FrameError::NoRoom { len }),
            };
        }
        let room = self.room.take().filter(|room| room.len == len).ok_or(FrameError::NoRoom { len })?;
        // Where the runner kept a way to write, this fails.
        let sealed = Sealed::new(room.file, len).map_err(|_| FrameError::Unsealed { len })?;
        Ok(Body::shared(sealed, room.share))
    }

    fn publish(&mut self, head: Head, parts: &[&[u8]]) -> Result<(), FrameError> {
        self.wait_for_room()?;
        self.wipe_taken();
        let mut writer = Writer { slot: self.ours.slot(self.sent), at: 0, word: [0; WORD] };
        writer.push(&head.encode());
        parts.iter().for_each(|part| writer.push(part));
        let used = writer.finish();
        if let Some(entry) = self.used.get_mut((self.sent % SLOTS) as usize) {
            *entry = used;
        }
        self.sent = self.sent.wrapping_add(1);
        self.ours.published().store(self.sent, Ordering::SeqCst);
        Ok(())
    }

    /// Wakes the other side where it sleeps until a message is published.
    fn wake_other(&self) {
        if self.theirs.sleeps().load(Ordering::SeqCst) != 0 {
            wake(self.ours.published());
        }
    }

    /// Whether a message has come.
    pub fn has_message(&self) -> bool {
        self.theirs.published().load(Ordering::Acquire) != self.taken
    }

    /// As [`crate::lane::Lane::close`]. Either the runner sees this when it has taken a message, or this side sees that it has.
    pub fn close(&self) -> usize {
        self.ours.closed().store(1, Ordering::SeqCst);
        let untaken = self.sent.wrapping_sub(self.theirs.taken().load(Ordering::SeqCst));
        if untaken <= SLOTS { untaken as usize } else { 0 }
    }

    /// Waits until a slot is free. The host never waits: a runner that takes nothing is out of step.
    fn wait_for_room(&mut self) -> Result<(), FrameError> {
        loop {
            let taken = self.theirs.taken().load(Ordering::SeqCst);
            let under_way = self.sent.wrapping_sub(taken);
            if under_way < SLOTS {
                return Ok(());
            }
            if matches!(self.side, Side::Host { .. }) {
                return Err(FrameError::OutOfStep);
            }
            self.ours.wants_room().store(1, Ordering::SeqCst);
            // It may not know of the messages that fill them.
            self.wake_other();
            sleep(self.theirs.taken(), taken, None);
            self.ours.wants_room().store(0, Ordering::SeqCst);
        }
    }

    /// Waits until the other side has published a message.
    fn wait(&mut self, until: Option<Instant>) -> Result<(), FrameError> {
        let mut pause = LOOK_AFTER;
        let mut has_looked = false;
        while !self.is_there()? {
            let (theirs, taken) = (&self.theirs, self.taken);
            let looking = if self.asked { &mut self.looking_for_service } else { &mut self.looking };
            // Once for a message: whether that pays is found out by how often it did.
            if !has_looked && looking.look(|| theirs.published().load(Ordering::Acquire) != taken) {
                continue;
            }
            has_looked = true;
            self.wipe_taken();
            let mut limit = until.map(|until| until.saturating_duration_since(Instant::now()));
            if limit.is_some_and(|limit| limit.is_zero()) {
                return Err(std::io::Error::from(std::io::ErrorKind::TimedOut).into());
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
        Ok(())
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

/// The words of a message with a body of so many bytes.
fn words(body: usize) -> usize {
    HEAD_LEN / WORD + body.div_ceil(WORD)
}

fn wipe(slot: &[AtomicU64], words: usize) {
    slot.iter().take(words).for_each(|word| word.store(0, Ordering::Relaxed));
}

fn copy_out(words: &[AtomicU64], to: &mut [u8]) {
    // Whole words apart from the rest of one: copying bytes of a length that is not known would take ten times as long.
    let (whole, rest) = to.as_chunks_mut::<WORD>();
    let (front, back) = words.split_at_checked(whole.len()).unwrap_or((words, &[]));
    for (bytes, word) in whole.iter_mut().zip(front) {
        *bytes = word.load(Ordering::Relaxed).to_ne_bytes();
    }
    if let Some(last) = back.first() {
        rest.iter_mut().zip(last.load(Ordering::Relaxed).to_ne_bytes()).for_each(|(byte, from)| *byte = from);
    }
}

/// Writes bytes into words, one part behind the other.
struct Writer<'a> {
    slot: &'a [AtomicU64],
    /// How many bytes were written.
    at: usize,
    /// Those that fill no word yet.
    word: [u8; WORD],
}

impl Writer<'_> {
    fn push(&mut self, mut part: &[u8]) {
        let filled = self.at % WORD;
        if filled > 0 {
            let (front, rest) = part.split_at(part.len().min(WORD - filled));
            if let Some(place) = self.word.get_mut(filled..filled + front.len()) {
                place.copy_from_slice(front);
            }
            self.at += front.len();
            part = rest;
            if !self.at.is_multiple_of(WORD) {
                return;
            }
            self.store(self.at / WORD - 1, self.word);
        }
        let mut chunks = part.chunks_exact(WORD);
        let slot = self.slot.get(self.at / WORD..).unwrap_or_default();
        for (chunk, word) in (&mut chunks).zip(slot) {
            word.store(u64::from_ne_bytes(chunk.try_into().unwrap_or_default()), Ordering::Relaxed);
        }
        let rest = chunks.remainder();
        self.at += part.len();
        if let Some(place) = self.word.get_mut(..rest.len()) {
            place.copy_from_slice(rest);
        }
    }

    /// How many words were written.
    fn finish(self) -> usize {
        if !self.at.is_multiple_of(WORD) {
            self.store(self.at / WORD, self.word);
        }
        self.at.div_ceil(WORD)
    }

    fn store(&self, place: usize, word: [u8; WORD]) {
        if let Some(place) = self.slot.get(place) {
            place.store(u64::from_ne_bytes(word), Ordering::Relaxed);
        }
    }
}
