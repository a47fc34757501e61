use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http_body_util::BodyExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 33\r\n\r\n{\"result\":7,\"error\":null,\"id\":1}\n";

async fn read_request(stream: &mut TcpStream) -> Option<String> {
    let mut text = Vec::new();
    while !text.ends_with(b"}") {
        text.push(stream.read_u8().await.ok()?);
    }
    Some(String::from_utf8(text).unwrap())
}

/// A server that answers each connection's requests with these texts in turn, and then closes it. Returns the requests.
async fn server(
    connections: Vec<Vec<&'static str>>,
) -> (Arc<Upstream>, tokio::task::JoinHandle<Vec<String>>, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let cookie = folder.path().join("cookie");
    std::fs::write(&cookie, "__cookie__:one").unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
    let serving = tokio::spawn(async move {
        let mut requests = Vec::new();
        for replies in connections {
            let (mut stream, _) = listener.accept().await.unwrap();
            for reply in replies {
                let Some(request) = read_request(&mut stream).await else { break };
                requests.push(request);
                stream.write_all(reply.as_bytes()).await.unwrap();
            }
        }
        requests
    });
    (Arc::new(Upstream::new(endpoint, Login::Cookie(cookie), 2)), serving, folder)
}

async fn ask(upstream: &Upstream, method: &str) -> Result<Outcome, UpstreamError> {
    let reply = upstream.post("/", request(method, b"[]"), is_read_only(method)).await?;
    let (status, body) = reply.collect(1000).await?;
    Ok(read_reply(status, &body))
}

fn seven() -> Outcome {
    Outcome::Result(Bytes::from_static(b"7"))
}

#[tokio::test]
async fn connection_is_used_again_after_its_reply() {
    let (upstream, serving, _folder) = server(vec![vec![OK, OK, OK]]).await;
    for _ in 0..3 {
        assert_eq!(ask(&upstream, "getblockcount").await.unwrap(), seven());
    }
    let requests = serving.await.unwrap();
    assert!(requests[0].contains("authorization: Basic X19jb29raWVfXzpvbmU="), "{}", requests[0]);
    assert!(requests[0].ends_with("{\"id\":1,\"method\":\"getblockcount\",\"params\":[]}"));
    assert_eq!(upstream.figures().connections.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn request_without_reply_is_sent_again_only_if_it_has_no_effects() {
    let (upstream, serving, _folder) = server(vec![vec![OK, ""], vec![OK, ""]]).await;
    assert_eq!(ask(&upstream, "getblockcount").await.unwrap(), seven());
    assert_eq!(ask(&upstream, "getblockcount").await.unwrap(), seven(), "the first connection ended without a reply");
    let lost = ask(&upstream, "sendrawtransaction").await.unwrap_err();
    assert!(matches!(lost, UpstreamError::Lost(_)) && !lost.is_without_effect(), "{lost}");
    assert_eq!(serving.await.unwrap().len(), 4);
    let gone = ask(&upstream, "getblockcount").await.unwrap_err();
    assert!(matches!(gone, UpstreamError::Unreachable(_)) && gone.is_without_effect());
}

#[tokio::test]
async fn cookie_is_read_again_when_it_is_refused() {
    const NO: &str = "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n";
    let (upstream, serving, folder) = server(vec![vec![OK, NO, OK, NO]]).await;
    assert_eq!(ask(&upstream, "getblockcount").await.unwrap(), seven());
    std::fs::write(folder.path().join("cookie"), "__cookie__:two").unwrap();
    assert_eq!(ask(&upstream, "sendrawtransaction").await.unwrap(), seven(), "a refused call has no effects");
    assert!(matches!(ask(&upstream, "getblockcount").await.unwrap_err(), UpstreamError::Unauthorized));
    let requests = serving.await.unwrap();
    assert!(requests[2].contains("authorization: Basic X19jb29raWVfXzp0d28="), "{}", requests[2]);
}

#[tokio::test]
async fn full_queue_whitelist_and_other_servers_are_told_apart() {
    const BUSY: &str = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 27\r\n\r\nWork queue depth exceeded\r\n";
    // bitcoind refuses requests with this while it stops.
    const STOPPING: &str = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 13\r\n\r\n<HTML></HTML>";
    const LISTED: &str = "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n";
    const HTML: &str = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>";
    const GATEWAY: &str = "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 6\r\n\r\n<html>";
    let (upstream, serving, _folder) = server(vec![vec![BUSY, STOPPING], vec![LISTED, HTML, GATEWAY]]).await;
    assert!(matches!(ask(&upstream, "getblockcount").await.unwrap_err(), UpstreamError::Overloaded));
    let stopping = ask(&upstream, "sendrawtransaction").await.unwrap_err();
    assert!(matches!(stopping, UpstreamError::Unavailable) && stopping.is_absent() && stopping.is_without_effect());
    assert!(matches!(ask(&upstream, "getblockcount").await.unwrap_err(), UpstreamError::Forbidden));
    assert_eq!(ask(&upstream, "getblockcount").await.unwrap(), Outcome::Strange);
    let proxy = ask(&upstream, "sendrawtransaction").await.unwrap_err();
    assert!(matches!(proxy, UpstreamError::Gateway(_)) && proxy.is_absent() && !proxy.is_without_effect());
    assert_eq!(serving.await.unwrap().len(), 5);
}

#[tokio::test]
async fn body_that_is_dropped_closes_its_connection() {
    const LONG: &str = "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n{\"result\":\"";
    let (upstream, _serving, _folder) = server(vec![vec![LONG], vec![OK]]).await;
    let mut reply = upstream.post("/", request("getblock", b"[]"), true).await.unwrap();
    assert_eq!(reply.body.length(), Some(1_000_000));
    assert!(reply.body.frame().await.is_some());
    drop(reply);
    assert_eq!(ask(&upstream, "getblockcount").await.unwrap(), seven());
}

/// A server that answers every request. Returns the number of connections.
fn endless_server() -> (Upstream, Arc<AtomicUsize>, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let cookie = folder.path().join("cookie");
    std::fs::write(&cookie, "__cookie__:one").unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
    let accepted = Arc::new(AtomicUsize::new(0));
    let count = accepted.clone();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            count.fetch_add(1, Ordering::Relaxed);
            std::thread::spawn(move || {
                let mut byte = [0];
                while stream.read_exact(&mut byte).is_ok() {
                    if byte == *b"}" && stream.write_all(OK.as_bytes()).is_err() {
                        break;
                    }
                }
            });
        }
    });
    (Upstream::new(endpoint, Login::Cookie(cookie), 2), accepted, folder)
}

#[test]
fn threads_share_the_connections_and_the_host_has_one_more() {
    let (upstream, accepted, _folder) = endless_server();
    let service = Arc::new(upstream.for_host(4, 1));
    let upstream = Arc::new(upstream);
    let runtime = || tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let runtimes: Vec<_> = (0..5).map(|_| runtime()).collect();
    for node in [&upstream, &service, &upstream] {
        for runtime in &runtimes {
            let node = node.clone();
            let answer = runtime.block_on(runtime.spawn(async move { ask(&node, "getblockcount").await }));
            assert_eq!(answer.unwrap().unwrap(), seven());
        }
    }
    assert_eq!(accepted.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn request_waits_for_a_connection_whose_answer_is_still_read() {
    let (upstream, accepted, _folder) = endless_server();
    let upstream = Arc::new(upstream);
    let post = || upstream.post("/", request("getblockcount", b"[]"), true);
    let (first, second) = (post().await.unwrap(), post().await.unwrap());
    let third = tokio::spawn({
        let upstream = upstream.clone();
        async move { ask(&upstream, "getblockcount").await }
    });
    tokio::task::yield_now().await;
    assert_eq!(first.collect(1000).await.unwrap().0, StatusCode::OK);
    assert_eq!(third.await.unwrap().unwrap(), seven());
    assert_eq!(second.collect(1000).await.unwrap().0, StatusCode::OK);
    assert_eq!(accepted.load(Ordering::Relaxed), 2);
}

const TWO: &str = "HTTP/1.1 200 OK\r\nContent-Length: 33\r\n\r\n{\"result\":2,\"error\":null,\"id\":1}\n";
const WARMING: &str = "HTTP/1.1 500 Internal\r\nContent-Length: 57\r\n\r\n{\"result\":null,\"error\":{\"code\":-28,\"message\":\"w\"},\"id\":1}";
const REFUSED: &str = "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n";

/// A greeting of two requests: the result 2 identifies the node, and 7 as the second result means another node.
fn greeted(upstream: Arc<Upstream>) -> Upstream {
    let requests = vec![request("one", b"[]"), request("two", b"[]")];
    let check = |number, result: &[u8]| match (number, result) {
        (_, b"2") => Ok(true),
        (0, _) => Ok(false),
        _ => Err("the node is 7".to_owned()),
    };
    Arc::into_inner(upstream).unwrap().greeted(Arc::new(Greeting::new(requests, check)))
}

const OK_LAST: &str =
    "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 33\r\n\r\n{\"result\":7,\"error\":null,\"id\":1}\n";
const TWO_LAST: &str =
    "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 33\r\n\r\n{\"result\":2,\"error\":null,\"id\":1}\n";
const OK_OLD: &str = "HTTP/1.0 200 OK\r\nContent-Length: 33\r\n\r\n{\"result\":7,\"error\":null,\"id\":1}\n";
const TWO_OLD: &str = "HTTP/1.0 200 OK\r\nContent-Length: 33\r\n\r\n{\"result\":2,\"error\":null,\"id\":1}\n";

#[tokio::test]
async fn connections_that_end_after_each_answer_carry_calls_without_effects() {
    for (two, seven_more) in [(TWO, OK), (TWO_LAST, OK_LAST), (TWO_OLD, OK_OLD)] {
        let replies = vec![vec![two], vec![two], vec![two], vec![seven_more], vec![seven_more], vec![two]];
        let (upstream, serving, _folder) = server(replies).await;
        let upstream = greeted(upstream);
        for _ in 0..2 {
            assert_eq!(ask(&upstream, "getblockcount").await.unwrap(), seven());
        }
        let refused = ask(&upstream, "stop").await.unwrap_err();
        assert!(matches!(refused, UpstreamError::Ended(_)) && refused.is_without_effect(), "{refused}");
        assert!(upstream.ends_connections());
        assert_eq!(serving.await.unwrap().len(), 6, "four greetings and two calls");
    }
}

#[tokio::test]
async fn first_method_with_effects_is_refused_where_connections_end() {
    let (upstream, serving, _folder) = server(vec![vec![TWO_LAST]; 3]).await;
    let upstream = greeted(upstream);
    assert!(matches!(ask(&upstream, "stop").await.unwrap_err(), UpstreamError::Ended(_)));
    let asked = serving.await.unwrap();
    assert!(asked.len() == 3 && asked.iter().all(|request| request.contains("\"method\":\"one\"")), "{asked:?}");
}

#[tokio::test]
async fn connections_that_end_are_asked_again_after_a_failure() {
    let ends = vec![TWO_LAST];
    let (upstream, _serving, _folder) =
        server(vec![ends.clone(), ends.clone(), ends, vec![OK_LAST], vec![], vec![OK, OK]]).await;
    let upstream = greeted(upstream);
    assert_eq!(ask(&upstream, "getblockcount").await.unwrap(), seven());
    assert!(ask(&upstream, "getblockcount").await.unwrap_err().is_absent());
    assert_eq!(ask(&upstream, "getblockcount").await.unwrap_err().to_string(), "the node is 7");
}

#[tokio::test]
async fn connections_that_are_kept_again_carry_everything() {
    // Only an announced end shows by its absence that a connection is kept. Else the greeting is sent twice.
    for (ends, kept) in [(vec![TWO_LAST], vec![TWO, OK]), (vec![TWO], vec![TWO, TWO, OK])] {
        let count = 4 + kept.len();
        let (upstream, serving, _folder) = server(vec![ends.clone(), ends.clone(), ends, vec![OK], kept]).await;
        let upstream = greeted(upstream);
        assert_eq!(ask(&upstream, "getblockcount").await.unwrap(), seven());
        assert_eq!(ask(&upstream, "stop").await.unwrap(), seven());
        assert!(!upstream.ends_connections());
        assert_eq!(serving.await.unwrap().len(), count);
    }
}

#[tokio::test]
async fn greeting_is_asked_once_for_each_connection() {
    let (upstream, serving, _folder) = server(vec![vec![OK, TWO, OK, OK], vec![TWO, OK]]).await;
    let upstream = greeted(upstream);
    for _ in 0..3 {
        assert_eq!(ask(&upstream, "getblockcount").await.unwrap(), seven());
    }
    let asked: Vec<String> = serving.await.unwrap();
    let methods = ["one", "two", "getblockcount", "getblockcount", "one", "getblockcount"];
    assert_eq!(asked.len(), methods.len());
    for (request, method) in asked.iter().zip(methods) {
        assert!(request.contains(&format!("\"method\":\"{method}\"")), "{request}");
    }
}

#[tokio::test]
async fn greeting_keeps_requests_from_other_nodes() {
    // Another node; a node that is not ready; a node that refuses the credentials.
    for (replies, count) in [(vec![OK, OK], 2), (vec![WARMING], 1), (vec![REFUSED], 1)] {
        let (upstream, serving, _folder) = server(vec![replies.clone()]).await;
        let upstream = greeted(upstream);
        let error = ask(&upstream, "stop").await.unwrap_err();
        assert!(error.is_without_effect());
        let is_expected = match replies[0] {
            WARMING => matches!(&error, UpstreamError::NotReady(error) if error.code.0 == -28),
            REFUSED => matches!(error, UpstreamError::Unauthorized),
            _ => error.to_string() == "the node is 7",
        };
        assert!(is_expected, "{error}");
        drop(upstream);
        assert_eq!(serving.await.unwrap().len(), count);
    }
}
