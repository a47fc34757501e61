use super::*;

#[tokio::test]
async fn single_first_dialect_is_answered_in_its_shape() {
    check(&[
        (r#"{"method":"getblockcount","id":1}"#, 200, r#"{"result":101,"error":null,"id":1}"#),
        (r#"{"method":"getblockcount","id":null}"#, 200, r#"{"result":101,"error":null,"id":null}"#),
        (
            r#"{"method":"nosuch","id":"x"}"#,
            404,
            r#"{"result":null,"error":{"code":-32601,"message":"Method not found"},"id":"x"}"#,
        ),
        (
            r#"{"method":"bad","id":1}"#,
            500,
            r#"{"result":null,"error":{"code":-8,"message":"a \"bad\"\nvalue é"},"id":1}"#,
        ),
        (r#"{"method":"invalid","id":1}"#, 400, r#"{"result":null,"error":{"code":-32600,"message":"not so"},"id":1}"#),
    ])
    .await;
}

#[tokio::test]
async fn first_dialect_without_id_is_answered_without_id() {
    check(&[
        (r#"{"method":"getblockcount"}"#, 200, r#"{"result":101,"error":null}"#),
        (r#"{"jsonrpc":"1.0","method":"getblockcount"}"#, 200, r#"{"result":101,"error":null}"#),
        (r#"{"method":"nosuch"}"#, 404, r#"{"result":null,"error":{"code":-32601,"message":"Method not found"}}"#),
    ])
    .await;
}

#[tokio::test]
async fn other_versions_are_the_first_dialect() {
    for version in [r#""1.0""#, r#""1.1""#, r#""2.1""#, r#""2""#, "2.0", "1", "null", "{}", "[\"2.0\"]"] {
        let request = format!(r#"{{"jsonrpc":{version},"method":"nosuch","id":2}}"#);
        let reply = r#"{"result":null,"error":{"code":-32601,"message":"Method not found"},"id":2}"#;
        check(&[(&request, 404, reply)]).await;
    }
}

#[tokio::test]
async fn single_second_dialect_is_answered_in_its_shape() {
    check(&[
        (r#"{"jsonrpc":"2.0","method":"getblockcount","id":1}"#, 200, r#"{"jsonrpc":"2.0","result":101,"id":1}"#),
        (
            r#"{"jsonrpc":"2\u002e0","\u006dethod":"getblock\u0063ount","id":1}"#,
            200,
            r#"{"jsonrpc":"2.0","result":101,"id":1}"#,
        ),
        (
            r#"{"jsonrpc":"2.0","method":"nosuch","id":1}"#,
            200,
            r#"{"jsonrpc":"2.0","error":{"code":-32601,"message":"Method not found"},"id":1}"#,
        ),
        (
            r#"{"jsonrpc":"2.0","method":"invalid","id":1}"#,
            200,
            r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"not so"},"id":1}"#,
        ),
        (r#"{"jsonrpc":"2.0","method":"getblockcount","id":null}"#, 200, r#"{"jsonrpc":"2.0","result":101,"id":null}"#),
        (
            r#"{"jsonrpc":"2.0","id":7}"#,
            400,
            r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"Missing method"},"id":7}"#,
        ),
        (
            r#"{"jsonrpc":"2.0","method":5}"#,
            400,
            r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"Method must be a string"}}"#,
        ),
    ])
    .await;
}

#[tokio::test]
async fn notifications_are_run_and_not_answered() {
    for method in ["getblockcount", "nosuch", "bad"] {
        let request = format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#);
        let (status, text, calls) = ask_as(&anyone(), &Limits::default(), request.as_bytes()).await;
        assert_eq!((status, text.as_str()), (204, ""), "{method}");
        assert_eq!(calls.len(), 1, "{method}");
    }
}

#[tokio::test]
async fn single_bodies_that_are_no_requests_are_refused() {
    let deep = |levels: usize| {
        let (open, close) = ("[".repeat(levels), "]".repeat(levels));
        format!(r#"{{"method":"getblockcount","id":1,"x":{open}{close}}}"#)
    };
    check(&[
        ("", 500, PARSE_ERROR),
        ("  ", 500, PARSE_ERROR),
        ("garbage", 500, PARSE_ERROR),
        ("{", 500, PARSE_ERROR),
        ("[", 500, PARSE_ERROR),
        ("[1,", 500, PARSE_ERROR),
        (r#"{"method":"getblockcount","id":1} x"#, 500, PARSE_ERROR),
        (r#"{"method":"getblockcount","id":1}{}"#, 500, PARSE_ERROR),
        (r#"[{"method":"getblockcount","id":1}]]"#, 500, PARSE_ERROR),
        (r#"{"method":"getblockcount","id":1,}"#, 500, PARSE_ERROR),
        (r#"{"method":"getblockcount","id":01}"#, 500, PARSE_ERROR),
        (r#"{"method":"getblockcount","x":"\ud800"}"#, 500, PARSE_ERROR),
        ("{\"method\":\"getblockcount\",\"x\":\"\t\"}", 500, PARSE_ERROR),
        (&deep(512), 500, PARSE_ERROR),
        (&deep(511), 200, r#"{"result":101,"error":null,"id":1}"#),
        ("5", 500, TOP_LEVEL),
        ("null", 500, TOP_LEVEL),
        ("true", 500, TOP_LEVEL),
        ("\"x\"", 500, TOP_LEVEL),
        ("5 5", 500, PARSE_ERROR),
    ])
    .await;
    assert_eq!(ask(b"{\"method\":\"\xff\"}").await.1.trim_end(), PARSE_ERROR);
}

#[tokio::test]
async fn single_requests_are_checked_in_order() {
    let refused = |message: &str, id: &str| {
        format!(r#"{{"result":null,"error":{{"code":-32600,"message":"{message}"}},"id":{id}}}"#)
    };
    let missing = |id| refused("Missing method", id);
    let not_text = |id| refused("Method must be a string", id);
    let params = |id| refused("Params must be an array or object", id);
    check(&[
        ("{}", 400, r#"{"result":null,"error":{"code":-32600,"message":"Missing method"}}"#),
        (r#"{"id":[1]}"#, 400, &missing("[1]")),
        (r#"{"id":1,"method":null,"params":5}"#, 400, &missing("1")),
        (r#"{"params":5,"method":5,"id":1}"#, 400, &not_text("1")),
        (r#"{"method":{},"id":1}"#, 400, &not_text("1")),
        (r#"{"method":"getblockcount","params":5,"id":1}"#, 400, &params("1")),
        (r#"{"method":"nosuch","params":"[]","id":1}"#, 400, &params("1")),
        (r#"{"method":"nosuch","params":false,"id":1}"#, 400, &params("1")),
    ])
    .await;
}

#[tokio::test]
async fn ids_come_back_as_they_came() {
    for id in [
        "0",
        "-1",
        "1.50",
        "1e2",
        "1234567890123",
        "123456789012345678901234567890",
        "null",
        "true",
        "\"\"",
        "\"a\\u0041\\/\"",
        "\"é\"",
        "[1, 2]",
        "{\"a\" : {\"b\":[ ]}}",
    ] {
        let first = format!(r#"{{"method":"getblockcount","id": {id} }}"#);
        let second = format!(r#"{{"id":{id},"jsonrpc":"2.0","method":"getblockcount"}}"#);
        check(&[
            (&first, 200, &format!(r#"{{"result":101,"error":null,"id":{id}}}"#)),
            (&second, 200, &format!(r#"{{"jsonrpc":"2.0","result":101,"id":{id}}}"#)),
        ])
        .await;
    }
    let spread = "{\"method\":\"getblockcount\",\"id\":[1,\r\n2]}";
    check(&[(spread, 200, r#"{"result":101,"error":null,"id":[1,2]}"#)]).await;
}

#[tokio::test]
async fn first_of_duplicate_members_counts() {
    check(&[
        (r#"{"id":1,"id":2,"method":"getblockcount","method":"nosuch"}"#, 200, r#"{"result":101,"error":null,"id":1}"#),
        (r#"{"method":"echo","params":[1],"params":[2],"id":1}"#, 200, r#"{"result":[1],"error":null,"id":1}"#),
        (
            r#"{"method":null,"method":"getblockcount","id":1}"#,
            400,
            r#"{"result":null,"error":{"code":-32600,"message":"Missing method"},"id":1}"#,
        ),
        (
            r#"{"jsonrpc":"2.0","jsonrpc":"1.0","method":"getblockcount","id":1}"#,
            200,
            r#"{"jsonrpc":"2.0","result":101,"id":1}"#,
        ),
        (
            r#"{"jsonrpc":"1.0","jsonrpc":"2.0","method":"getblockcount","id":1}"#,
            200,
            r#"{"result":101,"error":null,"id":1}"#,
        ),
    ])
    .await;
}

#[tokio::test]
async fn parameters_reach_the_call_as_text() {
    check(&[
        (
            r#"{"method":"echo","params":[1, {"a":"\u0041"} ,1.0e5],"id":1}"#,
            200,
            r#"{"result":[1, {"a":"\u0041"} ,1.0e5],"error":null,"id":1}"#,
        ),
        (r#"{"method":"echo","params":null,"id":1}"#, 200, r#"{"result":[],"error":null,"id":1}"#),
        (r#"{"method":"echo","id":1}"#, 200, r#"{"result":[],"error":null,"id":1}"#),
        (r#"{"method":"echo","params":{"a":1,"a":2},"id":1}"#, 200, r#"{"result":{"a":1,"a":2},"error":null,"id":1}"#),
    ])
    .await;
    let request = br#"{"method":"echo","params":{"a":1}}"#;
    let (_, _, calls) = ask_as(&anyone(), &Limits::default(), request).await;
    let call = calls.first().expect("one call");
    assert!(call.params.is_named());
    assert_eq!((call.origin.user.as_ref(), call.origin.wallet.as_deref()), ("alice", Some("w")));
}
