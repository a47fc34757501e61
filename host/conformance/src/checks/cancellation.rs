//! Calls that nobody waits for any more: cancelled before, while and after they run, once and twice.

use std::sync::mpsc::channel;

use super::Outcome;
use crate::arguments;
use crate::session::{Harness, Session, Shape};

/// Every method, with a few kinds of arguments, cancelled at each moment.
pub fn cancellation(session: &Session<'_>) -> Outcome {
    let Some(harness) = session.bring_up(Shape::USUAL) else { return Outcome::Done("it does not start".to_owned()) };
    let mut calls = 0;
    for method in session.methods() {
        let sets = arguments::few(method).into_iter().chain(arguments::extra(&method.name, &session.job.calls));
        for set in sets {
            before(&harness, &method.name, &set);
            during(&harness, &method.name, &set);
            after(&harness, &method.name, &set);
            calls += 3;
        }
    }
    session.finish(harness);
    Outcome::Done(format!("{calls} calls, cancelled before, while and after they ran"))
}

/// The notice overtakes the call.
fn before(harness: &Harness<'_>, method: &str, set: &str) {
    let token = harness.probe.host.open(method, set);
    harness.probe.cancel(token, method, set);
    harness.probe.call_as(token, method, set);
    harness.probe.cancel(token, method, set);
}

/// The notice comes on another thread while the call asks a service, and again when it has returned.
fn during(harness: &Harness<'_>, method: &str, set: &str) {
    let token = harness.probe.host.open(method, set);
    let (moment, came) = channel();
    harness.probe.host.pause_at(token, moment.clone());
    std::thread::scope(|scope| {
        scope.spawn(move || {
            harness.probe.call_as(token, method, set);
            // A call that asks no service is cancelled at its end. Who waited for it waits no more.
            let _ = moment.send(());
        });
        let _ = came.recv();
        harness.probe.cancel(token, method, set);
        harness.probe.host.resume();
    });
    harness.probe.cancel(token, method, set);
}

/// The notice comes when the call was answered or has been kept, twice.
fn after(harness: &Harness<'_>, method: &str, set: &str) {
    let token = harness.probe.call(method, set);
    harness.probe.cancel(token, method, set);
    harness.probe.cancel(token, method, set);
}
