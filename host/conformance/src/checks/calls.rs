//! Calls methods with all kinds of arguments: sequentially, concurrently, without cancelling, and cancelling every call.

use std::collections::BTreeMap;
use std::sync::mpsc::channel;

use outrigger_plugins::latency::{INLINE_LIMIT, Latency};
use outrigger_sdk::manifest::MethodSpec;
use parking_lot::Mutex;

use super::Outcome;
use crate::arguments;
use crate::protocol::{Finding, Step};
use crate::session::{Call, Harness, Session};

/// A method that no manifest lists: a host never calls it, and a plugin must survive it.
const UNKNOWN_METHOD: &str = "nosuchmethod";

const THREADS: usize = 4;

const CALLS_OF_THREAD: usize = 400;

/// After one in this many of its calls, a thread cancels the next thread's current call.
const CANCEL_EVERY: usize = 5;

/// How often an inline method is called with the same arguments. The host moves a method to the pool after as many slow calls.
const QUICK_CALLS: usize = 7;

/// Calls every method with every kind of arguments, sequentially. Cancels a call if the plugin keeps its token instead of
/// answering at once.
pub fn parameters(session: &Session<'_>) -> Outcome {
    let harness = session.bring_up()?;
    for (method, set) in session.calls(arguments::all) {
        cancel_kept(&harness, harness.call(method, &set));
    }
    // The host never runs an isolated plugin's methods inline.
    if session.job.isolated.is_none() {
        session.calls(arguments::few).filter(|(method, _)| method.inline).for_each(|(method, set)| {
            judge_inline(session, &harness, method, &set);
        });
    }
    let calls = harness.calls();
    if let Some(method) = session.methods().next() {
        harness.call(&MethodSpec { name: UNKNOWN_METHOD.to_owned(), ..method.clone() }, "[]");
    }
    harness.finish();
    Ok(format!("{calls} calls of {} methods", session.methods().count()))
}

fn cancel_kept(harness: &Harness<'_>, call: Call<'_>) {
    if harness.is_kept(call) {
        harness.cancel(call);
    }
}

/// Reports an inline method that is too slow for the host's network threads.
fn judge_inline(session: &Session<'_>, harness: &Harness<'_>, method: &MethodSpec, set: &str) {
    let latency = Latency::default();
    for _ in 0..QUICK_CALLS {
        let call = harness.begin(method, set);
        latency.add(harness.run(call));
        cancel_kept(harness, call);
    }
    if latency.takes_pool() {
        let what = format!("it is marked inline, and takes more than {} ms", INLINE_LIMIT.as_millis());
        session.found(Finding::at(&Step::of_call("call", &method.name, set), &what));
    }
}

/// Makes the calls of [`parameters`] without cancelling: the plugin must answer kept calls at `quiesce`.
pub fn tokens(session: &Session<'_>) -> Outcome {
    let harness = session.bring_up()?;
    let mut kept: BTreeMap<&str, usize> = BTreeMap::new();
    for (method, set) in session.calls(arguments::all) {
        let call = harness.call(method, &set);
        if harness.is_kept(call) {
            *kept.entry(&method.name).or_default() += 1;
        }
    }
    harness.finish();
    if kept.is_empty() {
        return Ok("no call was kept".to_owned());
    }
    let list: Vec<String> = kept.iter().map(|(method, count)| format!("{count} of {method}")).collect();
    Ok(format!("kept until quiesce: {}", list.join(", ")))
}

/// Cancels each call before, during or after its run; the plugin gets the notice of some calls twice.
pub fn cancellation(session: &Session<'_>) -> Outcome {
    let harness = session.bring_up()?;
    for (method, set) in session.calls(arguments::few) {
        let before = harness.begin(method, &set);
        harness.notify_cancelled(before);
        harness.run(before);
        harness.cancel(before);
        cancel_meanwhile(&harness, harness.begin(method, &set));
        let after = harness.call(method, &set);
        harness.cancel(after);
        harness.notify_cancelled(after);
    }
    let calls = harness.calls();
    harness.finish();
    Ok(format!("{calls} calls, cancelled before, while and after they ran"))
}

/// Cancels a call while another thread runs it, and sends the notice again after the call has returned.
fn cancel_meanwhile(harness: &Harness<'_>, call: Call<'_>) {
    let (begins, begun) = channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let _ = begins.send(());
            harness.run(call);
        });
        let _ = begun.recv();
        harness.cancel(call);
    });
    harness.notify_cancelled(call);
}

/// Several threads call all methods at the same time and cancel each other's calls, also while `quiesce` runs.
pub fn concurrency(session: &Session<'_>) -> Outcome {
    let harness = session.bring_up()?;
    let calls: Vec<(&MethodSpec, String)> = session.calls(arguments::few).collect();
    let current: [Mutex<Option<Call<'_>>>; THREADS] = Default::default();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (harness, calls, current) = (&harness, &calls, &current);
            scope.spawn(move || call_concurrently(harness, calls, current, thread));
        }
    });
    let made = harness.calls();
    harness.finish();
    Ok(format!("{made} calls on {THREADS} threads"))
}

/// Makes the calls of one thread. `current` holds the running call of each thread.
fn call_concurrently<'c>(
    harness: &Harness<'_>,
    calls: &'c [(&MethodSpec, String)],
    current: &[Mutex<Option<Call<'c>>>; THREADS],
    thread: usize,
) {
    let of = |thread: usize| current.get(thread % THREADS);
    for number in 0..CALLS_OF_THREAD {
        if thread == 0 && number == CALLS_OF_THREAD * 3 / 4 {
            harness.retire();
        }
        // A different stride for each thread makes different methods run at the same time.
        let position = (number * (2 * thread + 1) + thread * 7) % calls.len().max(1);
        let (Some((method, set)), Some(_lease)) = (calls.get(position), harness.lease()) else { return };
        let call = harness.begin(method, set);
        if let Some(own) = of(thread) {
            *own.lock() = Some(call);
        }
        harness.run(call);
        let neighbour = of(thread + 1).and_then(|current| *current.lock());
        if let Some(neighbour) = neighbour.filter(|_| number % CANCEL_EVERY == thread) {
            harness.cancel(neighbour);
        }
    }
}
