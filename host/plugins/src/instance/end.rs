//! Ending an instance, in order and within a time limit.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use outrigger_abi::STATUS_OK;
use outrigger_values::RpcError;
use outrigger_values::RpcErrorCode;

use super::life::Stage;
use super::{Instance, Lease};
use crate::health::returned;

impl Instance {
    /// Begins to end the instance: no further call is routed to it. In the background, the host asks it to finish its calls,
    /// waits for them, and frees it. After `patience` the host answers its open calls, and abandons the instance if it
    /// still holds threads.
    ///
    /// Retiring an instance again with less patience shortens the wait.
    pub fn retire(self: &Arc<Self>, patience: Duration) {
        self.life().end_by(Instant::now() + patience);
        // Taken before the stage changes: `quiesce` holds the instance as a call does.
        let lease = self.lease();
        if !self.life().advance(Stage::Draining) {
            return;
        }
        self.end_if_stuck();
        let instance = self.clone();
        let spawned = self.spawn("end", move || instance.wind_down(lease));
        if let Err(error) = spawned {
            tracing::error!(%error, "the instance is abandoned");
            self.abandon();
        }
    }

    fn wind_down(&self, lease: Option<Lease>) {
        if let Some(lease) = lease {
            // On its own thread: `quiesce` might never return, and the end must not depend on it.
            let asked = self.spawn("quiesce", move || lease.quiesce());
            if let Err(error) = asked {
                tracing::warn!(%error, "the plugin's quiesce was not called");
            }
        }
        self.events.close();
        self.life().wait_unleased();
        self.life().advance(Stage::Stopping);
        let stopped =
            || crate::calls::Answer::Failed(RpcError::new(RpcErrorCode::CLIENT_NOT_CONNECTED, "Shutting down"));
        let ended = self.context.calls.answer_all(self.id, stopped);
        self.health.errors.fetch_add(ended, Ordering::Relaxed);
        if self.life().wait_left() { self.end() } else { self.abandon() }
    }

    /// Ends a draining instance at once if its process has only overdue calls: their clients have been answered, and the
    /// calls hold threads of the host until the process ends.
    pub(super) fn end_if_stuck(&self) {
        if self.runners.is_some() && self.context.calls.are_all_stuck(self.id) {
            self.life().end_by(Instant::now());
        }
    }

    fn quiesce(&self) {
        if let Some(_inside) = self.enter() {
            let status = self.plugin.quiesce();
            if status != STATUS_OK {
                self.health.fault(returned("quiesce", status));
            }
        }
    }

    fn abandon(&self) {
        tracing::error!(plugin = self.manifest().id, "the plugin's instance is abandoned");
        self.context.end(Stage::Abandoned);
        self.sockets.lock().take();
        // The end of its process releases the host's threads that wait for it.
        if let Some(runners) = &self.runners {
            runners.abandon();
        }
    }

    /// Whether a retired instance has ended or was abandoned, and no thread of the host is inside it.
    pub fn is_gone(&self) -> bool {
        self.life().has_ended() && !self.life().is_inside()
    }

    /// Waits until a retired instance has ended or was abandoned. False at the deadline.
    pub fn wait_ended(&self, deadline: Instant) -> bool {
        self.life().wait_ended(deadline)
    }

    /// Stops and frees the plugin's instance: once, after a failed start or by `wind_down`. No thread is inside or enters again.
    pub(super) fn end(&self) {
        let has_served = self.life().is_draining();
        self.life().advance(Stage::Stopping);
        let status = self.plugin.stop();
        if has_served && status != STATUS_OK {
            self.health.fault(returned("stop", status));
        }
        // Before it is freed: threads that it leaves running must no longer act for it.
        self.context.end(Stage::Stopped);
        self.sockets.lock().take();
        self.plugin.destroy();
        self.life().advance(Stage::Freed);
    }
}
