//! The metrics port, which asks for no credentials: `/metrics`, `/healthz` for liveness, and `/readyz` for readiness.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use outrigger_base::rate::Rate;
use outrigger_rpc::health;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::{CallMetrics, Standing, registry};

/// The most concurrent connections. Further ones wait to be accepted.
const MAX_CONNECTIONS: usize = 16;

/// The time limit of a connection.
const PATIENCE: Duration = Duration::from_secs(30);

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub struct Pages {
    registry: Registry,
    standing: Standing,
}

impl Pages {
    pub fn new(calls: &CallMetrics, standing: Standing) -> Self {
        Self { registry: registry(calls, standing.clone()), standing }
    }
}

/// Serves the pages until the future is dropped.
pub async fn serve(listener: TcpListener, pages: Pages) {
    let (slots, pages) = (Arc::new(Semaphore::new(MAX_CONNECTIONS)), Arc::new(pages));
    let errors = Rate::once_a_minute();
    loop {
        // The semaphore is never closed, so this does not fail.
        let Ok(slot) = slots.clone().acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let pages = pages.clone();
                tokio::spawn(async move {
                    answer(stream, &pages).await;
                    drop(slot);
                });
            }
            Err(error) => {
                let more = |times| {
                    tracing::warn!(times, "metrics connections could not be accepted since the last such message");
                };
                if errors.allows(more) {
                    tracing::warn!(%error, "cannot accept a metrics connection");
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn answer(stream: TcpStream, pages: &Pages) {
    let service = service_fn(|request: Request<hyper::body::Incoming>| async move {
        Ok::<_, Infallible>(respond(request.method(), request.uri().path(), pages))
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).keep_alive(false);
    let served = timeout(PATIENCE, builder.serve_connection(TokioIo::new(stream), service)).await;
    if let Ok(Err(error)) = served {
        tracing::debug!(%error, "a metrics connection ended early");
    }
}

fn respond(method: &Method, path: &str, pages: &Pages) -> Response<Full<Bytes>> {
    let empty = |status| {
        let mut response = Response::new(Full::default());
        *response.status_mut() = status;
        response
    };
    if let Some(status) = health(method, path, || pages.standing.is_ready()) {
        return empty(status);
    }
    match (path, method) {
        ("/metrics", &Method::GET | &Method::HEAD) => {}
        ("/metrics", _) => return empty(StatusCode::METHOD_NOT_ALLOWED),
        _ => return empty(StatusCode::NOT_FOUND),
    }
    let mut text = String::new();
    if encode(&mut text, &pages.registry).is_err() {
        return empty(StatusCode::INTERNAL_SERVER_ERROR);
    }
    let mut response = Response::new(Full::from(text));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(OPEN_METRICS));
    response
}
