//! Forwards requests to the node's REST interface, and counts them as calls.

use std::sync::Arc;

use http::StatusCode;
use outrigger_rpc::{REST_ENTRY, Rest, RestReply};

use super::StartupGate;
use crate::metrics::{CallMetrics, Outcome};

/// Forwards requests once the host has started.
pub fn passed_rest(gate: Arc<StartupGate>, metrics: CallMetrics) -> Rest {
    Arc::new(move |path| {
        let (router, meter) = (gate.router().cloned(), metrics.begin(REST_ENTRY, true));
        Box::pin(async move {
            let reply = match router.as_ref().and_then(|router| router.passthrough.as_ref()) {
                Some(node) => node.rest(&path).await,
                None => RestReply::text(StatusCode::SERVICE_UNAVAILABLE, "The host is starting"),
            };
            let is_answer = reply.status.is_success() || reply.status.is_client_error();
            meter.ended(if is_answer { Outcome::Ok } else { Outcome::Error });
            reply
        })
    })
}
