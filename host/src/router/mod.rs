//! From a method's name to the code that answers it.
//!
//! The table is read afresh for every request, so that plugins can come and go without a pause. Arguments are put into
//! the order of the manifest here, counted, and where the manifest asks for it their types are checked, so that a plugin
//! sees positions only.

pub mod arguments;
pub mod builtins;

use std::sync::Arc;

use arc_swap::ArcSwap;
use bytes::Bytes;
use outrigger_sdk::{Code, RpcError};

use crate::plugin::calls::{CallGuard, Calls};
use crate::plugin::cancels::Cancels;
use crate::plugin::pool::Pool;
use crate::plugin::registry::{Route, RouteTable};
use crate::rpc::{Call, Dispatch, Failure};
use crate::services::Scopes;
use builtins::Builtins;

/// Routes calls to the host's own methods and to plugins.
pub struct Router {
    table: ArcSwap<RouteTable>,
    builtins: Builtins,
    calls: Arc<Calls>,
    scopes: Arc<Scopes>,
    pool: Arc<Pool>,
    cancels: Arc<Cancels>,
}

impl Router {
    /// A router over these parts.
    pub fn new(
        table: RouteTable,
        builtins: Builtins,
        calls: Arc<Calls>,
        scopes: Arc<Scopes>,
        pool: Arc<Pool>,
        cancels: Cancels,
    ) -> Self {
        Self { table: ArcSwap::from_pointee(table), builtins, calls, scopes, pool, cancels: Arc::new(cancels) }
    }

    /// Calls a plugin's method and waits for its answer. Dropping the future gives the call up.
    async fn call_plugin(&self, route: Route, call: Call) -> Result<Bytes, Failure> {
        let params = arguments::positional(&route.method, &call.params).map_err(Failure::Rpc)?;
        let instance = route.instance.clone();
        let (token, answer) = self.calls.open(instance.id);
        let guard = {
            let (cancels, instance) = (self.cancels.clone(), instance.clone());
            CallGuard::new(self.calls.clone(), token, move |token| cancels.leave(instance, token))
        };
        let scopes = self.scopes.clone();
        let method = route.method;
        let job = move || {
            let _scope = scopes.open(token, call.wallet);
            instance.call(token, &method.name, params.as_bytes());
        };
        if self.pool.submit(job).is_err() {
            guard.not_begun();
            return Err(Failure::Overloaded);
        }
        let answer = answer.await;
        guard.answered();
        match answer {
            Ok(answer) => answer.map_err(Failure::Rpc),
            Err(_) => Err(Failure::Rpc(RpcError::internal("The call was lost"))),
        }
    }
}

impl Dispatch for Router {
    async fn dispatch(&self, call: Call) -> Result<Bytes, Failure> {
        tracing::debug!(user = &*call.user, method = call.method, "call");
        let route = self.table.load().get(&call.method).cloned();
        if let Some(route) = route {
            return self.call_plugin(route, call).await;
        }
        let table = self.table.load_full();
        match self.builtins.call(&call, &table) {
            Some(answer) => answer.map_err(Failure::Rpc),
            None => Err(Failure::Rpc(RpcError::new(Code::METHOD_NOT_FOUND, "Method not found"))),
        }
    }
}

/// A wallet's name as it stands in a URI's path.
pub fn percent_encode(name: &str) -> String {
    use std::fmt::Write;
    let mut encoded = String::new();
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}
