//! Calls with all kinds of arguments: one after the other, kept, and many at the same time.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use outrigger_sdk::manifest::MethodSpec;

use super::Outcome;
use crate::arguments;
use crate::probe::CallName;
use crate::protocol::Finding;
use crate::reporter::took;
use crate::session::{Harness, Session, Shape};

/// A method that no manifest lists: a host never calls it, and a plugin must survive it.
const UNKNOWN_METHOD: &str = "nosuchmethod";

/// Threads that call at the same time.
const THREADS: usize = 4;

/// Calls that each of them makes.
const CALLS_OF_THREAD: usize = 400;

/// Every so many-th call of a thread, the call that its neighbour makes is cancelled.
const CANCEL_EVERY: usize = 5;

/// The longest that a call of an inline method may take: the host runs it on a thread that serves many connections. Far more than
/// "well under a millisecond", so that neither a library without optimisation nor a crowded machine is taken for a slow method.
const QUICK_LIMIT: Duration = Duration::from_millis(5);

/// How often an inline method is called with the same arguments; half of the calls may take longer, as the first ones do.
const QUICK_CALLS: usize = 7;

/// Every method with every kind of arguments, one call after the other. Each is answered at once, or its token is kept; then
/// it is cancelled.
pub fn parameters(session: &Session<'_>) -> Outcome {
    let Some(harness) = session.bring_up(Shape::USUAL) else { return not_started() };
    let mut calls = 0;
    for method in session.methods() {
        let sets = arguments::all(method).into_iter().chain(arguments::extra(&method.name, &session.job.calls));
        for set in sets {
            call_once(&harness, &method.name, &set);
            calls += 1;
        }
        // Between processes it never runs inline.
        if method.inline && session.isolation.is_none() {
            calls += judge_quickness(session, &harness, method);
        }
    }
    harness.probe.call(UNKNOWN_METHOD, "[]");
    session.finish(harness);
    Outcome::Done(format!("{calls} calls of {} methods", session.methods().count()))
}

/// Makes a call, and cancels it where it was kept. How long the plugin's function took.
fn call_once(harness: &Harness<'_>, method: &str, set: &str) -> Duration {
    let token = harness.probe.call(method, set);
    let took = took();
    if harness.probe.host.is_open(token) {
        harness.probe.cancel(token, method, set);
    }
    took
}

/// Whether an inline method is fast enough, with a few kinds of arguments. How many calls were made.
fn judge_quickness(session: &Session<'_>, harness: &Harness<'_>, method: &MethodSpec) -> usize {
    let mut calls = 0;
    let sets = arguments::few(method).into_iter().chain(arguments::extra(&method.name, &session.job.calls));
    for set in sets {
        let mut times: Vec<Duration> = (0..QUICK_CALLS).map(|_| call_once(harness, &method.name, &set)).collect();
        calls += times.len();
        times.sort();
        if times.get(QUICK_CALLS / 2).is_some_and(|median| *median > QUICK_LIMIT) {
            let call = CallName { method: method.name.clone(), arguments: set };
            let limit = QUICK_LIMIT.as_millis();
            session.found(Finding::of(&call, format!("it is marked inline, and takes more than {limit} ms")));
            break;
        }
    }
    calls
}

fn not_started() -> Outcome {
    Outcome::Done("it does not start".to_owned())
}

/// The same calls, without a cancellation: what is kept must be answered by `quiesce`.
pub fn tokens(session: &Session<'_>) -> Outcome {
    let Some(harness) = session.bring_up(Shape::USUAL) else { return not_started() };
    let mut kept: BTreeMap<&str, usize> = BTreeMap::new();
    for method in session.methods() {
        let sets = arguments::all(method).into_iter().chain(arguments::extra(&method.name, &session.job.calls));
        for set in sets {
            let token = harness.probe.call(&method.name, &set);
            if harness.probe.host.is_open(token) {
                *kept.entry(&method.name).or_default() += 1;
            }
        }
    }
    session.finish(harness);
    if kept.is_empty() {
        return Outcome::Done("no call was kept".to_owned());
    }
    let list: Vec<String> = kept.iter().map(|(method, count)| format!("{count} of {method}")).collect();
    Outcome::Done(format!("kept until quiesce: {}", list.join(", ")))
}

/// Several threads call all methods at the same time, cancel each other's calls, and are still at it when `quiesce` comes.
pub fn concurrency(session: &Session<'_>) -> Outcome {
    let Some(harness) = session.bring_up(Shape::USUAL) else { return not_started() };
    let mut calls: Vec<(&str, String)> = Vec::new();
    for method in session.methods() {
        let sets = arguments::few(method).into_iter().chain(arguments::extra(&method.name, &session.job.calls));
        calls.extend(sets.map(|set| (method.name.as_str(), set)));
    }
    if calls.is_empty() {
        session.finish(harness);
        return Outcome::Skipped("no method is left".to_owned());
    }
    let crowd = Crowd { calls, current: Default::default(), closing: AtomicBool::new(false) };
    crowd.run(&harness);
    let made = harness.probe.host.calls();
    session.finish(harness);
    Outcome::Done(format!("{made} calls on {THREADS} threads"))
}

/// What the threads share.
struct Crowd<'a> {
    calls: Vec<(&'a str, String)>,
    /// The call that each thread makes: its token, and its position in `calls`.
    current: [(AtomicU64, AtomicUsize); THREADS],
    /// No further call is to be made.
    closing: AtomicBool,
}

impl Crowd<'_> {
    fn run(&self, harness: &Harness<'_>) {
        let (far, reached) = channel();
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let far = far.clone();
                scope.spawn(move || self.call(harness, thread, &far));
            }
            // Comes from the first thread, and when all have ended.
            drop(far);
            let _ = reached.recv();
            self.closing.store(true, Ordering::SeqCst);
            harness.probe.quiesce();
        });
    }

    fn call(&self, harness: &Harness<'_>, thread: usize, far: &Sender<()>) {
        for number in 0..CALLS_OF_THREAD {
            if self.closing.load(Ordering::SeqCst) {
                return;
            }
            // Strides without a common divisor bring different methods together.
            let position = (number * (2 * thread + 1) + thread * 7) % self.calls.len();
            let Some((method, set)) = self.calls.get(position) else { return };
            let token = harness.probe.host.open(method, set);
            if let Some((current, at)) = self.current.get(thread) {
                at.store(position, Ordering::SeqCst);
                current.store(token, Ordering::SeqCst);
            }
            harness.probe.call_as(token, method, set);
            if number % CANCEL_EVERY == thread {
                self.cancel_neighbour(harness, thread);
            }
            if thread == 0 && number == CALLS_OF_THREAD * 3 / 4 {
                // Whoever waited for it has gone only when the check is over.
                let _ = far.send(());
            }
        }
    }

    fn cancel_neighbour(&self, harness: &Harness<'_>, thread: usize) {
        let Some((current, at)) = self.current.get((thread + 1) % THREADS) else { return };
        let (token, position) = (current.load(Ordering::SeqCst), at.load(Ordering::SeqCst));
        if let Some((method, set)) = self.calls.get(position).filter(|_| token != 0) {
            harness.probe.cancel(token, method, set);
        }
    }
}
