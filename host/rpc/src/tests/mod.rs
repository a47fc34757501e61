//! Tests over real sockets: bytes that bitcoind's clients send and expect.

mod bounds;
mod framing;
mod hostile;
mod websocket;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use outrigger_values::RpcError;
use outrigger_values::RpcErrorCode;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Notify, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::*;

const PATIENCE: Duration = Duration::from_secs(10);

/// Answers a few methods at once; `wait` waits until it is signalled or dropped.
#[derive(Default)]
struct Node {
    go_on: Notify,
    waiting: AtomicUsize,
    calls: AtomicUsize,
    dropped: Arc<AtomicUsize>,
    /// How many calls of `waitevents` were answered.
    events: AtomicUsize,
    /// How many calls of `waitevents` to answer; the next one waits.
    most_events: AtomicUsize,
}

struct CountDrop(Arc<AtomicUsize>);

impl Drop for CountDrop {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

const STREAM: u64 = 3_000_000;
/// The length of a text in an event.
const EVENT: usize = 1_000_000;

fn sevens(count: u64) -> impl hyper::body::Body<Data = Bytes, Error = std::io::Error> + Send {
    const FRAME: u64 = 100_000;
    let frames = futures_util::stream::unfold(count, |left| async move {
        tokio::task::yield_now().await;
        let length = left.min(FRAME);
        let frame = hyper::body::Frame::data(Bytes::from(vec![b'7'; usize::try_from(length).unwrap()]));
        (length > 0).then_some((Ok(frame), left - length))
    });
    http_body_util::StreamBody::new(frames)
}

impl Dispatch for Node {
    async fn dispatch(&self, call: Call) -> Result<ResultText, Failure> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        match call.method.as_str() {
            "getblockcount" => Ok(Bytes::from_static(b"101").into()),
            "wallet" => Ok(Bytes::from(format!("{:?}", call.origin.wallet.clone().unwrap_or_default())).into()),
            "length" => Ok(Bytes::from(call.params.as_bytes().len().to_string()).into()),
            "large" => Ok(Bytes::from(vec![b'7'; 20_000_000]).into()),
            "stream" => Ok(ResultText::Stream(ResultStream::new(STREAM, Box::pin(sevens(STREAM))))),
            "broken stream" => Ok(ResultText::Stream(ResultStream::new(STREAM, Box::pin(sevens(STREAM / 2))))),
            "wait" => {
                self.waiting.fetch_add(1, Ordering::SeqCst);
                let guard = CountDrop(Arc::clone(&self.dropped));
                self.go_on.notified().await;
                std::mem::forget(guard);
                Ok(Bytes::from_static(b"true").into())
            }
            "waitevents" if call.params.as_bytes().starts_with(b"[null") => {
                Ok(Bytes::from_static(br#"{"events":[],"next":0,"missed":[]}"#).into())
            }
            "waitevents" => {
                let _guard = CountDrop(Arc::clone(&self.dropped));
                let number = self.events.load(Ordering::SeqCst);
                if number >= self.most_events.load(Ordering::SeqCst) {
                    std::future::pending::<()>().await;
                }
                self.events.store(number + 1, Ordering::SeqCst);
                let event = format!(r#"{{"kind":"seen","number":{number},"text":"{}"}}"#, "x".repeat(EVENT));
                Ok(Bytes::from(format!(r#"{{"events":[{event}],"next":{number},"missed":["w"]}}"#)).into())
            }
            _ => Err(RpcError::new(RpcErrorCode::METHOD_NOT_FOUND, "Method not found").into()),
        }
    }
}

struct Running {
    address: SocketAddr,
    node: Arc<Node>,
    edge: Arc<edge::Edge<Gateway<Node>>>,
    tip: watch::Sender<Option<(String, u32)>>,
    stop: Option<oneshot::Sender<()>>,
    served: JoinHandle<usize>,
}

impl Running {
    async fn start(limits: Limits) -> Self {
        let node = Arc::new(Node::default());
        let user = |name| RpcUser::with_password(name, "p").expect("user");
        let restricted = user("restricted").allowing(["getblockcount".to_owned()]);
        let auth = Arc::new(Authenticator::default().with_user(user("u")).with_user(restricted));
        let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
        let gateway = Gateway::new(Arc::clone(&node));
        let listeners = listen(&[any_port.into()], false, 0o600).await.expect("bind");
        let (tip, tips) = watch::channel(None);
        let options = ServerOptions { tips: Some(tips), ..ServerOptions::default() };
        let server = Server::new(listeners, gateway, auth, limits, options);
        let ListenAddress::Tcp(address) = server.addresses[0] else { panic!("no TCP") };
        let edge = server.edge.clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let shutdown = async move {
            let _dropped_or_sent = stopped.await;
        };
        let served = tokio::spawn(server.serve(shutdown));
        Self { address, node, edge, tip, stop: Some(stop), served }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.expect("connect")
    }

    fn begin_stop(&mut self) {
        if let Some(stop) = self.stop.take() {
            stop.send(()).expect("serving");
        }
    }

    async fn stop(mut self) -> usize {
        self.begin_stop();
        timeout(PATIENCE, self.served).await.expect("in time").expect("no panic")
    }

    async fn until_waiting(&self, calls: usize) {
        until(|| self.node.waiting.load(Ordering::SeqCst) == calls).await;
    }
}

async fn until(condition: impl Fn() -> bool) {
    timeout(PATIENCE, async {
        while !condition() {
            sleep(Duration::from_millis(2)).await;
        }
    })
    .await
    .expect("in time");
}

fn post(path: &str, headers: &str, body: &str) -> String {
    let credentials = STANDARD.encode("u:p");
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Basic {credentials}\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
    )
}

async fn send(stream: &mut TcpStream, text: &str) {
    stream.write_all(text.as_bytes()).await.expect("write");
}

/// Reads one response: its head, and the body of the declared length.
async fn receive(stream: &mut TcpStream) -> (String, String) {
    timeout(PATIENCE, async {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.expect("head"));
        }
        let head = String::from_utf8(head).expect("utf8");
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("Content-Length: "))
            .map_or(0, |length| length.parse().expect("length"));
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await.expect("body");
        (head, String::from_utf8(body).expect("utf8"))
    })
    .await
    .expect("in time")
}

async fn receive_to_end(stream: &mut TcpStream) -> String {
    let mut text = String::new();
    let reading = stream.read_to_string(&mut text);
    timeout(PATIENCE, reading).await.expect("in time").expect("read");
    text
}

const COUNT: &str = r#"{"method":"getblockcount","id":1}"#;
const COUNTED: &str = "{\"result\":101,\"error\":null,\"id\":1}\n";
