//! Calls that are handed over to a plugin's process together: of a short call, handing it over is most of what it costs.

use std::sync::atomic::Ordering;
use std::time::Duration;

use outrigger_abi::{RawCall, STATUS_OK};
use outrigger_isolate::Runners;
use outrigger_memory::wipe_stack;
use outrigger_sdk::manifest::MethodSpec;

use super::{AnswerLost, Instance};
use crate::lane::Lane;

/// A call that is about to be run.
pub struct Prepared<'a> {
    /// Names it.
    pub token: u64,
    /// Its method.
    pub method: &'a MethodSpec,
    /// Its arguments, a JSON array.
    pub params: &'a [u8],
}

impl Instance {
    /// Whether its calls can be handed over together.
    pub fn takes_together(&self) -> bool {
        self.runners.is_some()
    }

    /// Runs inline calls, as [`Self::call`], one after the other, on this thread, whose client gets no answer meanwhile. `took` is
    /// told how long the code of each took, by its place among them. There are at most [`outrigger_isolate::MAX_TOGETHER`].
    pub fn call_together(&self, calls: &[Prepared<'_>], took: impl FnMut(usize, Duration)) {
        let Some(runners) = &self.runners else { return };
        let run = self.run_in(Lane::Inline);
        let is_wanted = |(_, call): &(usize, &Prepared<'_>)| self.context.calls.begin(call.token, run);
        let begun: Vec<_> = calls.iter().enumerate().filter(is_wanted).collect();
        self.health.calls.fetch_add(begun.len() as u64, Ordering::Relaxed);
        let lost: Vec<_> = begun.iter().map(|(_, call)| AnswerLost { instance: self, token: call.token }).collect();
        match self.enter() {
            Some(_inside) => self.enter_together(runners, &begun, took),
            None => begun.iter().for_each(|(_, call)| self.fail(call.token, "The plugin is stopping")),
        }
        lost.into_iter().for_each(std::mem::forget);
        for (_, call) in begun {
            self.end_call(call.token);
        }
    }

    fn enter_together(
        &self,
        runners: &Runners,
        calls: &[(usize, &Prepared<'_>)],
        mut took: impl FnMut(usize, Duration),
    ) {
        let raw: Vec<RawCall<'_>> =
            calls.iter().map(|(_, call)| self.raw(call.token, call.method, call.params)).collect();
        runners.call(&raw.iter().collect::<Vec<_>>(), |at, returned| {
            let Some((place, call)) = calls.get(at) else { return };
            self.health.spent(returned.took);
            took(*place, returned.took);
            if returned.status != STATUS_OK {
                self.fail(call.token, "Internal error");
                self.fault(format!("the call of {} ended with status {}", call.method.name, returned.status));
            }
        });
        if calls.iter().any(|(_, call)| call.method.private_keys) {
            wipe_stack();
        }
    }
}
