//! Hostile clients: request smuggling, password guessing, unread answers, and silent connections.

use rustix::net::sockopt;

use super::super::attempts::{CREDIT, MAX_WAITING};
use super::*;

/// A request with these framing headers.
fn framed(headers: &str, body: &str) -> String {
    let plain = post("/", headers, "");
    plain.replace("Content-Length: 0\r\n", "") + body
}

fn chunked(body: &str) -> String {
    format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len())
}

#[tokio::test]
async fn a_request_with_both_lengths_is_the_last_and_what_it_smuggles_is_never_executed() {
    let server = Running::start(Limits::default()).await;
    let smuggled = post("/", "", COUNT);
    let orders = [
        "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n",
        "transfer-encoding:chunked\r\nX: y\r\nCONTENT-LENGTH:   0\r\n",
    ];
    let empty = "0\r\n\r\n".to_owned();
    let mut calls = 0;
    for headers in orders {
        for (body, own_calls) in [(empty.clone(), 0), (chunked(COUNT), 1)] {
            let request = framed(headers, &(body + &smuggled));
            // Also if the head comes in two writes, and after another request.
            let head = request.find("\r\n\r\n").expect("head");
            for cut in [request.len(), head - 4, head + 2] {
                let mut stream = server.connect().await;
                stream.set_nodelay(true).expect("nodelay");
                send(&mut stream, &request[..cut]).await;
                send(&mut stream, &request[cut..]).await;
                let text = receive_to_end(&mut stream).await;
                calls += own_calls;
                let answers = (text.matches("HTTP/1.1").count(), text.matches(COUNTED.trim_end()).count());
                assert_eq!(answers, (1, own_calls), "{request}: {text}");
                assert_eq!(server.node.calls.load(Ordering::SeqCst), calls, "{request}: {text}");
            }
        }
    }
    let mut stream = server.connect().await;
    send(&mut stream, &(post("/", "", COUNT) + &framed(orders[0], &(empty + &smuggled)))).await;
    let text = receive_to_end(&mut stream).await;
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
    assert_eq!((text.matches("HTTP/1.1").count(), server.node.calls.load(Ordering::SeqCst)), (2, calls + 1), "{text}");
}

#[tokio::test]
async fn codings_other_than_chunked_alone_and_long_paths_are_bad_requests() {
    let server = Running::start(Limits::default()).await;
    let codings = [
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked, chunked\r\n",
        "Transfer-Encoding: identity\r\n",
        "Transfer-Encoding: chunked;x=y\r\n",
    ];
    let coded = codings.map(|headers| framed(headers, &chunked(COUNT)));
    let long = ["/", "/wallet/"].map(|start| post(&format!("{start}{}", "a".repeat(10_000)), "", COUNT));
    for request in coded.iter().chain(&long) {
        let mut stream = server.connect().await;
        send(&mut stream, request).await;
        let text = receive_to_end(&mut stream).await;
        assert!(text.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{request}: {text}");
    }
    assert_eq!(server.node.calls.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_request_in_chunks_is_the_last_of_its_connection() {
    let server = Running::start(Limits::default()).await;
    let mut stream = server.connect().await;
    let coded = framed("Transfer-Encoding: Chunked \r\n", &chunked(COUNT));
    send(&mut stream, &(post("/", "", COUNT) + &coded + &post("/", "", COUNT))).await;
    let text = receive_to_end(&mut stream).await;
    assert_eq!(text.matches(COUNTED.trim_end()).count(), 2, "{text}");
    assert_eq!(text.to_lowercase().matches("connection: close\r\n").count(), 1, "{text}");
    assert_eq!(server.node.calls.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn wrong_credentials_hold_up_their_address_and_nobody_who_goes_on() {
    let hour = Duration::from_secs(3600);
    let limits = Limits { wrong_credentials_delay: hour, unauthenticated_timeout: hour, ..Limits::default() };
    let server = Running::start(limits).await;
    let mut known = server.connect().await;
    send(&mut known, &post("/", "", COUNT)).await;
    assert_eq!(receive(&mut known).await.1, COUNTED);

    let wrong = post("/", "", COUNT).replace(&STANDARD.encode("u:p"), &STANDARD.encode("u:q"));
    let mut guessing = Vec::new();
    for guesses in 1..=u64::from(CREDIT) + 1 {
        let mut stream = server.connect().await;
        send(&mut stream, &wrong).await;
        until(|| server.edge.figures.wrong_credentials.load(Ordering::SeqCst) == guesses).await;
        guessing.push(stream);
    }
    // From now on no credentials of that address are checked, so right and wrong ones look the same.
    let mut waiting = Vec::new();
    for count in 1..=MAX_WAITING {
        let mut stream = server.connect().await;
        let request = if count % 2 == 0 { wrong.clone() } else { post("/", "", COUNT) };
        send(&mut stream, &request).await;
        until(|| server.edge.attempts.waiting() == count).await;
        waiting.push(stream);
    }
    for request in [&wrong, &post("/", "", COUNT)] {
        let mut stream = server.connect().await;
        send(&mut stream, request).await;
        let text = receive_to_end(&mut stream).await;
        assert!(text.starts_with("HTTP/1.1 429 Too Many Requests\r\n"), "{text}");
    }
    assert_eq!(server.edge.figures.refused_attempts.load(Ordering::SeqCst), 2);
    assert_eq!(server.node.calls.load(Ordering::SeqCst), 1);
    // A connection with accepted credentials goes on; new ones wait.
    send(&mut known, &post("/", "", COUNT)).await;
    assert_eq!(receive(&mut known).await.1, COUNTED);
    let left = waiting.pop().expect("one that waits");
    // A reset, as from a dead process.
    sockopt::set_socket_linger(&left, Some(Duration::ZERO)).expect("linger");
    drop(left);
    until(|| server.edge.attempts.waiting() == MAX_WAITING - 1).await;
    send(&mut known, &wrong).await;
    until(|| server.edge.attempts.waiting() == MAX_WAITING).await;
}

#[tokio::test]
async fn answers_that_nobody_reads_are_bounded_and_the_oldest_is_dropped() {
    let server = Running::start(Limits { max_unread_bytes: 25_000_000, ..Limits::default() }).await;
    let held = || server.edge.figures.unread_bytes.load(Ordering::SeqCst);
    let large = post("/", "", r#"{"method":"large","id":1}"#);
    let mut first = server.connect().await;
    send(&mut first, &large).await;
    until(|| held() > 0).await;
    let before = held();
    assert!(before > 10_000_000, "the system took too much of it: {before}");
    let mut second = server.connect().await;
    send(&mut second, &large).await;
    until(|| server.edge.figures.cut_unread.load(Ordering::SeqCst) == 1).await;
    let mut got = Vec::new();
    // It ends with a reset, after the bytes in the system's buffer.
    let ended = timeout(PATIENCE, first.read_to_end(&mut got)).await.expect("in time");
    assert!(ended.is_err() && got.len() < 20_000_000, "{ended:?} after {}", got.len());
    assert_eq!(receive(&mut second).await.1.len(), 20_000_000 + r#"{"result":,"error":null,"id":1}"#.len() + 1);
    until(|| held() == 0).await;
    assert_eq!(server.edge.figures.cut_unread.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn connections_without_credentials_shut_nobody_out() {
    let hour = Duration::from_secs(3600);
    let limits = Limits { max_connections: 4, unauthenticated_timeout: hour, ..Limits::default() };
    let server = Running::start(limits).await;
    let mut silent = Vec::new();
    let mut known = Vec::new();
    for _ in 0..4 {
        for _ in 0..20 {
            silent.push(server.connect().await);
        }
        let mut stream = server.connect().await;
        send(&mut stream, &post("/", "", COUNT)).await;
        assert_eq!(receive(&mut stream).await.1, COUNTED);
        known.push(stream);
    }
    for stream in &mut silent {
        assert_eq!(receive_to_end(stream).await, "", "it has made room");
    }
    assert_eq!(server.edge.figures.open.load(Ordering::SeqCst), 4);
    let mut fifth = server.connect().await;
    send(&mut fifth, &post("/", "", COUNT)).await;
    let text = receive_to_end(&mut fifth).await;
    assert!(text.starts_with("HTTP/1.1 503 Service Unavailable\r\n"), "{text}");
    for stream in &mut known {
        send(stream, &post("/", "", COUNT)).await;
        assert_eq!(receive(stream).await.1, COUNTED);
    }
}

#[tokio::test]
async fn a_connection_without_credentials_does_not_last_and_one_with_them_does() {
    let limits = Limits { unauthenticated_timeout: Duration::from_millis(150), ..Limits::default() };
    let server = Running::start(limits).await;
    let mut known = server.connect().await;
    send(&mut known, &post("/", "", COUNT)).await;
    assert_eq!(receive(&mut known).await.1, COUNTED);
    let mut silent = server.connect().await;
    let mut slow = server.connect().await;
    send(&mut slow, "POST / HTTP/1.1\r\n").await;
    let mut asking = server.connect().await;
    assert_eq!(receive_to_end(&mut silent).await, "");
    assert_eq!(receive_to_end(&mut slow).await, "");
    // An answer does not extend its life.
    let mut answer = [0; 1024];
    let ended = async {
        while asking.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.is_ok() {
            if asking.read(&mut answer).await.unwrap_or(0) == 0 {
                return;
            }
        }
    };
    timeout(PATIENCE, ended).await.expect("in time");
    send(&mut known, &post("/", "", COUNT)).await;
    assert_eq!(receive(&mut known).await.1, COUNTED);
}

#[tokio::test]
async fn a_machine_that_is_gone_is_noticed_within_20_seconds() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("bind");
    let _client = TcpStream::connect(listener.local_addr().expect("address")).await.expect("connect");
    let (stream, _) = listener.accept().await.expect("accept");
    connection::watch_peer(&stream).expect("options");
    assert!(sockopt::socket_keepalive(&stream).expect("keepalive"));
    let asked = sockopt::tcp_keepcnt(&stream).expect("count") * sockopt::tcp_keepintvl(&stream).expect("interval");
    let silent = sockopt::tcp_keepidle(&stream).expect("idle") + asked;
    let unacknowledged = Duration::from_millis(sockopt::tcp_user_timeout(&stream).expect("timeout").into());
    assert!(
        silent < Duration::from_secs(20) && unacknowledged < Duration::from_secs(20),
        "{silent:?} {unacknowledged:?}"
    );
    assert!(!unacknowledged.is_zero());
}
