//! Requests and replies on the wire: framing, paths, verbs, credentials.

use super::*;

#[tokio::test]
async fn reply_has_content_length_and_the_connection_is_kept() {
    let server = Running::start(Limits::default()).await;
    let mut stream = server.connect().await;
    // A kept-alive connection takes several requests, of any content type.
    for headers in ["", "content-type: text/plain\r\n", "Content-Type: application/json; charset=UTF-8\r\n"] {
        send(&mut stream, &post("/", headers, COUNT)).await;
        let (head, body) = receive(&mut stream).await;
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert!(head.contains("\r\nContent-Type: application/json\r\n"), "{head}");
        assert!(head.contains(&format!("\r\nContent-Length: {}\r\n", COUNTED.len())), "{head}");
        assert!(!head.to_lowercase().contains("transfer-encoding"), "{head}");
        assert_eq!(body, COUNTED);
    }
    let batch = format!(r#"[{COUNT},{{"jsonrpc":"2.0","method":"nosuch","id":"a"}}]"#);
    send(&mut stream, &post("/", "", &batch)).await;
    let (_, body) = receive(&mut stream).await;
    let error = r#"{"jsonrpc":"2.0","error":{"code":-32601,"message":"Method not found"},"id":"a"}"#;
    assert_eq!(body, format!("[{},{error}]\n", COUNTED.trim_end()));
    send(&mut stream, &post("/", "", r#"{"jsonrpc":"2.0","method":"getblockcount"}"#)).await;
    let (head, _) = receive(&mut stream).await;
    assert!(head.starts_with("HTTP/1.1 204 No Content\r\n"), "{head}");
    assert_eq!(server.stop().await, 0);
}

#[tokio::test]
async fn framing_lines_may_end_in_line_feed_alone() {
    let server = Running::start(Limits::default()).await;
    let mut stream = server.connect().await;
    send(&mut stream, &post("/", "", COUNT).replace("\r\n", "\n")).await;
    assert_eq!(receive(&mut stream).await.1, COUNTED);
}

#[tokio::test]
async fn framing_body_in_a_segment_of_its_own_is_read() {
    let server = Running::start(Limits::default()).await;
    let mut stream = server.connect().await;
    stream.set_nodelay(true).expect("nodelay");
    let request = post("/", "", COUNT);
    for cut in [request.len() - COUNT.len(), request.len() - 5, 20] {
        send(&mut stream, &request[..cut]).await;
        sleep(Duration::from_millis(30)).await;
        send(&mut stream, &request[cut..]).await;
        assert_eq!(receive(&mut stream).await.1, COUNTED);
    }
}

#[tokio::test]
async fn framing_connections_of_http_1_0_and_closing_clients_end() {
    let server = Running::start(Limits::default()).await;
    let mut stream = server.connect().await;
    send(&mut stream, &post("/", "", COUNT).replace("HTTP/1.1", "HTTP/1.0")).await;
    let text = receive_to_end(&mut stream).await;
    assert!(text.starts_with("HTTP/1.0 200 OK\r\n"), "{text}");
    assert!(text.ends_with(&format!("\r\n\r\n{COUNTED}")), "{text}");

    let mut stream = server.connect().await;
    send(&mut stream, &post("/", "Connection: close\r\n", COUNT)).await;
    let text = receive_to_end(&mut stream).await;
    assert!(text.ends_with(&format!("\r\n\r\n{COUNTED}")), "{text}");
}

#[tokio::test]
async fn framing_paths_name_wallets_and_other_paths_and_verbs_are_refused() {
    let server = Running::start(Limits::default()).await;
    let mut stream = server.connect().await;
    send(&mut stream, &post("/wallet/a%20b%2fc", "", r#"{"method":"wallet","id":1}"#)).await;
    assert_eq!(receive(&mut stream).await.1, "{\"result\":\"a b/c\",\"error\":null,\"id\":1}\n");
    // A name that is not UTF-8 names no wallet; a method that needs no wallet is answered.
    send(&mut stream, &post("/wallet/%ff", "", COUNT)).await;
    assert_eq!(receive(&mut stream).await.1, COUNTED);
    for path in ["/rest", "/?x=1", "/wallet", "http://x/", "http://x/wallet/w"] {
        send(&mut stream, &post(path, "", COUNT)).await;
        let (head, body) = receive(&mut stream).await;
        assert!(head.starts_with("HTTP/1.1 404 Not Found\r\n"), "{path}: {head}");
        assert_eq!(body, "");
    }
    for verb in ["GET", "PUT", "OPTIONS", "BREW"] {
        send(&mut stream, &format!("{verb} / HTTP/1.1\r\nHost: x\r\n\r\n")).await;
        let (head, body) = receive(&mut stream).await;
        assert!(head.starts_with("HTTP/1.1 405 Method Not Allowed\r\n"), "{verb}: {head}");
        assert_eq!(body, "JSONRPC server handles only POST requests");
    }
}

#[tokio::test]
async fn missing_or_wrong_credentials_are_401() {
    let server = Running::start(Limits::default()).await;
    let mut stream = server.connect().await;
    let good = STANDARD.encode("u:p");
    let without = post("/", "", COUNT).replace(&format!("Authorization: Basic {good}\r\n"), "");
    let wrong = post("/", "", COUNT).replace(&good, &STANDARD.encode("u:q"));
    for request in [without, wrong] {
        // Even when the body arrives after the answer, the connection stays usable.
        let (head, body) = request.split_at(request.len() - COUNT.len());
        send(&mut stream, head).await;
        sleep(Duration::from_millis(20)).await;
        send(&mut stream, body).await;
        let (head, body) = receive(&mut stream).await;
        assert!(head.starts_with("HTTP/1.1 401 Unauthorized\r\n"), "{head}");
        let challenge = "\r\nWww-Authenticate: Basic realm=\"jsonrpc\"\r\n";
        assert!(head.contains(challenge), "{head}");
        assert!(head.contains("\r\nContent-Length: 0\r\n"), "{head}");
        assert_eq!(body, "");
    }
    send(&mut stream, &post("/", "", COUNT)).await;
    assert_eq!(receive(&mut stream).await.1, COUNTED);

    // The answer does not wait for a body that never comes.
    let mut stream = server.connect().await;
    send(&mut stream, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9000000\r\n\r\n").await;
    let text = receive_to_end(&mut stream).await;
    assert!(text.starts_with("HTTP/1.1 401 Unauthorized\r\n"), "{text}");
}
