//! Calls of one thread of the host, which are handed over to a runner together and run there one after the other.

use std::time::Duration;

use outrigger_abi::{RawCall, STATUS_OK};

use super::{Gone, Runner};
use crate::body::Body;
use crate::frame::{ANSWER_WAITS, FrameError, Head, Kind};
use crate::lane::Lane;

/// How the code of a call has returned.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Returned {
    /// Its status.
    pub status: i32,
    /// How long it took, where its answer could wait.
    pub took: Duration,
}

impl Runner {
    /// Runs calls, one after the other, and gives how the code of each has returned. Where `answers_wait`, their answers go nowhere
    /// before all of them have. There are at most as many as fit in a lane.
    ///
    /// A call is lost where the runner ended. One that it may have begun is one of [`Self::open`], unless it was answered.
    pub fn call(&self, calls: &[&RawCall<'_>], answers_wait: bool) -> Vec<Result<Returned, Gone>> {
        let mut lane = match self.take_lane() {
            Ok(lane) => lane,
            Err(gone) => return vec![Err(gone); calls.len()],
        };
        let mut told_ahead = Vec::with_capacity(calls.len());
        let mut outcomes = Vec::with_capacity(calls.len());
        let mut failed = None;
        for (at, call) in calls.iter().enumerate() {
            match self.hand_over(&mut lane, call, answers_wait, at + 1 == calls.len()) {
                Ok(told) => told_ahead.push(told),
                // Those that were handed over are not heard of either: the runner is gone.
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
        }
        for (call, told) in calls.iter().zip(&told_ahead) {
            if failed.is_some() {
                break;
            }
            match self.serve_call(&mut lane, call, *told) {
                Ok(returned) => outcomes.push(Ok(returned)),
                Err(error) => failed = Some(error),
            }
        }
        match failed {
            None => self.give_back(lane),
            Some(error) => {
                self.lost(&error, true);
                // What the runner has not taken, and what was not sent whole, is not begun.
                let begun = told_ahead.len().saturating_sub(lane.close());
                outcomes.extend((outcomes.len()..calls.len()).map(|at| Err(Gone { begun: at < begun })));
            }
        }
        calls.iter().zip(outcomes).map(|(call, outcome)| self.take_back(call, outcome)).collect()
    }

    /// Sends a call. Whether it brings an answer that its code may ask for first.
    fn hand_over(
        &self,
        lane: &mut Lane,
        call: &RawCall<'_>,
        answer_waits: bool,
        is_last: bool,
    ) -> Result<bool, FrameError> {
        let RawCall { token, method, params, deadline_ms } = *call;
        self.open.begin(token, method, answer_waits);
        let ask = |place| self.backend.ask(&Head { token, place, ..Head::new(Kind::Ask) }, b"");
        let told = self.ahead.of(method, ask).map(|told| told.encode());
        let head = Head {
            token,
            code: if answer_waits { ANSWER_WAITS } else { 0 },
            extra: deadline_ms.unwrap_or(0),
            place: u32::try_from(method.len()).unwrap_or(u32::MAX),
            ..Head::new(if told.is_some() { Kind::CallAhead } else { Kind::Call })
        };
        let parts = [told.as_deref().unwrap_or_default(), method, params];
        if is_last { lane.send(head, &parts) } else { lane.send_without_waking(head, &parts) }?;
        Ok(told.is_some())
    }

    /// Answers what the code of a call asks until it has returned.
    fn serve_call(&self, lane: &mut Lane, call: &RawCall<'_>, was_told: bool) -> Result<Returned, FrameError> {
        let learn = |first: &Head, body: &Body| {
            if !was_told && first.token == call.token {
                self.ahead.learn(call.method, first, body.len());
            }
        };
        let (Head { code: status, extra, place, .. }, _) = self.serve_until_returned(lane, call.token, learn)?;
        if was_told && extra != 0 {
            self.ahead.forget(call.method);
        }
        self.open.returned(call.token, status);
        Ok(Returned { status, took: Duration::from_micros(place.into()) })
    }

    /// A call that was not begun is none of this runner's any more.
    fn take_back(&self, call: &RawCall<'_>, outcome: Result<Returned, Gone>) -> Result<Returned, Gone> {
        match outcome {
            // It was answered with those that the runner had begun, or given up: the next runner must not have it.
            Err(Gone { begun: false }) if !self.open.forget(call.token) => Ok(Returned { status: STATUS_OK, ..Returned::default() }),
            outcome => outcome,
        }
    }
}
