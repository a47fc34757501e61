//! `/healthz` and `/readyz`, the only paths without credentials. Proxies and orchestrators ask them by GET or HEAD.

use std::sync::Arc;

use http::{Method, StatusCode};

/// Whether the host is fully usable.
pub type Readiness = Arc<dyn Fn() -> bool + Send + Sync>;

/// The status for a path and a verb; `None` for other paths.
pub fn health(method: &Method, path: &str, is_ready: impl Fn() -> bool) -> Option<StatusCode> {
    let status = match path {
        "/healthz" => StatusCode::OK,
        "/readyz" if is_ready() => StatusCode::OK,
        "/readyz" => StatusCode::SERVICE_UNAVAILABLE,
        _ => return None,
    };
    Some(if matches!(*method, Method::GET | Method::HEAD) { status } else { StatusCode::METHOD_NOT_ALLOWED })
}
