use std::time::Instant;

use super::*;

#[tokio::test]
async fn bodies_have_a_limit() {
    let limits = Limits { max_body_bytes: 100_000, ..Limits::default() };
    let server = Running::start(limits).await;
    let fill = |length: usize| {
        let frame = r#"{"method":"length","id":1,"params":[]}"#.len();
        format!(r#"{{"method":"length","id":1,"params":[{}]}}"#, " ".repeat(length - frame))
    };
    let mut stream = server.connect().await;
    send(&mut stream, &post("/", "", &fill(100_000))).await;
    let (head, _) = receive(&mut stream).await;
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");

    let announced = post("/", "", "").replace("Content-Length: 0", "Content-Length: 100001");
    send(&mut stream, &announced).await;
    let text = receive_to_end(&mut stream).await;
    assert!(text.starts_with("HTTP/1.1 413 Payload Too Large\r\n"), "{text}");

    let mut stream = server.connect().await;
    let chunked = post("/", "Transfer-Encoding: chunked\r\n", "").replace("Content-Length: 0\r\n", "");
    send(&mut stream, &chunked).await;
    let body = fill(99_999);
    send(&mut stream, &format!("{:x}\r\n{body}\r\n", body.len())).await;
    send(&mut stream, "2\r\n  \r\n").await;
    let text = receive_to_end(&mut stream).await;
    assert!(text.starts_with("HTTP/1.1 413 Payload Too Large\r\n"), "{text}");

    let mut stream = server.connect().await;
    send(&mut stream, &chunked).await;
    send(&mut stream, &format!("5\r\n{}\r\n", &COUNT[..5])).await;
    send(&mut stream, &format!("{:x}\r\n{}\r\n0\r\n\r\n", COUNT.len() - 5, &COUNT[5..])).await;
    assert_eq!(receive(&mut stream).await.1, COUNTED);
}

#[tokio::test]
async fn heads_have_a_limit() {
    let limits = Limits { max_header_bytes: 2_000, ..Limits::default() };
    let server = Running::start(limits).await;
    let mut stream = server.connect().await;
    send(&mut stream, &post("/", "", COUNT)).await;
    assert_eq!(receive(&mut stream).await.1, COUNTED);

    send(&mut stream, &post("/", &format!("X: {}\r\n", "x".repeat(2_000)), COUNT)).await;
    let (head, _) = receive(&mut stream).await;
    assert!(head.starts_with("HTTP/1.1 431 "), "{head}");
}

#[tokio::test]
async fn a_head_may_have_a_hundred_lines() {
    let server = Running::start(Limits::default()).await;
    let mut stream = server.connect().await;
    let lines = |count: usize| (0..count).map(|line| format!("X-{line}: y\r\n")).collect::<String>();
    send(&mut stream, &post("/", &lines(100 - 3), COUNT)).await;
    assert_eq!(receive(&mut stream).await.1, COUNTED);
    send(&mut stream, &post("/", &lines(101 - 3), COUNT)).await;
    let (head, _) = receive(&mut stream).await;
    assert!(head.starts_with("HTTP/1.1 431 "), "{head}");
}

#[tokio::test]
async fn slow_and_idle_clients_are_let_go() {
    let (short, long) = (Duration::from_millis(80), Duration::from_secs(3600));
    let post = post("/", "", COUNT);

    let limits = Limits { header_read_timeout: short, idle_timeout: long, ..Limits::default() };
    let server = Running::start(limits).await;
    let mut idle = server.connect().await;
    let mut slow = server.connect().await;
    send(&mut slow, &post[..30]).await;
    assert_eq!(receive_to_end(&mut slow).await, "");
    sleep(3 * short).await;
    send(&mut idle, &post).await;
    assert_eq!(receive(&mut idle).await.1, COUNTED);

    let limits = Limits { idle_timeout: short, ..Limits::default() };
    let server = Running::start(limits).await;
    let mut idle = server.connect().await;
    assert_eq!(receive_to_end(&mut idle).await, "");
    let mut waiting = server.connect().await;
    send(&mut waiting, &post.replace("getblockcount", "wait").replace(": 33", ": 24")).await;
    server.until_waiting(1).await;
    sleep(3 * short).await;
    server.node.go_on.notify_one();
    assert_eq!(receive(&mut waiting).await.1, "{\"result\":true,\"error\":null,\"id\":1}\n");

    let limits = Limits { body_stall_timeout: short, ..Limits::default() };
    let server = Running::start(limits).await;
    let mut stalled = server.connect().await;
    send(&mut stalled, &post[..post.len() - 3]).await;
    let text = receive_to_end(&mut stalled).await;
    assert!(text.starts_with("HTTP/1.1 408 Request Timeout\r\n"), "{text}");
}

#[tokio::test]
async fn a_client_that_sends_no_more_gets_its_answers() {
    let server = Running::start(Limits::default()).await;
    let mut stream = server.connect().await;
    send(&mut stream, &post("/", "", COUNT).repeat(2)).await;
    stream.shutdown().await.expect("half closed");
    let text = receive_to_end(&mut stream).await;
    assert_eq!(text.matches(COUNTED.trim_end()).count(), 2, "{text}");

    let mut waiting = server.connect().await;
    send(&mut waiting, &post("/", "", r#"{"method":"wait","id":1}"#)).await;
    waiting.shutdown().await.expect("half closed");
    server.until_waiting(1).await;
    // Meanwhile the server answers others. Anything for the half-closed connection comes before the last of these answers.
    for _ in 0..20 {
        let mut other = server.connect().await;
        send(&mut other, &post("/", "", COUNT)).await;
        assert_eq!(receive(&mut other).await.1, COUNTED);
    }
    assert_eq!(server.node.dropped.load(Ordering::SeqCst), 0);
    server.node.go_on.notify_one();
    let text = receive_to_end(&mut waiting).await;
    assert!(text.ends_with("{\"result\":true,\"error\":null,\"id\":1}\n"), "{text}");
}

#[tokio::test]
async fn stopping_finishes_calls_and_closes_the_rest() {
    let mut server = Running::start(Limits::default()).await;
    let mut unused = server.connect().await;
    let mut kept = server.connect().await;
    send(&mut kept, &post("/", "", COUNT)).await;
    assert_eq!(receive(&mut kept).await.1, COUNTED);
    let mut busy = server.connect().await;
    send(&mut busy, &post("/", "", r#"{"method":"wait","id":1}"#)).await;
    server.until_waiting(1).await;

    server.begin_stop();
    assert_eq!(receive_to_end(&mut unused).await, "");
    assert_eq!(receive_to_end(&mut kept).await, "");
    TcpStream::connect(server.address).await.expect_err("no longer listening");
    assert!(!server.served.is_finished());
    server.node.go_on.notify_one();
    let text = receive_to_end(&mut busy).await;
    assert!(text.ends_with("\r\n\r\n{\"result\":true,\"error\":null,\"id\":1}\n"), "{text}");
    assert_eq!(server.stop().await, 0);
}

#[tokio::test]
async fn stopping_does_not_wait_for_ever() {
    let limits = Limits { shutdown_grace: Duration::from_millis(50), ..Limits::default() };
    let server = Running::start(limits).await;
    let node = Arc::clone(&server.node);
    let mut busy = server.connect().await;
    send(&mut busy, &post("/", "", r#"{"method":"wait","id":1}"#)).await;
    server.until_waiting(1).await;
    let started = Instant::now();
    assert_eq!(server.stop().await, 1);
    assert!(started.elapsed() < PATIENCE);
    assert_eq!(node.dropped.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn an_ipv6_address_that_the_machine_lacks_is_left_out_of_the_default_alone() {
    // The documentation prefix (RFC 3849): no machine has this address.
    let wanted = ["127.0.0.1:0", "[2001:db8::1]:0"].map(|address| address.parse::<ListenAddress>().expect("address"));
    let bind = |wanted: Vec<ListenAddress>, may_lack_ipv6| async move {
        listen(&wanted, may_lack_ipv6, 0o600).await.map(|listeners| listeners.len()).map_err(|error| error.to_string())
    };
    assert_eq!(bind(wanted.to_vec(), true).await, Ok(1));
    assert!(bind(wanted.to_vec(), false).await.unwrap_err().contains("[2001:db8::1]:0"));
    assert!(bind(wanted[1..].to_vec(), true).await.is_err(), "nothing else is left");
}

#[tokio::test]
async fn result_of_a_stream_has_its_length_and_a_broken_one_ends_the_connection() {
    let server = Running::start(Limits::default()).await;
    let mut stream = server.connect().await;
    let once = format!("{{\"result\":{},\"error\":null,\"id\":1}}", "7".repeat(usize::try_from(STREAM).unwrap()));
    send(&mut stream, &post("/", "", r#"{"method":"stream","id":1}"#)).await;
    assert!(receive(&mut stream).await.1 == once.clone() + "\n");
    // Several streams in one body, with other results between them.
    let request = r#"{"method":"stream","id":1}"#;
    send(&mut stream, &post("/", "", &format!("[{request},{COUNT},{request}]"))).await;
    assert!(receive(&mut stream).await.1 == format!("[{once},{},{once}]\n", COUNTED.trim_end()));

    send(&mut stream, &post("/", "", r#"{"method":"broken stream","id":1}"#)).await;
    let text = receive_to_end(&mut stream).await;
    assert!(text.contains(&format!("Content-Length: {}\r\n", once.len() + 1)) && text.ends_with('7'));
}
