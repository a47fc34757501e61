//! What every call passes through above the router, as layers of jsonrpsee's `RpcServiceBuilder`: a line in the log, the
//! counts for metrics, the list of calls that are being answered, and the audit log. Each layer knows nothing of the others, and the
//! gateway at the bottom only dispatches.
//!
//! A layer adds what it does to the future below it by a combinator. An `async` block that awaits a future made outside it has room
//! for that future twice, so that each layer would double what every connection keeps room for.

use std::future::Future;
use std::sync::Arc;

use futures_util::FutureExt;
use jsonrpsee::core::middleware::{Batch, Notification, RpcServiceT};
use jsonrpsee::core::server::MethodResponse;
use jsonrpsee::types::Request;
use outrigger_rpc::{Ended, ended, origin_of};
use outrigger_sdk::manifest::MethodSpec;

use crate::active::Active;
use crate::audit::{AuditEntry, AuditLog};
use crate::methods::is_audited;
use crate::metrics::{CallMetrics, Outcome};

/// Who knows the methods that are answered.
pub trait Methods: Send + Sync + 'static {
    /// What is known of a method; none when nobody answers it.
    fn spec(&self, method: &str) -> Option<Arc<MethodSpec>>;
}

/// Writes each call into the log: who made it and its method, and never its parameters, which carry keys.
#[derive(Clone)]
pub struct CallLog<S>(pub S);

/// Counts calls, and how they end.
#[derive(Clone)]
pub struct CallCount<S, M> {
    /// What is asked next.
    pub service: S,
    /// Which methods are ours: clients must not make up labels.
    pub methods: Arc<M>,
    /// Where it is counted.
    pub metrics: CallMetrics,
}

/// Keeps the list of calls that are being answered, for `getrpcinfo`.
#[derive(Clone)]
pub struct ActiveCalls<S, M> {
    /// What is asked next.
    pub service: S,
    /// Which methods are ours.
    pub methods: Arc<M>,
    /// The list.
    pub active: Arc<Active>,
}

/// Lists calls in the audit log, if there is one.
#[derive(Clone)]
pub struct Audit<S, M> {
    /// What is asked next.
    pub service: S,
    /// What plugins say of their methods.
    pub methods: Arc<M>,
    /// The log.
    pub log: Option<Arc<AuditLog>>,
}

/// A layer has to do with calls alone: the envelope makes calls of the requests of a batch and of notifications.
macro_rules! passes_on_batches {
    () => {
        fn batch<'a>(&self, batch: Batch<'a>) -> impl Future<Output = MethodResponse> + Send + 'a {
            self.next().batch(batch)
        }

        fn notification<'a>(&self, notification: Notification<'a>) -> impl Future<Output = MethodResponse> + Send + 'a {
            self.next().notification(notification)
        }
    };
}

/// A service that answers as jsonrpsee's own do.
pub trait Below:
    RpcServiceT<MethodResponse = MethodResponse, BatchResponse = MethodResponse, NotificationResponse = MethodResponse>
    + Send
    + Sync
    + 'static
{
}

impl<S> Below for S where
    S: RpcServiceT<
            MethodResponse = MethodResponse,
            BatchResponse = MethodResponse,
            NotificationResponse = MethodResponse,
        > + Send
        + Sync
        + 'static
{
}

impl<S> CallLog<S> {
    fn next(&self) -> &S {
        &self.0
    }
}

impl<S, M> CallCount<S, M> {
    fn next(&self) -> &S {
        &self.service
    }
}

impl<S, M> ActiveCalls<S, M> {
    fn next(&self) -> &S {
        &self.service
    }
}

impl<S, M> Audit<S, M> {
    fn next(&self) -> &S {
        &self.service
    }
}

impl<S: Below> RpcServiceT for CallLog<S> {
    type MethodResponse = MethodResponse;
    type NotificationResponse = MethodResponse;
    type BatchResponse = MethodResponse;

    fn call<'a>(&self, request: Request<'a>) -> impl Future<Output = MethodResponse> + Send + 'a {
        tracing::debug!(user = origin_of(&request).user, method = request.method_name(), "call");
        self.0.call(request)
    }

    passes_on_batches!();
}

impl<S: Below, M: Methods> RpcServiceT for CallCount<S, M> {
    type MethodResponse = MethodResponse;
    type NotificationResponse = MethodResponse;
    type BatchResponse = MethodResponse;

    fn call<'a>(&self, request: Request<'a>) -> impl Future<Output = MethodResponse> + Send + 'a {
        let name = request.method_name();
        let meter = self.metrics.begin(name, || self.methods.spec(name).is_some());
        self.service.call(request).inspect(move |response| {
            meter.ended(match ended(response) {
                Ended::Result => Outcome::Ok,
                Ended::Error => Outcome::Error,
                Ended::Overloaded => Outcome::Overloaded,
            });
        })
    }

    passes_on_batches!();
}

impl<S: Below, M: Methods> RpcServiceT for ActiveCalls<S, M> {
    type MethodResponse = MethodResponse;
    type NotificationResponse = MethodResponse;
    type BatchResponse = MethodResponse;

    fn call<'a>(&self, request: Request<'a>) -> impl Future<Output = MethodResponse> + Send + 'a {
        let call = self.methods.spec(request.method_name()).map(|method| Active::begin(&self.active, method));
        self.service.call(request).inspect(move |_| drop(call))
    }

    passes_on_batches!();
}

impl<S: Below, M: Methods> RpcServiceT for Audit<S, M> {
    type MethodResponse = MethodResponse;
    type NotificationResponse = MethodResponse;
    type BatchResponse = MethodResponse;

    fn call<'a>(&self, request: Request<'a>) -> impl Future<Output = MethodResponse> + Send + 'a {
        let name = request.method_name();
        let log = self.log.as_ref().filter(|_| is_audited(name, || self.methods.spec(name)));
        // Boxed: every connection keeps room for it, and few calls are listed.
        let entry = log.map(|log| Box::new(AuditEntry::begin(log, &request)));
        self.service.call(request).inspect(move |response| {
            if let Some(entry) = entry {
                entry.answered(response);
            }
        })
    }

    passes_on_batches!();
}

#[cfg(test)]
mod tests {
    use jsonrpsee::core::middleware::RpcServiceBuilder;
    use jsonrpsee::core::server::ResponsePayload;
    use jsonrpsee::types::{ErrorObject, Id};

    use super::*;

    /// Knows one method.
    struct One;

    impl Methods for One {
        fn spec(&self, method: &str) -> Option<Arc<MethodSpec>> {
            let spec = r#"{"name": "known", "category": "Test", "help": ""}"#;
            (method == "known").then(|| Arc::new(serde_json::from_str(spec).unwrap()))
        }
    }

    /// Answers with a result, or an error where the method begins with `bad`, and says how many calls are being answered.
    struct Bottom(Arc<Active>);

    impl RpcServiceT for Bottom {
        type MethodResponse = MethodResponse;
        type NotificationResponse = MethodResponse;
        type BatchResponse = MethodResponse;

        fn call<'a>(&self, request: Request<'a>) -> impl Future<Output = MethodResponse> + Send + 'a {
            let active = self.0.list().len();
            async move {
                match request.method_name().starts_with("bad") {
                    true => MethodResponse::error(request.id, ErrorObject::borrowed(-1, "bad", None)),
                    false => MethodResponse::response(request.id, ResponsePayload::success(active), usize::MAX),
                }
            }
        }

        fn batch<'a>(&self, _: Batch<'a>) -> impl Future<Output = MethodResponse> + Send + 'a {
            std::future::ready(MethodResponse::notification())
        }

        fn notification<'a>(&self, _: Notification<'a>) -> impl Future<Output = MethodResponse> + Send + 'a {
            std::future::ready(MethodResponse::notification())
        }
    }

    fn request(method: &'static str) -> Request<'static> {
        Request::borrowed(method, None, Id::Number(1))
    }

    #[tokio::test]
    async fn a_call_of_a_known_method_is_listed_while_it_is_answered() {
        let active = Arc::new(Active::default());
        let layer = |service| ActiveCalls { service, methods: Arc::new(One), active: active.clone() };
        let service = RpcServiceBuilder::new().layer_fn(layer).service(Bottom(active.clone()));
        let answers = [service.call(request("known")).await, service.call(request("unknown")).await];
        let results = answers.map(|answer| answer.into_json().to_string());
        assert!(results[0].contains("\"result\":1") && results[1].contains("\"result\":0"), "{results:?}");
        assert!(active.list().is_empty());
        // One that nobody waits for any more has ended too.
        drop(service.call(request("known")));
        assert!(active.list().is_empty());
    }

    #[tokio::test]
    async fn calls_are_counted_by_method_and_end() {
        let metrics = CallMetrics::default();
        let layer = |service| CallCount { service, methods: Arc::new(One), metrics: metrics.clone() };
        let service = RpcServiceBuilder::new().layer_fn(CallLog).layer_fn(layer).service(Bottom(Arc::default()));
        for method in ["known", "known", "bad one", "made up"] {
            service.call(request(method)).await;
        }
        drop(service.call(request("known")));
        let count = |method, outcome| metrics.count(method, outcome);
        assert_eq!((count("known", Outcome::Ok), count("known", Outcome::Abandoned)), (2, 1));
        assert_eq!((count("(unknown)", Outcome::Ok), count("(unknown)", Outcome::Error)), (1, 1));
    }
}
