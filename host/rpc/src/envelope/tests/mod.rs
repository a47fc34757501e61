//! The rules of both dialects: request bytes in, HTTP status and reply bytes out.

mod any_bytes;
mod batches;
mod layers;
mod singles;

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::BodyExt;
use jsonrpsee::core::middleware::RpcServiceBuilder;
use outrigger_values::{RpcError, RpcErrorCode};
use parking_lot::Mutex;

use super::*;
use crate::dispatch::{Answer, Call, Dispatch};
use crate::gateway::Gateway;
use crate::result::ResultText;

#[derive(Default)]
struct Recorder(Mutex<Vec<Call>>);

/// A result too large to be copied into the reply.
static LARGE: [u8; 100_000] = [b'7'; 100_000];

impl Dispatch for Recorder {
    async fn dispatch(&self, call: Call) -> Result<ResultText, Failure> {
        let (method, params) = (call.method.clone(), call.params.clone());
        self.0.lock().push(call);
        match method.as_str() {
            "getblockcount" => Ok(Bytes::from_static(b"101").into()),
            "echo" => Ok(Bytes::copy_from_slice(params.as_bytes()).into()),
            "large" => Ok(Bytes::from_static(&LARGE).into()),
            "bad" => Err(RpcError::invalid_parameter("a \"bad\"\nvalue é").into()),
            "invalid" => Err(RpcError::new(RpcErrorCode::INVALID_REQUEST, "not so").into()),
            "busy" => Err(Failure::Overloaded),
            _ => Err(RpcError::new(RpcErrorCode::METHOD_NOT_FOUND, "Method not found").into()),
        }
    }
}

fn anyone() -> Origin {
    Origin::of_user("alice")
}

async fn ask_as(origin: &Origin, limits: &Limits, body: &[u8]) -> (u16, String, Vec<Call>) {
    let recorder = Arc::new(Recorder::default());
    let service = RpcServiceBuilder::new().service(Gateway::new(Arc::clone(&recorder)));
    let body = Bytes::copy_from_slice(body);
    let origin = Origin { wallet: Some(Arc::from("w")), ..origin.clone() };
    let reply = answer(&service, origin, body, limits).await;
    let status = reply.status().as_u16();
    let text = reply.into_body().collect().await.expect("infallible").to_bytes();
    let text = String::from_utf8(text.to_vec()).expect("utf8");
    let calls = std::mem::take(&mut *recorder.0.lock());
    (status, text, calls)
}

async fn ask(body: &[u8]) -> (u16, String) {
    let (status, text, _) = ask_as(&anyone(), &Limits::default(), body).await;
    (status, text)
}

/// Checks rows of request, status, and reply without its final newline; "" means an empty body.
async fn check(rows: &[(&str, u16, &str)]) {
    for (request, status, reply) in rows {
        let expected = if reply.is_empty() { String::new() } else { format!("{reply}\n") };
        assert_eq!(ask(request.as_bytes()).await, (*status, expected), "{request}");
    }
}

const PARSE_ERROR: &str = r#"{"result":null,"error":{"code":-32700,"message":"Parse error"},"id":null}"#;
const TOP_LEVEL: &str = r#"{"result":null,"error":{"code":-32700,"message":"Top-level object parse error"},"id":null}"#;
