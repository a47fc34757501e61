//! Taking an instance down, in order and within a time.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use outrigger_abi::STATUS_OK;
use outrigger_values::RpcError;
use outrigger_values::RpcErrorCode;

use super::Instance;

/// How often the end looks whether calls and threads have ended.
const STEP: Duration = Duration::from_millis(2);

impl Instance {
    /// Begins the end: no further call is routed to it, and in the background it is asked to answer what it keeps, waited
    /// for, and freed. What waits for an answer after `patience` is answered for it; an instance that does not let its
    /// threads go by then is left behind.
    ///
    /// An instance that is retired again with less patience hurries.
    pub fn retire(self: &Arc<Self>, patience: Duration) {
        let deadline = Instant::now() + patience;
        let sooner = |by: &Instant| *by <= deadline;
        let mut ends_by = self.ends_by.lock();
        if !ends_by.as_ref().is_some_and(sooner) {
            *ends_by = Some(deadline);
        }
        drop(ends_by);
        if self.closed.swap(true, Ordering::SeqCst) {
            return;
        }
        let instance = self.clone();
        let spawned = self.spawn("end", move || instance.wind_down());
        if let Err(error) = spawned {
            tracing::error!(%error, "the instance is left behind");
            self.leave_behind();
        }
    }

    fn wind_down(self: &Arc<Self>) {
        // It may not return, so its end must not depend on it.
        let asked = self.spawn("quiesce", {
            let instance = self.clone();
            move || {
                if let Some(_inside) = instance.enter() {
                    // SAFETY: the instance is started and not destroyed while we are inside.
                    let status =
                        instance.run(instance.code.table.quiesce, |quiesce| unsafe { quiesce(instance.handle) });
                    if status != STATUS_OK {
                        instance.health.fault(format!("quiesce ended with status {status}"));
                    }
                }
            }
        });
        self.events.close();
        let asked = asked.ok();
        let idle = || {
            let deliverer = self.deliverer.lock();
            self.leases.load(Ordering::SeqCst) == 0
                && deliverer.as_ref().is_none_or(JoinHandle::is_finished)
                && asked.as_ref().is_none_or(JoinHandle::is_finished)
        };
        self.wait_for_end(idle);
        self.stopping.store(true, Ordering::SeqCst);
        let stopped = || Err(RpcError::new(RpcErrorCode::CLIENT_NOT_CONNECTED, "Shutting down"));
        self.context.calls.answer_all(self.id, stopped);
        if self.wait_for_end(|| self.inside.load(Ordering::SeqCst) == 0) {
            self.end();
            self.ended.store(true, Ordering::SeqCst);
        } else {
            self.leave_behind();
        }
    }

    /// Waits until something is so, or until the end must have come. Whether it was.
    fn wait_for_end(&self, done: impl Fn() -> bool) -> bool {
        let ends_by = || *self.ends_by.lock();
        wait_until(|| ends_by().is_some_and(|by| Instant::now() >= by), done)
    }

    fn leave_behind(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        self.context.end();
        tracing::error!(plugin = self.manifest().id, "the plugin does not end its calls; its instance is left behind");
        self.ended.store(true, Ordering::SeqCst);
    }

    /// Whether a retired instance has come to its end, or was left behind.
    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }

    /// Whether a retired instance has come to its end, and no thread of the host is inside it any more: nothing that it left
    /// running is to be looked after.
    pub fn is_gone(&self) -> bool {
        self.has_ended() && self.inside.load(Ordering::SeqCst) == 0
    }

    /// Waits until a retired instance has come to its end. False when it has not by the deadline.
    pub fn wait_ended(&self, deadline: Instant) -> bool {
        wait_until(|| Instant::now() >= deadline, || self.has_ended())
    }

    /// Stops and frees what `create` made. Nobody is inside, and nothing enters again.
    pub(super) fn end(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        // SAFETY: called once per instance, by whoever failed to bring it up or by `wind_down`, with nobody inside.
        self.run(self.code.table.stop, |stop| unsafe { stop(self.handle) });
        // What it left running must not act for it any more.
        self.context.end();
        if let Some(destroy) = self.code.table.destroy {
            // SAFETY: as above, and after `stop`.
            unsafe { destroy(self.handle) };
        }
    }
}

/// Looks again and again until something is so, or until it is too late. Whether it was so.
fn wait_until(too_late: impl Fn() -> bool, done: impl Fn() -> bool) -> bool {
    while !done() {
        if too_late() {
            return false;
        }
        std::thread::sleep(STEP);
    }
    true
}
