//! WebSockets: JSON-RPC 2.0 by jsonrpsee's server, after the edge's checks.

use serde_json::{Value, json};

use super::*;

/// The client's side: frames are masked with zeros, which leaves them unchanged.
struct Socket(TcpStream);

impl Socket {
    async fn open(running: &Running, path: &str, headers: &str) -> Result<Self, String> {
        let mut stream = running.connect().await;
        let handshake = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
        send(&mut stream, &format!("GET {path} HTTP/1.1\r\nHost: x\r\n{handshake}{headers}\r\n")).await;
        let (head, _) = receive(&mut stream).await;
        if head.starts_with("HTTP/1.1 101") { Ok(Self(stream)) } else { Err(head) }
    }

    async fn of_user(running: &Running) -> Self {
        Self::open(running, "/wallet/w", &authorization()).await.expect("upgrade")
    }

    async fn send(&mut self, message: &Value) {
        let text = message.to_string();
        let mut frame = vec![0x81, 0x80 | 126];
        frame.extend_from_slice(&u16::try_from(text.len()).unwrap().to_be_bytes());
        frame.extend_from_slice(&[0; 4]);
        frame.extend_from_slice(text.as_bytes());
        self.0.write_all(&frame).await.expect("write");
    }

    /// The next message; `None` once the server has closed.
    async fn receive(&mut self) -> Option<Value> {
        loop {
            let head = timeout(PATIENCE, self.0.read_u16()).await.expect("in time").ok()?;
            let length = match head & 0x7f {
                126 => u64::from(self.0.read_u16().await.ok()?),
                127 => self.0.read_u64().await.ok()?,
                length => u64::from(length),
            };
            let mut body = vec![0; usize::try_from(length).unwrap()];
            self.0.read_exact(&mut body).await.ok()?;
            match head >> 8 & 0xf {
                1 => return Some(serde_json::from_slice(&body).expect("json")),
                8 => return None,
                _ => {}
            }
        }
    }

    async fn ask(&mut self, message: Value) -> Value {
        self.send(&message).await;
        self.receive().await.expect("an answer")
    }
}

fn authorization() -> String {
    format!("Authorization: Basic {}\r\n", STANDARD.encode("u:p"))
}

fn call(id: u64, method: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method})
}

#[tokio::test]
async fn websocket_calls_batches_and_faults_are_answered_as_json_rpc_2() {
    let running = Running::start(Limits::default()).await;
    let mut socket = Socket::of_user(&running).await;
    assert_eq!(socket.ask(call(1, "getblockcount")).await, json!({"jsonrpc": "2.0", "id": 1, "result": 101}));
    assert_eq!(socket.ask(call(2, "wallet")).await["result"], "w");
    assert_eq!(socket.ask(call(3, "nosuch")).await["error"]["code"], -32601);
    let notification = json!({"jsonrpc": "2.0", "method": "getblockcount"});
    let answer = socket.ask(json!([call(4, "getblockcount"), &notification, call(5, "nosuch"), 6])).await;
    let codes: Vec<_> = answer.as_array().unwrap().iter().map(|one| one["error"]["code"].clone()).collect();
    assert_eq!(codes, [Value::Null, json!(-32600), json!(-32601), json!(-32600)]);
    assert_eq!(socket.ask(notification).await["error"]["code"], -32600);
    assert_eq!(running.node.calls.load(Ordering::SeqCst), 5, "notifications are not executed");
    for id in [json!(1.5), json!(-1), json!([1]), json!({})] {
        let answer = socket.ask(json!({"jsonrpc": "2.0", "id": id, "method": "getblockcount"})).await;
        assert_eq!(answer["error"]["code"], -32600, "{id}");
    }
    for params in [json!(5), json!("text")] {
        let request = json!({"jsonrpc": "2.0", "id": "a", "method": "length", "params": params});
        assert_eq!(socket.ask(request).await["error"]["message"], "Params must be an array or object");
    }
    let deep = serde_json::from_str(&format!("{}{}", "[".repeat(120), "]".repeat(120))).unwrap();
    let request = |params: Value| json!({"jsonrpc": "2.0", "id": null, "method": "length", "params": params});
    assert_eq!(socket.ask(request(deep)).await["result"], 240);
    assert_eq!(socket.ask(json!({"id": 1, "method": "getblockcount"})).await["error"]["code"], -32600, "no version");
}

#[tokio::test]
async fn websocket_is_refused_as_http_is_and_to_pages_that_are_not_listed() {
    let listed = "https://wallet.example";
    let limits = Limits { websocket_origins: vec![listed.to_owned()], ..Limits::default() };
    let running = Running::start(limits).await;
    let right = authorization();
    let refusals = [
        ("/", String::new(), "HTTP/1.1 401"),
        ("/", "Authorization: Basic QTpC\r\n".to_owned(), "HTTP/1.1 401"),
        ("/nosuch", right.clone(), "HTTP/1.1 404"),
        ("/", format!("{right}Origin: https://evil.example\r\n"), "HTTP/1.1 403"),
        ("/", format!("{right}Origin: {listed}\r\nOrigin: null\r\n"), "HTTP/1.1 403"),
    ];
    for (path, headers, status) in refusals {
        let refused = Socket::open(&running, path, &headers).await.err().expect("no upgrade");
        assert!(refused.starts_with(status), "{path} {headers}: {refused}");
    }
    assert!(Socket::open(&running, "/", &format!("{right}Origin: {listed}\r\n")).await.is_ok());
}

#[tokio::test]
async fn websocket_of_a_restricted_user_refuses_other_methods() {
    let running = Running::start(Limits::default()).await;
    let headers = format!("Authorization: Basic {}\r\n", STANDARD.encode("restricted:p"));
    let mut socket = Socket::open(&running, "/", &headers).await.expect("upgrade");
    let answer = socket.ask(json!([call(1, "getblockcount"), call(2, "wallet")])).await;
    assert_eq!((&answer[0]["result"], &answer[1]["error"]["code"]), (&json!(101), &json!(-32603)));
    assert_eq!(socket.ask(call(3, "wallet")).await["error"]["message"], "The user may not call this method");
    assert_eq!(running.node.calls.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn websocket_has_a_streamed_result_whole_or_an_error_that_names_the_setting() {
    let running = Running::start(Limits::default()).await;
    let answer = Socket::of_user(&running).await.ask(call(1, "stream")).await;
    assert_eq!(answer["result"].to_string().len() as u64, STREAM);
    let answer = Socket::of_user(&running).await.ask(call(1, "broken stream")).await;
    assert!(answer["error"]["message"].as_str().unwrap().starts_with("The answer broke off"), "{answer}");
    let running = Running::start(Limits { max_unread_bytes: STREAM - 1, ..Limits::default() }).await;
    let answer = Socket::of_user(&running).await.ask(call(1, "stream")).await;
    assert!(answer["error"]["message"].as_str().unwrap().contains("rpc.max_unread_bytes"), "{answer}");
}

#[tokio::test]
async fn websocket_that_closes_cancels_its_calls() {
    let running = Running::start(Limits::default()).await;
    let mut socket = Socket::of_user(&running).await;
    socket.send(&call(1, "wait")).await;
    running.until_waiting(1).await;
    drop(socket);
    until(|| running.node.dropped.load(Ordering::SeqCst) == 1).await;
}

#[tokio::test]
async fn websocket_is_not_read_while_many_of_its_calls_are_under_way() {
    const CALLS: usize = 2_000;
    let running = Running::start(Limits::default()).await;
    let mut socket = Socket::of_user(&running).await;
    for id in 0..CALLS as u64 {
        socket.send(&call(id, "wait")).await;
    }
    running.until_waiting(64).await;
    // Another connection is served, and every call is answered in the end.
    let mut other = Socket::of_user(&running).await;
    assert_eq!(other.ask(call(1, "getblockcount")).await["result"], 101);
    assert_eq!(running.node.waiting.load(Ordering::SeqCst), 64);
    for _ in 0..CALLS {
        running.node.go_on.notify_one();
        assert_eq!(socket.receive().await.expect("an answer")["result"], true);
    }
}

#[tokio::test]
async fn websocket_calls_are_answered_before_the_server_has_stopped() {
    let mut running = Running::start(Limits::default()).await;
    let mut socket = Socket::of_user(&running).await;
    socket.send(&call(1, "wait")).await;
    running.until_waiting(1).await;
    running.begin_stop();
    running.node.go_on.notify_one();
    assert_eq!(socket.receive().await.expect("an answer")["result"], true);
    assert_eq!(socket.receive().await, None);
    assert_eq!(running.stop().await, 0);
}

#[tokio::test]
async fn websocket_whose_client_reads_nothing_is_closed_at_the_bound() {
    let limits = Limits { max_unread_bytes: 21_000_000, ..Limits::default() };
    let running = Running::start(limits).await;
    let mut socket = Socket::of_user(&running).await;
    for id in 0..20 {
        socket.send(&call(id, "large")).await;
    }
    until(|| running.edge.figures.open.load(Ordering::SeqCst) == 0).await;
}

#[tokio::test]
async fn a_subscription_tells_blocks_and_events_until_it_is_ended() {
    let running = Running::start(Limits::default()).await;
    running.node.most_events.store(1, Ordering::SeqCst);
    let mut socket = Socket::of_user(&running).await;
    let id = socket.ask(call(1, "subscribe_events")).await["result"].clone();
    let mut next = async || {
        let message = socket.receive().await.expect("a notification");
        assert_eq!((&message["method"], &message["params"]["subscription"]), (&json!("events"), &id));
        message["params"]["result"].clone()
    };
    assert_eq!(next().await, json!({"kind": "missed", "wallets": ["w"]}));
    assert_eq!(next().await["number"], 0);
    running.tip.send_replace(Some(("aa".into(), 7)));
    assert_eq!(next().await, json!({"kind": "block", "blockhash": "aa", "blockheight": 7}));
    let end = json!({"jsonrpc": "2.0", "id": 2, "method": "unsubscribe_events", "params": [id]});
    assert_eq!(socket.ask(end).await["result"], true);
    // The first `waitevents` was answered, and the waiting one is dropped.
    until(|| running.node.dropped.load(Ordering::SeqCst) == 2).await;
    running.tip.send_replace(Some(("bb".into(), 8)));
    assert_eq!(socket.ask(call(3, "getblockcount")).await["result"], 101, "no block is reported any more");
    for id in 4..4 + u64::from(subscriptions::MAX_SUBSCRIPTIONS) {
        assert_ne!(socket.ask(call(id, "subscribe_events")).await["result"], Value::Null);
    }
    assert_eq!(socket.ask(call(99, "subscribe_events")).await["error"]["code"], -32006);
    // The connection's end drops all waiting calls.
    drop(socket);
    until(|| running.node.dropped.load(Ordering::SeqCst) == 2 + subscriptions::MAX_SUBSCRIPTIONS as usize).await;
}

#[tokio::test]
async fn a_subscription_of_a_client_that_does_not_read_asks_for_no_more_events() {
    let running = Running::start(Limits::default()).await;
    running.node.most_events.store(usize::MAX, Ordering::SeqCst);
    let mut silent = Socket::of_user(&running).await;
    silent.send(&call(1, "subscribe_events")).await;
    let asked = || running.node.events.load(Ordering::SeqCst);
    until(|| asked() >= 3).await;
    // Others are served, and time passes.
    let mut socket = Socket::of_user(&running).await;
    for id in 0..2000 {
        assert_eq!(socket.ask(call(id, "getblockcount")).await["result"], 101);
    }
    // Its queue has room for 16, and the sockets for some megabytes.
    assert!(asked() < 60, "{}", asked());
    drop(silent);
}

#[tokio::test]
async fn a_subscription_is_refused_to_a_user_without_the_method_and_with_wrong_arguments() {
    let running = Running::start(Limits::default()).await;
    let headers = format!("Authorization: Basic {}\r\n", STANDARD.encode("restricted:p"));
    let mut socket = Socket::open(&running, "/", &headers).await.expect("upgrade");
    for method in ["subscribe_events", "unsubscribe_events"] {
        assert_eq!(socket.ask(call(1, method)).await["error"]["message"], "The user may not call this method");
    }
    let mut socket = Socket::of_user(&running).await;
    for params in [json!({"other": 1}), json!([0, [], 1])] {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": "subscribe_events", "params": params});
        assert_eq!(socket.ask(request).await["error"]["code"], -32602, "{params}");
    }
}
