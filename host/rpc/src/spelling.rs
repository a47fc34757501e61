//! The one header whose name bitcoind does not write in title case: `WWW-Authenticate`. Some clients match it by hand.
//!
//! hyper spells a response's header as the response's extensions say, of a type that its reader of requests alone can make:
//! so it is given a request with that header to read, once, and the extensions of that are kept.

use std::convert::Infallible;

use http::{Extensions, Response};
use http_body_util::Empty;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::io::AsyncWriteExt;

/// A request with the header as bitcoind writes it, after which its client closes.
const SPECIMEN: &[u8] = b"GET / HTTP/1.1\r\nConnection: close\r\nWWW-Authenticate: x\r\n\r\n";

/// Room for the specimen and for what answers it.
const ROOM: usize = 1024;

/// The extensions of a response that challenges a client for its credentials. Where they could not be had, they are empty, and
/// the name is written in title case, which is the same name.
pub(super) async fn of_challenge() -> Extensions {
    let (mut client, server) = tokio::io::duplex(ROOM);
    let kept = Mutex::new(Extensions::new());
    let keep = service_fn(|request: http::Request<hyper::body::Incoming>| {
        *kept.lock() = request.into_parts().0.extensions;
        async { Ok::<_, Infallible>(Response::new(Empty::<bytes::Bytes>::new())) }
    });
    let mut reader = http1::Builder::new();
    let reader = reader.preserve_header_case(true).serve_connection(TokioIo::new(server), keep);
    if client.write_all(SPECIMEN).await.is_err() || reader.await.is_err() {
        tracing::debug!("the spelling of a header could not be had");
    }
    kept.into_inner()
}
