//! The history plugin's own code over the wallet engine, in one process and without a network.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use outrigger_history::HistoryPlugin;
use outrigger_values::params::Params;
use outrigger_sdk::plugin::ReplySink;
use outrigger_service::Scope;
use outrigger_sdk::testing::TestHost;
use outrigger_values::RpcError;
use outrigger_sdk::{Call, Plugin, Reply};
use parking_lot::Mutex;
use serde_json::{Map, Value};

use super::super::Harness;
use outrigger_services::{Keys, OwnScopes, Scopes, WalletService};

/// A started plugin.
pub struct Asked {
    plugin: HistoryPlugin,
    scopes: Arc<Scopes>,
    next: AtomicU64,
}

#[derive(Default)]
struct Answer(Mutex<Option<Result<Vec<u8>, RpcError>>>);

impl ReplySink for Answer {
    fn reply(&self, _: u64, outcome: Result<Vec<u8>, RpcError>) -> bool {
        self.0.lock().replace(outcome).is_none()
    }

    fn wanted(&self, _: u64) -> bool {
        self.0.lock().is_none()
    }
}

impl Asked {
    pub fn of(harness: &Harness) -> Self {
        let scopes = Arc::new(Scopes::default());
        let wallet = WalletService {
            manager: harness.manager.clone(),
            scopes: OwnScopes::of(scopes.clone(), 0),
            keys: Keys::None,
        };
        let mut host = TestHost::new().handle();
        host.chain = harness.chain.clone();
        host.mempool = harness.mempool.clone();
        host.wallet = Arc::new(wallet);
        Self { plugin: HistoryPlugin::new(host, Map::new()).unwrap(), scopes, next: AtomicU64::new(1) }
    }

    /// The answer to a call, as the bytes that a client gets, or the error's message.
    pub fn call(&self, method: &str, arguments: Value) -> Result<String, String> {
        let token = self.next.fetch_add(1, Ordering::Relaxed);
        let _scope = self.scopes.open(token, 0, None, None, None);
        let answer = Arc::new(Answer::default());
        let Value::Array(arguments) = arguments else { panic!("the arguments must be an array") };
        let call = Call { method, params: Params(arguments), scope: Scope(token), deadline: None };
        self.plugin.call(call, Reply::new(token, answer.clone()));
        let outcome = answer.0.lock().take().expect("it answers at once");
        outcome.map(|json| String::from_utf8(json).unwrap()).map_err(|error| error.message)
    }
}
