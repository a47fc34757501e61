//! The outermost layer of jsonrpsee's `RpcServiceBuilder` above the router. It observes every call, over any transport,
//! alone or in a batch: it logs the call, counts it for metrics, lists it for `getrpcinfo`, and adds it to the audit log.

use std::future::Future;
use std::sync::Arc;

use futures_util::FutureExt;
use jsonrpsee::core::middleware::{Batch, BatchEntry, Notification, RpcServiceT};
use jsonrpsee::types::Request;
use outrigger_base::progress::Progress;
use outrigger_rpc::{Answer, Failure, RpcService, origin_of};
use outrigger_sdk::manifest::MethodSpec;
use tracing::{Instrument, Span};

use crate::active::{Active, ActiveCall};
use crate::audit::{AuditEntry, AuditLog};
use crate::methods::is_audited;
use crate::metrics::{CallMetrics, Meter, Outcome};

/// Longer ids and names of methods are truncated in the log.
const LOGGED_CHARS: usize = 64;

/// The specification of a method; `None` if it is unknown.
pub type Methods = Arc<dyn Fn(&str) -> Option<Arc<MethodSpec>> + Send + Sync>;

#[derive(Clone)]
pub struct Observe<S> {
    pub service: S,
    /// The known methods. Only these have labels of their own in the metrics.
    pub methods: Methods,
    pub metrics: CallMetrics,
    pub active: Arc<Active>,
    pub audit: Option<Arc<AuditLog>>,
}

/// A call in progress. If it is dropped without an answer, it was abandoned.
struct Observation {
    meter: Meter,
    _active: Option<ActiveCall>,
    /// Boxed to keep the state of each connection small, since few calls are in the audit log.
    audit: Option<Box<AuditEntry>>,
}

impl Observation {
    fn ended(self, answer: &Answer) {
        self.meter.ended(match answer {
            Ok(_) => Outcome::Ok,
            Err(Failure::Overloaded | Failure::Limited(_)) => Outcome::Overloaded,
            Err(_) => Outcome::Error,
        });
        if let Some(entry) = self.audit {
            entry.answered(answer);
        }
    }
}

fn logged(text: &str) -> String {
    text.chars().take(LOGGED_CHARS).collect()
}

/// The span of the log lines about a call. It has the call's id, method and user, but not its parameters, which may
/// contain keys.
fn span_of(request: &Request<'_>) -> Span {
    tracing::debug_span!(
        "call",
        id = logged(&request.id.to_string()),
        method = logged(request.method_name()),
        user = origin_of(request).map(|origin| &*origin.user)
    )
}

impl<S> Observe<S> {
    fn begin(&self, request: &mut Request<'_>) -> Observation {
        let name = request.method_name();
        tracing::debug!("call");
        let spec = (self.methods)(name);
        let progress = spec.as_ref().filter(|spec| spec.long_running).map(|_| Arc::<Progress>::default());
        let log = self.audit.as_ref().filter(|_| is_audited(name, || spec.clone()));
        let observation = Observation {
            meter: self.metrics.begin(name, spec.is_some()),
            audit: log.map(|log| Box::new(AuditEntry::begin(log, request))),
            _active: spec.map(|method| Active::begin(&self.active, method, progress.clone())),
        };
        if let Some(progress) = progress {
            request.extensions_mut().insert(progress);
        }
        observation
    }
}

impl<S: RpcService> RpcService for Observe<S> {
    type Dispatch = S::Dispatch;

    fn dispatcher(&self) -> &S::Dispatch {
        self.service.dispatcher()
    }
}

// This uses `inspect` instead of an `async` block: a block that awaits a future created outside of it stores that future
// twice, for every connection.
impl<S: RpcService> RpcServiceT for Observe<S> {
    type MethodResponse = Answer;
    type NotificationResponse = Answer;
    type BatchResponse = Vec<Answer>;

    fn call<'a>(&self, mut request: Request<'a>) -> impl Future<Output = Answer> + Send + 'a {
        let span = span_of(&request);
        let observation = span.in_scope(|| self.begin(&mut request));
        self.service.call(request).inspect(|answer| observation.ended(answer)).instrument(span)
    }

    fn batch<'a>(&self, mut batch: Batch<'a>) -> impl Future<Output = Vec<Answer>> + Send + 'a {
        let observe = |entry: &mut _| match entry {
            Ok(BatchEntry::Call(request)) => Some(span_of(request).in_scope(|| self.begin(request))),
            _ => None,
        };
        let observations: Vec<Observation> = batch.iter_mut().filter_map(observe).collect();
        self.service.batch(batch).inspect(|answers| {
            observations.into_iter().zip(answers).for_each(|(observation, answer)| observation.ended(answer));
        })
    }

    fn notification<'a>(&self, notification: Notification<'a>) -> impl Future<Output = Answer> + Send + 'a {
        self.service.notification(notification)
    }
}

#[cfg(test)]
mod tests {
    use jsonrpsee::core::middleware::RpcServiceBuilder;
    use jsonrpsee::types::Id;
    use outrigger_rpc::{Call, Dispatch, Gateway};
    use outrigger_values::RpcError;

    use super::*;

    /// The methods that do not begin with `un` are known.
    fn known(method: &str) -> Option<Arc<MethodSpec>> {
        let spec = format!(r#"{{"name": "{method}", "category": "Test", "help": ""}}"#);
        (!method.starts_with("un")).then(|| Arc::new(serde_json::from_str(&spec).unwrap()))
    }

    /// Answers with the number of calls in progress, or an error if the method begins with `bad`; `never` is not
    /// answered.
    struct Bottom(Arc<Active>);

    impl Dispatch for Bottom {
        async fn dispatch(&self, call: Call) -> Answer {
            match call.method.as_str() {
                "never" => std::future::pending().await,
                "bad" => Err(RpcError::misc("bad").into()),
                _ => Ok(bytes::Bytes::from(self.0.list().len().to_string()).into()),
            }
        }
    }

    fn request(method: &'static str) -> Request<'static> {
        Request::borrowed(method, None, Id::Number(1))
    }

    fn text(answer: &Answer) -> String {
        match answer {
            Ok(outrigger_rpc::ResultText::Bytes(text)) => String::from_utf8(text.to_vec()).unwrap(),
            _ => "-".to_owned(),
        }
    }

    #[tokio::test]
    async fn calls_alone_and_in_batches_are_listed_while_they_run_and_counted_once() {
        let (active, metrics) = (Arc::new(Active::default()), CallMetrics::default());
        let observe = |service| Observe {
            service,
            methods: Arc::new(known),
            metrics: metrics.clone(),
            active: active.clone(),
            audit: None,
        };
        let service =
            RpcServiceBuilder::new().layer_fn(observe).service(Gateway::new(Arc::new(Bottom(active.clone()))));
        let answers = [service.call(request("a")).await, service.call(request("unknown")).await];
        assert_eq!(answers.each_ref().map(text), ["1", "0"]);
        let batch = |methods: &[&'static str]| {
            Batch::from(methods.iter().map(|method| Ok(BatchEntry::Call(request(method)))).collect())
        };
        let answers = service.batch(batch(&["a", "a", "bad", "unknown"])).await;
        assert_eq!(answers.iter().map(text).collect::<Vec<_>>(), ["3", "3", "-", "3"]);
        // A dropped call ends, too.
        drop((service.call(request("a")), service.batch(batch(&["a", "never"]))));
        assert!(active.list().is_empty());
        let count = |method, outcome| metrics.count(method, outcome);
        assert_eq!((count("a", Outcome::Ok), count("a", Outcome::Abandoned)), (3, 2));
        assert_eq!((count("bad", Outcome::Error), count("never", Outcome::Abandoned)), (1, 1));
        assert_eq!(count("(unknown)", Outcome::Ok), 2);
    }
}
