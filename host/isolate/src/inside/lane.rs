//! A lane at the runner's end.

use std::collections::VecDeque;
use std::time::Duration;

use super::told;
use crate::body::Received;
use crate::frame::{ANSWER_WAITS, FrameError, Head, Kind};
use crate::lane::Lane;

/// A lane at the runner's end.
pub struct RunnerLane {
    lane: Lane,
    /// Calls that came while the code of an earlier one waited for the host: the host hands over several at once.
    waiting: VecDeque<Received>,
    /// Whether the answer of the call that is run may wait until its code has returned.
    answer_waits: bool,
}

impl RunnerLane {
    /// This end of a lane.
    pub fn new(lane: Lane) -> Self {
        Self { lane, waiting: VecDeque::new(), answer_waits: false }
    }

    /// The next function to be run.
    ///
    /// # Errors
    /// The host is gone.
    pub fn next(&mut self) -> Result<Received, FrameError> {
        let next = match self.waiting.pop_front() {
            Some(next) => next,
            None => self.lane.receive(usize::MAX)?,
        };
        self.answer_waits = is_call(next.0.kind) && next.0.code == ANSWER_WAITS;
        Ok(next)
    }

    /// Whether the answer of the call that is run may wait until its code has returned.
    pub fn answer_waits(&self) -> bool {
        self.answer_waits
    }

    /// The function of this call has returned, after so long.
    ///
    /// # Errors
    /// The host is gone.
    pub fn returned(&mut self, token: u64, status: i32, took: Duration, reason: &[u8]) -> Result<(), FrameError> {
        let place = u32::try_from(took.as_micros()).unwrap_or(u32::MAX);
        let head = Head { token, code: status, extra: told::end().into(), place, ..Head::new(Kind::Returned) };
        // The host hears of all of them when the last one has returned.
        if self.answer_waits && (!self.waiting.is_empty() || self.lane.has_message()) {
            return self.lane.send_without_waking(head, &[reason]);
        }
        self.lane.send(head, &[reason])
    }

    /// Sends an answer.
    ///
    /// # Errors
    /// The host is gone; no message can say so long an answer.
    pub fn answer(&mut self, head: Head, body: &[u8]) -> Result<(), FrameError> {
        if self.answer_waits { self.lane.send_without_waking(head, &[body]) } else { self.lane.send(head, &[body]) }
    }

    /// Asks the host, and waits for what it says.
    ///
    /// # Errors
    /// The host is gone; no message can say so long a question.
    pub fn ask(&mut self, head: Head, body: &[u8]) -> Result<Received, FrameError> {
        self.lane.send(head, &[body])?;
        loop {
            match self.lane.receive(usize::MAX)? {
                answer if answer.0.kind == Kind::Answer => return Ok(answer),
                call if is_call(call.0.kind) => self.waiting.push_back(call),
                (head, _) => return Err(FrameError::OutOfTurn(head.kind)),
            }
        }
    }
}

fn is_call(kind: Kind) -> bool {
    matches!(kind, Kind::Call | Kind::CallAhead)
}
