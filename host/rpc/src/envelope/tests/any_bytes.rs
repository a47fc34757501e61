use proptest::prelude::*;

use super::*;

proptest! {
    /// Every body is answered with one line of JSON or nothing.
    #[test]
    fn any_bytes_are_answered(body in proptest::collection::vec(any::<u8>(), 0..64)) {
        one_line_of_json(&body);
    }

    /// The same for bodies that are nearly requests.
    #[test]
    fn nearly_requests_are_answered(
        body in r#"(\[|\{|\}|\]|,|:|"method"|"id"|"jsonrpc"|"params"|"2\.0"|"echo"|null|1|\\u|"|\n){0,16}"#
    ) {
        one_line_of_json(body.as_bytes());
    }
}

fn one_line_of_json(body: &[u8]) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("runtime");
    let (status, text) = runtime.block_on(ask(body));
    if status == 204 {
        assert_eq!(text, "");
        return;
    }
    let line = text.strip_suffix('\n').expect("line end");
    assert!(!line.contains('\n'), "{line}");
    serde_json::from_str::<serde::de::IgnoredAny>(line).expect("json");
}
