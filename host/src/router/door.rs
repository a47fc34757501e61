//! The door between the network edge and the router: clients are heard from the start, and answered once all is up.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use outrigger_sdk::{Code, RpcError};
use parking_lot::Mutex;

use super::Router;
use crate::rpc::{Call, Dispatch, Failure};

/// Answers error -28 while the host starts, as bitcoind does, and leads to the router from then on.
#[derive(Default)]
pub struct Door {
    router: OnceLock<Arc<Router>>,
    /// What the host is doing instead of answering.
    stage: Mutex<&'static str>,
}

impl Door {
    /// The host begins with a part of its start.
    pub fn stage(&self, stage: &'static str) {
        *self.stage.lock() = stage;
    }

    /// From now on calls are answered.
    pub fn open(&self, router: Arc<Router>) {
        // A door that is open stays so.
        let _ = self.router.set(router);
    }

    fn starting(&self) -> Failure {
        let stage = *self.stage.lock();
        Failure::Rpc(RpcError::new(Code::IN_WARMUP, stage))
    }
}

impl Dispatch for Door {
    async fn dispatch(&self, call: Call) -> Result<Bytes, Failure> {
        match self.router.get() {
            Some(router) => router.dispatch(call).await,
            None => Err(self.starting()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::Params;

    #[tokio::test]
    async fn a_closed_door_says_what_the_host_is_doing() {
        let door = Door::default();
        door.stage("Loading wallets…");
        let (user, params) = (Arc::from("u"), Params::none());
        let call = Call {
            method: "uptime".into(),
            params,
            wallet: None,
            user,
            only_wallet: None,
            allowed: None,
            client: None,
            folders: None,
        };
        let answer = door.dispatch(call).await;
        assert_eq!(answer, Err(Failure::Rpc(RpcError::new(Code::IN_WARMUP, "Loading wallets…"))));
    }
}
