//! The gate in front of the router: until the host has started, it answers every call with error -28, like bitcoind.

use std::sync::{Arc, OnceLock};

use outrigger_values::RpcError;
use outrigger_values::RpcErrorCode;
use parking_lot::Mutex;

use super::Router;
use outrigger_rpc::{Answer, Call, Dispatch, Failure};

#[derive(Default)]
pub struct StartupGate {
    router: OnceLock<Arc<Router>>,
    /// The current step of the start, which is the error's message.
    stage: Mutex<&'static str>,
}

impl StartupGate {
    pub fn stage(&self, stage: &'static str) {
        *self.stage.lock() = stage;
    }

    /// Lets calls pass to the router from now on.
    pub fn open(&self, router: Arc<Router>) {
        // The gate is opened only once.
        let _ = self.router.set(router);
    }

    /// The router, once the gate is open.
    pub fn router(&self) -> Option<&Arc<Router>> {
        self.router.get()
    }

    fn starting(&self) -> Failure {
        let stage = *self.stage.lock();
        Failure::Rpc(RpcError::new(RpcErrorCode::IN_WARMUP, stage))
    }
}

impl Dispatch for StartupGate {
    async fn dispatch(&self, call: Call) -> Answer {
        match self.router.get() {
            Some(router) => router.dispatch(call).await,
            None => Err(self.starting()),
        }
    }

    fn takes_together(&self, method: &str) -> bool {
        self.router.get().is_some_and(|router| router.takes_together(method))
    }

    fn refuses_other_versions(&self) -> bool {
        self.router.get().is_some_and(|router| router.refuses_other_versions())
    }

    async fn dispatch_together(&self, calls: Vec<Call>) -> Vec<Answer> {
        match self.router.get() {
            Some(router) => router.dispatch_together(calls).await,
            None => vec![Err(self.starting()); calls.len()],
        }
    }
}
