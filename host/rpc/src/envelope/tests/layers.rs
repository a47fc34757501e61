//! Between the envelope and the dispatcher: large results, layers of jsonrpsee, the gateway.

use std::future::Future;

use jsonrpsee::core::middleware::{Batch, Notification, RpcServiceT};
use jsonrpsee::core::server::ResponsePayload;
use jsonrpsee::types::ErrorObject;

use super::*;

#[tokio::test]
async fn large_results_are_not_copied() {
    let service = Gateway::new(Arc::new(Recorder::default()));
    for (request, expected) in [
        (r#"{"method":"large","id":1}"#, LARGE.len() + r#"{"result":,"error":null,"id":1}"#.len() + 1),
        (r#"[{"method":"large","id":1}]"#, LARGE.len() + r#"[{"result":,"error":null,"id":1}]"#.len() + 1),
    ] {
        let body = Bytes::from(request);
        let mut reply = answer(&service, &anyone(), None, body, &Limits::default()).await;
        assert_eq!(hyper::body::Body::size_hint(&reply.body).exact(), Some(expected as u64));
        let mut uncopied = false;
        while let Some(frame) = reply.body.frame().await {
            let data = frame.expect("infallible").into_data().expect("data");
            uncopied |= data.as_ptr() == LARGE.as_ptr();
        }
        assert!(uncopied, "{request}");
        assert!(hyper::body::Body::is_end_stream(&reply.body));
    }
}

/// A layer's service that answers some methods without asking what is below it.
#[derive(Clone)]
struct Shortcut<S>(S);

impl<S: RpcService> RpcServiceT for Shortcut<S> {
    type MethodResponse = MethodResponse;
    type NotificationResponse = S::NotificationResponse;
    type BatchResponse = S::BatchResponse;

    fn call<'a>(&self, request: RpcRequest<'a>) -> impl Future<Output = MethodResponse> + Send + 'a {
        let id = request.id.clone();
        let own = match request.method_name() {
            "cached" => Some(MethodResponse::response(id, ResponsePayload::success([1, 2]), 1000)),
            "nothing" => Some(MethodResponse::response(id, ResponsePayload::success(()), 1000)),
            "blocked" => {
                let error = ErrorObject::owned(-7, "no", None::<()>);
                Some(MethodResponse::error(id, error))
            }
            _ => None,
        };
        let below = own.is_none().then(|| self.0.call(request));
        async move {
            match (own, below) {
                (Some(own), _) => own,
                (None, Some(below)) => below.await,
                (None, None) => MethodResponse::notification(),
            }
        }
    }

    fn batch<'a>(&self, batch: Batch<'a>) -> impl Future<Output = S::BatchResponse> + Send + 'a {
        self.0.batch(batch)
    }

    fn notification<'a>(
        &self,
        notification: Notification<'a>,
    ) -> impl Future<Output = S::NotificationResponse> + Send + 'a {
        self.0.notification(notification)
    }
}

#[tokio::test]
async fn layers_may_answer_themselves() {
    let gateway = Gateway::new(Arc::new(Recorder::default()));
    let service = RpcServiceBuilder::new().rpc_logger(0).layer_fn(Shortcut).service(gateway);
    for (method, expected) in [
        ("cached", r#"{"jsonrpc":"2.0","result":[1,2],"id":"i"}"#),
        ("nothing", r#"{"jsonrpc":"2.0","result":null,"id":"i"}"#),
        ("blocked", r#"{"jsonrpc":"2.0","error":{"code":-7,"message":"no"},"id":"i"}"#),
        ("getblockcount", r#"{"jsonrpc":"2.0","result":101,"id":"i"}"#),
    ] {
        let body = Bytes::from(format!(r#"{{"jsonrpc":"2.0","method":"{method}","id":"i"}}"#));
        let reply = answer(&service, &anyone(), None, body, &Limits::default()).await;
        let text = reply.body.collect().await.expect("infallible").to_bytes();
        assert_eq!(text, format!("{expected}\n"), "{method}");
    }
}

#[tokio::test]
async fn gateway_serves_layers_that_batch() {
    let recorder = Arc::new(Recorder::default());
    let gateway = Gateway::new(Arc::clone(&recorder));
    let mut batch = Batch::new();
    batch.push(RpcRequest::borrowed("getblockcount", None, Id::Number(4)));
    batch.push(RpcRequest::borrowed("bad", None, Id::Number(5)));
    let response = gateway.batch(batch).await;
    let expected = concat!(
        r#"[{"jsonrpc":"2.0","id":4,"result":101},"#,
        r#"{"jsonrpc":"2.0","id":5,"error":{"code":-8,"message":"a \"bad\"\nvalue é"}}]"#
    );
    assert_eq!(response.as_ref(), expected);
    let notification = Notification::new("echo".into(), None);
    assert!(gateway.notification(notification).await.is_notification());
    let calls = recorder.0.lock();
    assert_eq!(calls.len(), 3);
    assert_eq!(calls.last().map(|call| call.params.as_bytes()), Some(b"[]".as_slice()));
}
