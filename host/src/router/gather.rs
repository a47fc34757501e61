//! Inline calls of isolated plugins go to their process together.
//!
//! To hand a call over to another process and to hear of its answer costs several times what most calls do. So the calls that a
//! thread has read from its connections, one after the other, are handed over at once, when nothing else is left to be read. They
//! run one after the other, as inline calls of one thread always do. Where calls keep coming alone, each goes at once.

use std::sync::Arc;
use std::time::Instant;

use outrigger_isolate::MAX_TOGETHER;
use outrigger_plugins::instance::{Lease, Prepared};
use outrigger_plugins::latency::Latency;
use outrigger_plugins::pool::contained;
use outrigger_rpc::CallHere;
use outrigger_sdk::manifest::MethodSpec;
use outrigger_services::{Caller, Scopes};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::arguments::Arguments;

/// After so many calls in a row that went alone, the next ones do not wait for others.
const ALONE: u32 = 4;

/// One of so many of these waits all the same: times change.
const PROBES: u32 = 16;

/// A call that waits to be handed over.
pub struct Gathered {
    pub token: u64,
    pub lease: Lease,
    pub method: Arc<MethodSpec>,
    pub latency: Arc<Latency>,
    pub params: Arguments,
    pub caller: Caller,
    has_run: oneshot::Sender<()>,
}

#[derive(Default)]
struct State {
    waiting: Vec<Gathered>,
    /// How many in a row went alone.
    alone: u32,
}

thread_local! {
    /// The calls of this thread. A call may end on another thread than it began on, where it was moved; so it holds them.
    static OF_THREAD: Arc<Gather> = Arc::default();
}

/// The calls of one thread that wait.
#[derive(Default)]
pub struct Gather(Mutex<State>);

impl Gathered {
    /// A call, and whence is heard that its code has returned.
    pub fn new(
        token: u64,
        lease: Lease,
        method: Arc<MethodSpec>,
        latency: Arc<Latency>,
        params: Arguments,
        caller: Caller,
    ) -> (Self, oneshot::Receiver<()>) {
        let (has_run, ran) = oneshot::channel();
        (Self { token, lease, method, latency, params, caller, has_run }, ran)
    }
}

impl Gather {
    /// Those of this thread.
    pub fn of_thread() -> Arc<Self> {
        OF_THREAD.with(Arc::clone)
    }

    /// Runs a call, now or with others.
    pub fn run(self: &Arc<Self>, call: Gathered, scopes: &Arc<Scopes>) {
        let mut state = self.0.lock();
        state.waiting.push(call);
        if state.waiting.len() > 1 {
            return;
        }
        if state.go_alone() {
            let alone = state.take();
            drop(state);
            return run_all(alone, scopes);
        }
        drop(state);
        let (gather, scopes) = (self.clone(), scopes.clone());
        tokio::spawn(async move {
            // Behind all that is ready to be read.
            tokio::task::yield_now().await;
            let waiting = gather.0.lock().take();
            run_all(waiting, &scopes);
        });
    }
}

impl State {
    /// Whether a call that finds no other one waiting does not wait for others.
    fn go_alone(&self) -> bool {
        self.alone >= ALONE && !self.alone.is_multiple_of(PROBES)
    }

    /// Takes those that wait.
    fn take(&mut self) -> Vec<Gathered> {
        let waiting = std::mem::take(&mut self.waiting);
        self.alone = if waiting.len() > 1 { 0 } else { self.alone.wrapping_add(1) };
        waiting
    }
}

/// Runs calls, those of one instance together.
fn run_all(mut calls: Vec<Gathered>, scopes: &Arc<Scopes>) {
    calls.sort_by_key(|call| call.lease.id);
    for of_instance in calls.chunk_by(|one, other| one.lease.id == other.lease.id) {
        of_instance.chunks(MAX_TOGETHER).for_each(|calls| contained(|| run_together(calls, scopes)));
    }
    for call in calls {
        // Whoever waited for it may have gone.
        let _ = call.has_run.send(());
    }
}

fn run_together(calls: &[Gathered], scopes: &Arc<Scopes>) {
    let Some(Gathered { lease, .. }) = calls.first() else { return };
    let _here = CallHere::begin(Instant::now());
    let _scopes: Vec<_> = calls.iter().map(|call| scopes.open(call.token, lease.id, call.caller.clone())).collect();
    let prepared = |call| {
        let Gathered { token, method, params, .. }: &Gathered = call;
        Prepared { token: *token, method, params: params.as_bytes() }
    };
    let prepared: Vec<_> = calls.iter().map(prepared).collect();
    lease.call_together(&prepared, |at, took| {
        if let Some(call) = calls.get(at) {
            call.latency.add(took);
        }
    });
}
