use super::*;
use crate::auth::{Authenticator, RpcUser};

#[tokio::test]
async fn batch_shapes_are_answered_as_by_bitcoind() {
    check(&[
        ("[]", 200, "[]"),
        (" [ ] \n", 200, "[]"),
        (
            r#"[5]"#,
            200,
            r#"[{"result":null,"error":{"code":-32600,"message":"Invalid Request object"},"id":null}]"#,
        ),
        (
            r#"[[],{}]"#,
            200,
            concat!(
                r#"[{"result":null,"error":{"code":-32600,"message":"Invalid Request object"},"id":null},"#,
                r#"{"result":null,"error":{"code":-32600,"message":"Missing method"}}]"#
            ),
        ),
        (
            r#"[{"jsonrpc":"2.0","method":"getblockcount"},{"method":"getblockcount","id":1},{"jsonrpc":"2.0","method":"nosuch","id":2},5,{"jsonrpc":"2.0","method":"getblockcount","id":null}]"#,
            200,
            concat!(
                r#"[{"result":101,"error":null,"id":1},"#,
                r#"{"jsonrpc":"2.0","error":{"code":-32601,"message":"Method not found"},"id":2},"#,
                r#"{"result":null,"error":{"code":-32600,"message":"Invalid Request object"},"id":null},"#,
                r#"{"jsonrpc":"2.0","result":101,"id":null}]"#
            ),
        ),
        (r#"[{"jsonrpc":"2.0","method":"nosuch"}]"#, 204, ""),
        (r#"[{"jsonrpc":"2.0","method":7},{"jsonrpc":"2.0"}]"#, 204, ""),
        (
            r#"[{"jsonrpc":"2.0","id":1}]"#,
            200,
            r#"[{"jsonrpc":"2.0","error":{"code":-32600,"message":"Missing method"},"id":1}]"#,
        ),
        (
            r#"[{"method":"bad","id":2},{"method":"nosuch"}]"#,
            200,
            concat!(
                r#"[{"result":null,"error":{"code":-8,"message":"a \"bad\"\nvalue é"},"id":2},"#,
                r#"{"result":null,"error":{"code":-32601,"message":"Method not found"}}]"#
            ),
        ),
    ])
    .await;
}

#[tokio::test]
async fn batch_runs_in_order_and_over_max_batch_is_refused() {
    let limits = Limits { max_batch: 3, ..Limits::default() };
    let batch = br#"[{"method":"c"},{"jsonrpc":"2.0","method":"a"},{"method":"b"}]"#;
    let (status, _, calls) = ask_as(&anyone(), &limits, batch).await;
    let methods: Vec<&str> = calls.iter().map(|call| call.method.as_str()).collect();
    assert_eq!((status, methods), (200, vec!["c", "a", "b"]));

    let batch = br#"[{"method":"c"},{"method":"a"},{"method":"b"},5]"#;
    let (status, text, calls) = ask_as(&anyone(), &limits, batch).await;
    assert_eq!((status, calls.len()), (400, 0));
    let message = "Batch of 4 requests is larger than the limit of 3";
    let expected = format!(r#"{{"result":null,"error":{{"code":-32600,"message":"{message}"}},"id":null}}"#);
    assert_eq!(text.trim_end(), expected);

    let (status, text, _) = ask_as(&anyone(), &limits, b"[1,2,3,4,]").await;
    assert_eq!((status, text.trim_end()), (500, PARSE_ERROR));
}

#[tokio::test]
async fn busy_is_an_error_in_a_batch_and_status_503_alone() {
    check(&[(
        r#"[{"method":"busy","id":1}]"#,
        200,
        r#"[{"result":null,"error":{"code":-32603,"message":"Work queue depth exceeded"},"id":1}]"#,
    )])
    .await;
    for version in ["", r#""jsonrpc":"2.0","#] {
        let busy = format!(r#"{{{version}"method":"busy","id":1}}"#);
        assert_eq!(ask(busy.as_bytes()).await, (503, "Work queue depth exceeded".to_owned()));
    }
}

#[tokio::test]
async fn requests_of_methods_that_are_not_the_users_are_refused_with_403() {
    let user = RpcUser::with_password("eve", "x").expect("user");
    let auth = Authenticator::default().with_user(user.allowing(["getblockcount".to_owned()]));
    let header = http::HeaderValue::from_static("Basic ZXZlOng=");
    let eve = auth.check(&header).expect("eve");
    let rows: [(&str, u16, usize); 6] = [
        (r#"{"method":"getblockcount"}"#, 200, 1),
        (r#"{"method":"echo"}"#, 403, 0),
        (r#"{"jsonrpc":"2.0","method":"echo"}"#, 403, 0),
        (r#"{"method":5}"#, 400, 0),
        (r#"[{"method":"getblockcount"},5]"#, 200, 1),
        (r#"[{"method":"getblockcount"},{"method":"echo"}]"#, 403, 0),
    ];
    for (request, expected, executed) in rows {
        let (status, _, calls) = ask_as(&eve.origin, &Limits::default(), request.as_bytes()).await;
        assert_eq!((status, calls.len()), (expected, executed), "{request}");
    }
}

/// Executes runs of `echo`: each answer has its position and the run's length.
struct Runs(Recorder);

impl Dispatch for Runs {
    async fn dispatch(&self, call: Call) -> Answer {
        self.0.dispatch(call).await
    }

    fn takes_together(&self, method: &str) -> bool {
        method == "echo"
    }

    async fn dispatch_together(&self, calls: Vec<Call>) -> Vec<Answer> {
        let count = calls.len();
        (0..count).map(|at| Ok(Bytes::from(format!("[{at},{count}]")).into())).collect()
    }
}

#[tokio::test]
async fn batch_elements_that_can_be_answered_together_are_in_runs() {
    let runs = Arc::new(Runs(Recorder::default()));
    let service = RpcServiceBuilder::new().service(Gateway::new(Arc::clone(&runs)));
    let echo = r#"{"method":"echo","params":[1],"id":1}"#;
    let notified = r#"{"jsonrpc":"2.0","method":"echo"}"#;
    let count = r#"{"method":"getblockcount","id":2}"#;
    let body = format!("[{echo},{count},{echo},{notified},{echo},{count},{count},7,{echo}]");
    let reply = answer(&service, anyone(), body.into(), &Limits::default()).await;
    let text = reply.into_body().collect().await.unwrap().to_bytes();
    let replies: Vec<serde_json::Value> = serde_json::from_slice(&text).unwrap();
    let results: Vec<String> = replies.iter().map(|reply| reply["result"].to_string()).collect();
    // A single element is not part of a run. A notification has its position in the run and no reply.
    assert_eq!(results, ["[1]", "101", "[0,3]", "[2,3]", "101", "101", "null", "[1]"]);
    assert_eq!(runs.0.0.lock().len(), 5, "calls answered together are not dispatched one by one");
}
