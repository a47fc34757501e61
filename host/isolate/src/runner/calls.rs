//! Calls of one thread of the host, which are handed over to a runner together and run there one after the other.

use std::time::Duration;

use outrigger_abi::RawCall;

use super::lanes::Entry;
use super::{Gone, Runner};
use crate::frame::{ANSWER_WAITS, FrameError, Head, Kind};
use crate::lane::Lane;
use crate::together::Returned;

/// The bytes of a call that goes together with others, and of an answer that is told with one: both lie in one slot of a lane.
const SHORT: usize = 16 << 10;

impl Runner {
    /// Runs calls, one after the other, and gives how the code of each has returned. Where `answers_wait`, their answers go nowhere
    /// before all of them have. There are at most as many as fit in a lane.
    ///
    /// A call is gone where the runner ended. One that it may have begun is one of [`Self::open`], unless it was answered.
    pub fn call(&self, calls: &[&RawCall<'_>], answers_wait: bool) -> Vec<Result<Returned, Gone>> {
        let mut lane = match self.take_lane(Entry::Call) {
            Ok(lane) => lane,
            Err(gone) => return vec![Err(gone); calls.len()],
        };
        // On a socket it cannot be seen which ones the runner has taken, and the host does not wait for it to take a long one while it
        // may wait for the host: there each goes once the one before has returned.
        let is_short = |call: &&RawCall<'_>| call.method.len() + call.params.len() <= SHORT;
        let goes_together = matches!(lane, Lane::Memory(_)) && calls.iter().all(is_short);
        let at_once = if goes_together { calls.len() } else { 1 };
        // Of those that were sent whole, whether they brought an answer, and where they end; and how those have returned that have.
        let (mut sent, mut returned) = (Vec::with_capacity(calls.len()), Vec::with_capacity(calls.len()));
        let mut tried = 0;
        let mut run = || {
            for these in calls.chunks(at_once) {
                let first = sent.len();
                for (at, call) in these.iter().enumerate() {
                    tried += 1;
                    let was_told = self.hand_over(&mut lane, call, answers_wait, at + 1 == these.len())?;
                    sent.push((was_told, lane.mark()));
                }
                for (call, (was_told, _)) in these.iter().zip(sent.iter().skip(first)) {
                    returned.push(self.serve_call(&mut lane, call, *was_told)?);
                }
            }
            Ok(())
        };
        let outcome: Result<(), FrameError> = run();
        let mut outcomes: Vec<_> = returned.into_iter().map(Ok).collect();
        match outcome {
            Ok(()) => self.lanes.give_back(lane, Entry::Call),
            Err(error) => {
                self.lost(&error);
                // What was not sent whole, and what the runner has not taken, is not begun.
                let taken = lane.close();
                let begun = |at: usize| sent.get(at).is_some_and(|(_, mark)| !taken.lacks(*mark));
                let rest = calls.iter().enumerate().skip(outcomes.len());
                outcomes.extend(rest.map(|(at, call)| match at < tried {
                    true => self.gone(call.token, begun(at)),
                    false => Err(Gone { begun: false }),
                }));
            }
        }
        outcomes
    }

    /// What becomes of a call whose code has not returned at the runner's end.
    fn gone(&self, token: u64, begun: bool) -> Result<Returned, Gone> {
        // It was answered with those that the runner had begun, or given up: the next runner must not have it.
        let is_settled = !begun && !self.open.forget(token);
        if is_settled { Ok(Returned::default()) } else { Err(Gone { begun }) }
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
        let told = self.ahead.of(method, ask).map(|told| told.encode()).filter(|told| told.len() <= SHORT);
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
        let learn = |first: &Head| {
            if !was_told && first.token == call.token {
                self.ahead.learn(call.method, first);
            }
        };
        let (Head { code: status, extra, place, .. }, _) = self.serve_until_returned(lane, call.token, learn)?;
        if was_told && extra != 0 {
            self.ahead.forget(call.method);
        }
        self.open.returned(call.token, status);
        Ok(Returned { status, took: Duration::from_micros(place.into()) })
    }
}
