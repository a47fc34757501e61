//! A plugin that observes calls.

use std::sync::{Mutex, PoisonError};

use outrigger_sdk::options::NoOptions;
use outrigger_sdk::service::events::Event;
use outrigger_sdk::service::log::Level;
use outrigger_sdk::{Host, Plugin, RpcError, methods, plugin};
use serde_json::{Value, json};

pub struct Observer {
    host: Host,
    heard: Mutex<Vec<Value>>,
}

#[plugin(id = "observer", summary = "Observes calls", optional = ["log/1"], wrapper = "observe")]
impl Plugin for Observer {
    fn new(host: Host, _: NoOptions) -> Result<Self, String> {
        host.log(Level::Debug, "ready to observe");
        Ok(Self { host, heard: Mutex::default() })
    }

    fn event(&self, event: Event) {
        if let Event::CallEnded { method, user, wallet, code, microseconds } = event {
            self.host.log(Level::Debug, format!("{method} took {microseconds} us"));
            let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
            heard.push(json!([method, user, wallet, code]));
        }
    }
}

#[methods(category = "Test")]
impl Observer {
    /// Lists the calls that have ended.
    #[method]
    fn listheard(&self) -> Result<Vec<Value>, RpcError> {
        Ok(self.heard.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }
}

outrigger_sdk::export_plugin!(Observer);
