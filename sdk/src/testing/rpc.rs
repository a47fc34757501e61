//! Methods with the test's answers.

use std::collections::BTreeMap;
use std::sync::Mutex;

use outrigger_service::rpc::{As, CallerInfo, RpcReply};
use outrigger_service::wire::Blob;
use outrigger_service::{ErrorKind, Result, Rpc, Scope, ServiceError};
use outrigger_values::{RpcError, RpcErrorCode};
use serde_json::Value;

use super::lock;

/// Methods with canned answers. All methods are granted; one without an answer is unknown (-32601). `next` answers as the method
/// `next`, and the caller is the user `alice`.
#[derive(Default)]
pub struct StubRpc(Mutex<State>);

#[derive(Default)]
struct State {
    answers: BTreeMap<String, Result<RpcReply>>,
    asked: Vec<(String, String)>,
}

impl StubRpc {
    /// Sets a method's answer.
    pub fn answer(&self, method: &str, answer: std::result::Result<Value, RpcError>) {
        let reply = match answer {
            Ok(result) => RpcReply::Result { json: Blob(result.to_string().into_bytes()) },
            Err(RpcError { code, message }) => RpcReply::Error { code: code.0, message },
        };
        lock(&self.0).answers.insert(method.to_owned(), Ok(reply));
    }

    /// Makes calls of a method fail from now on.
    pub fn fail(&self, method: &str, kind: ErrorKind, detail: &str) {
        lock(&self.0).answers.insert(method.to_owned(), Err(ServiceError::new(kind, detail)));
    }

    /// The calls so far: method, and parameters as JSON text.
    pub fn asked(&self) -> Vec<(String, String)> {
        lock(&self.0).asked.clone()
    }
}

impl Rpc for StubRpc {
    fn caller(&self, _: Scope) -> Result<CallerInfo> {
        Ok(CallerInfo { user: "alice".to_owned(), wallet: None, through: Vec::new() })
    }

    fn next(&self, scope: Scope, params: Option<Blob>) -> Result<RpcReply> {
        self.call(scope, "next".to_owned(), params.unwrap_or_default(), As::Caller)
    }

    fn call(&self, _: Scope, method: String, params: Blob, _: As) -> Result<RpcReply> {
        let mut state = lock(&self.0);
        let unknown = || {
            let code = RpcErrorCode::METHOD_NOT_FOUND.0;
            Ok(RpcReply::Error { code, message: "Method not found".to_owned() })
        };
        let answer = state.answers.get(&method).cloned().unwrap_or_else(unknown);
        state.asked.push((method, String::from_utf8_lossy(&params).into_owned()));
        answer
    }
}
