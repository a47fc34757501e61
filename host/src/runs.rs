//! Calls of a batch that are answered together: what the layers do for a call, done for all of them at once.
//!
//! No audited method is answered together: what is has no effects.

use std::sync::Arc;

use futures_util::FutureExt;
use outrigger_rpc::{Answers, Call, Failure, Together};

use crate::active::Active;
use crate::layers::Methods;
use crate::metrics::{CallMetrics, Outcome};

/// Logs, counts and lists calls that are answered together.
pub struct Runs<T, M> {
    /// What answers them.
    pub next: Arc<T>,
    /// Which methods are ours.
    pub methods: Arc<M>,
    /// Where they are counted.
    pub metrics: CallMetrics,
    /// The list of calls that are being answered: calls of one method in a row are one entry.
    pub active: Arc<Active>,
}

impl<T: Together, M: Methods> Together for Runs<T, M> {
    fn takes(&self, method: &str) -> bool {
        self.next.takes(method)
    }

    fn answer(&self, calls: Vec<Call>) -> Answers {
        for call in &calls {
            tracing::debug!(user = &*call.origin.user, method = call.method, "call");
        }
        let names = || calls.iter().map(|call| call.method.as_str());
        let meter = self.metrics.begin_run(names(), |name| self.methods.spec(name).is_some());
        let mut last = None;
        let in_a_row = names().filter(|name| last.replace(*name) != Some(*name));
        let specs = in_a_row.filter_map(|name| self.methods.spec(name));
        let listed: Vec<_> = specs.map(|method| Active::begin(&self.active, method)).collect();
        let answers = self.next.answer(calls);
        Box::pin(answers.inspect(move |answers| {
            meter.ended(answers.iter().map(|answer| match answer {
                Ok(_) => Outcome::Ok,
                Err(Failure::Overloaded) => Outcome::Overloaded,
                Err(_) => Outcome::Error,
            }));
            drop(listed);
        }))
    }
}

#[cfg(test)]
mod tests {
    use outrigger_rpc::{Origin, Params};
    use outrigger_sdk::manifest::MethodSpec;
    use outrigger_values::RpcError;

    use super::*;

    /// Knows the methods that do not begin with `un`.
    struct Known;

    impl Methods for Known {
        fn spec(&self, method: &str) -> Option<Arc<MethodSpec>> {
            let spec = format!(r#"{{"name": "{method}", "category": "Test", "help": ""}}"#);
            (!method.starts_with("un")).then(|| Arc::new(serde_json::from_str(&spec).unwrap()))
        }
    }

    /// Answers with how many calls are being answered, and those that begin with `bad` with an error; never where there is one of
    /// `never`.
    struct Bottom(Arc<Active>);

    impl Together for Bottom {
        fn takes(&self, method: &str) -> bool {
            method != "no"
        }

        fn answer(&self, calls: Vec<Call>) -> Answers {
            let active = self.0.list().len();
            let answer = move |call: &Call| match call.method.starts_with("bad") {
                true => Err(Failure::Rpc(RpcError::misc("bad"))),
                false => Ok(bytes::Bytes::from(active.to_string()).into()),
            };
            match calls.iter().any(|call| call.method == "never") {
                true => Box::pin(std::future::pending()),
                false => Box::pin(std::future::ready(calls.iter().map(answer).collect())),
            }
        }
    }

    #[tokio::test]
    async fn calls_of_a_run_are_counted_each_and_listed_while_they_are_answered() {
        let (active, metrics) = (Arc::new(Active::default()), CallMetrics::default());
        let next = Arc::new(Bottom(active.clone()));
        let runs = Runs { next, methods: Arc::new(Known), metrics: metrics.clone(), active: active.clone() };
        let origin = Arc::new(Origin::of_user("a"));
        let calls = |names: &[&str]| {
            let call = |name: &&str| Call {
                method: (*name).to_owned(),
                params: Params::none(),
                origin: origin.clone(),
                may_stream: false,
            };
            names.iter().map(call).collect()
        };
        let answers = runs.answer(calls(&["a", "a", "bad", "unknown", "a"])).await;
        let text = |answer: &Result<outrigger_rpc::ResultText, Failure>| match answer {
            Ok(outrigger_rpc::ResultText::Bytes(text)) => String::from_utf8(text.to_vec()).unwrap(),
            _ => "-".to_owned(),
        };
        assert_eq!(answers.iter().map(text).collect::<Vec<_>>(), ["3", "3", "-", "3", "3"]);
        assert!(active.list().is_empty());
        drop(runs.answer(calls(&["a", "never"])));
        assert!(active.list().is_empty());
        let count = |method, outcome| metrics.count(method, outcome);
        assert_eq!((count("a", Outcome::Ok), count("a", Outcome::Abandoned)), (3, 1));
        assert_eq!((count("bad", Outcome::Error), count("(unknown)", Outcome::Ok)), (1, 1));
        assert!(runs.takes("a") && !runs.takes("no"));
    }
}
