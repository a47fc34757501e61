//! A third party's plugin that calls methods with its own rights (`rpc/1`), and reads the chain.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use outrigger_sdk::options::NoOptions;
use outrigger_sdk::service::Scope;
use outrigger_sdk::service::chain::BlockRef;
use outrigger_sdk::service::rpc::As;
use outrigger_sdk::wire::Blob;
use outrigger_sdk::{Call, Host, Plugin, RpcError, methods, params, plugin};
use serde_json::{Value, json};

pub struct NodePolicy {
    host: Host,
    /// The outcome of the last call of the node.
    last: Mutex<String>,
    watching: Mutex<Option<JoinHandle<()>>>,
}

#[plugin(
    id = "node-policy",
    version = "1.0.0",
    summary = "Calls methods with its own rights",
    services = ["rpc/1"],
    optional = ["chain/1"],
    calls = ["getblocktemplate"]
)]
impl Plugin for NodePolicy {
    fn new(host: Host, _: NoOptions) -> Result<Self, String> {
        Ok(Self { host, last: Mutex::default(), watching: Mutex::default() })
    }

    fn stop(&self) {
        let watching = self.watching.lock().unwrap_or_else(PoisonError::into_inner).take();
        let _ = watching.map(JoinHandle::join);
    }
}

#[methods(category = "Node")]
impl NodePolicy {
    /// Calls a method of the node.
    ///
    /// * `method` - The method.
    /// * `arguments` (default: []) - Its parameters.
    ///
    /// # Result
    /// The node's answer.
    #[method]
    fn asknode(&self, call: &Call<'_>, method: &str, arguments: Option<&Value>) -> Result<Value, RpcError> {
        self.ask(call.scope, method, arguments.unwrap_or(&json!([])))
    }

    /// The same on the thread that serves the connection, if the plugin is trusted. Then it fails.
    ///
    /// * `method` - The method.
    /// * `arguments` (default: []) - Its parameters.
    ///
    /// # Result
    /// The node's answer.
    #[method(inline, needs_tip = false)]
    fn asknodeinline(&self, call: &Call<'_>, method: &str, arguments: Option<&Value>) -> Result<Value, RpcError> {
        self.asknode(call, method, arguments)
    }

    /// Waits for the next block on a thread that the stop of the plugin joins.
    #[method]
    fn watchblocks(&self) -> Result<Value, RpcError> {
        let rpc = self.host.rpc.clone();
        let watch = move || {
            let _ = rpc.call(Scope::NONE, "waitfornewblock".to_owned(), Blob(b"[]".to_vec()), As::Plugin);
        };
        *self.watching.lock().unwrap_or_else(PoisonError::into_inner) = Some(std::thread::spawn(watch));
        Ok(Value::Null)
    }

    /// Tells what came of the last call of the node.
    ///
    /// # Result
    /// "text"    (string) "asked" while it waits, then "answered" or the kind of the error.
    #[method]
    fn lastanswer(&self) -> Result<String, RpcError> {
        Ok(self.last().clone())
    }

    /// Reads the chain.
    ///
    /// * `what` - What to read: "header", "transaction", "spent", "deployments" or "tips".
    /// * `id` (default: the best block) - The hash of the block, or the transaction's id.
    ///
    /// # Result
    /// A summary; null if it is unknown.
    #[method]
    fn readchain(call: &Call<'_>, what: &str, id: Option<&str>) -> Result<Value, RpcError> {
        let (chain, scope) = (&call.host.chain, call.scope);
        let block = || match id {
            Some(id) => params::hash_text(id, "id"),
            None => Ok(chain.tip(scope)?.hash),
        };
        Ok(match what {
            "transaction" => {
                let found = chain.transaction(scope, params::hash_text(id.unwrap_or_default(), "id")?)?;
                json!(found.map(|found| (found.block, found.index)))
            }
            "spent" => json!(chain.spent_outputs(scope, block()?)?.map(|spent| spent.len())),
            "deployments" => {
                let deployments = chain.deployments(scope, block()?)?.into_iter().flatten();
                json!(deployments.map(|deployment| deployment.name).collect::<Vec<_>>())
            }
            "tips" => {
                let tips = chain.tips(scope)?.into_iter();
                json!(tips.map(|tip| (tip.hash, tip.height, tip.branch_length)).collect::<Vec<_>>())
            }
            _ => json!(chain.block_info(scope, BlockRef::Hash { hash: block()? })?.map(|info| info.height)),
        })
    }

    fn ask(&self, scope: Scope, method: &str, params: &Value) -> Result<Value, RpcError> {
        *self.last() = "asked".to_owned();
        let answer = self.host.rpc.call(scope, method.to_owned(), Blob(params.to_string().into_bytes()), As::Plugin);
        *self.last() = answer.as_ref().map_or_else(|error| format!("{:?}", error.kind), |_| "answered".to_owned());
        serde_json::from_slice(&answer?.into_result()?).map_err(|error| RpcError::internal(error.to_string()))
    }

    fn last(&self) -> MutexGuard<'_, String> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

outrigger_sdk::export_plugin!(NodePolicy);
