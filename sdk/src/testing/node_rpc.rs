//! A bitcoind that answers what the test says.

use std::collections::BTreeMap;
use std::sync::Mutex;

use outrigger_service::node_rpc::NodeReply;
use outrigger_service::wire::Blob;
use outrigger_service::{ErrorKind, NodeRpc, Result, Scope, ServiceError};
use outrigger_values::{RpcError, RpcErrorCode};
use serde_json::Value;

use super::lock;

/// The methods of a bitcoind with canned answers. All methods are granted; one without an answer is unknown to the node (-32601).
#[derive(Default)]
pub struct StubNodeRpc(Mutex<State>);

#[derive(Default)]
struct State {
    answers: BTreeMap<String, Result<NodeReply>>,
    asked: Vec<(String, String)>,
}

impl StubNodeRpc {
    /// What a method answers from now on.
    pub fn answer(&self, method: &str, answer: std::result::Result<Value, RpcError>) {
        let reply = match answer {
            Ok(result) => NodeReply::Result { json: Blob(result.to_string().into_bytes()) },
            Err(RpcError { code, message }) => NodeReply::Error { code: code.0, message },
        };
        lock(&self.0).answers.insert(method.to_owned(), Ok(reply));
    }

    /// How calls of a method fail from now on.
    pub fn fail(&self, method: &str, kind: ErrorKind, detail: &str) {
        lock(&self.0).answers.insert(method.to_owned(), Err(ServiceError::new(kind, detail)));
    }

    /// The calls so far: method, and parameters as JSON text.
    pub fn asked(&self) -> Vec<(String, String)> {
        lock(&self.0).asked.clone()
    }
}

impl NodeRpc for StubNodeRpc {
    fn call(&self, _: Scope, method: String, params: Blob) -> Result<NodeReply> {
        let mut state = lock(&self.0);
        let unknown = || {
            let code = RpcErrorCode::METHOD_NOT_FOUND.0;
            Ok(NodeReply::Error { code, message: "Method not found".to_owned() })
        };
        let answer = state.answers.get(&method).cloned().unwrap_or_else(unknown);
        state.asked.push((method, String::from_utf8_lossy(&params).into_owned()));
        answer
    }
}
