use super::*;

#[tokio::test]
async fn large_results_are_not_copied() {
    let service = Gateway::new(Arc::new(Recorder::default()));
    for (request, expected) in [
        (r#"{"method":"large","id":1}"#, LARGE.len() + r#"{"result":,"error":null,"id":1}"#.len() + 1),
        (r#"[{"method":"large","id":1}]"#, LARGE.len() + r#"[{"result":,"error":null,"id":1}]"#.len() + 1),
    ] {
        let body = Bytes::from(request);
        let mut reply = answer(&service, anyone(), body, &Limits::default()).await.into_body();
        assert_eq!(hyper::body::Body::size_hint(&reply).exact(), Some(expected as u64));
        let mut uncopied = false;
        while let Some(frame) = reply.frame().await {
            let data = frame.expect("infallible").into_data().expect("data");
            uncopied |= data.as_ptr() == LARGE.as_ptr();
        }
        assert!(uncopied, "{request}");
        assert!(hyper::body::Body::is_end_stream(&reply));
    }
}
