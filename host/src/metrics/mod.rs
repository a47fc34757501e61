//! The Prometheus metrics: a call is counted when it ends; the state of the host's parts is read at each scrape.

mod server;
mod standing;

use std::time::Instant;

use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

pub use server::{Pages, serve};
pub use standing::Standing;

/// The upper bounds of the latency buckets, in seconds.
const SECONDS: [f64; 14] = [25e-6, 50e-6, 1e-4, 25e-5, 5e-4, 1e-3, 25e-4, 5e-3, 1e-2, 5e-2, 0.25, 1.0, 5.0, 30.0];

/// The label of all unknown methods, so that clients cannot create any number of labels.
const UNKNOWN: &str = "(unknown)";

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, EncodeLabelValue)]
pub enum Outcome {
    Ok,
    Error,
    /// The call was not started: the queue was full, or the user's limit was reached.
    Overloaded,
    /// The client went away, or the host stopped.
    Abandoned,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct CallLabels {
    method: String,
    outcome: Outcome,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct MethodLabels {
    method: String,
}

#[derive(Clone)]
pub struct CallMetrics {
    calls: Family<CallLabels, Counter>,
    seconds: Family<MethodLabels, Histogram, fn() -> Histogram>,
    in_flight: Gauge,
}

impl Default for CallMetrics {
    fn default() -> Self {
        let histogram: fn() -> Histogram = || Histogram::new(SECONDS);
        Self { calls: Family::default(), seconds: Family::new_with_constructor(histogram), in_flight: Gauge::default() }
    }
}

impl CallMetrics {
    /// Counts a call as in progress. Unknown methods share a label.
    pub fn begin(&self, method: &str, is_known: bool) -> Meter {
        self.in_flight.inc();
        let method = if is_known { method } else { UNKNOWN }.to_owned();
        Meter { metrics: self.clone(), method, began: Instant::now(), outcome: Outcome::Abandoned }
    }

    /// How many calls of a method had this outcome.
    #[cfg(test)]
    pub fn count(&self, method: &str, outcome: Outcome) -> u64 {
        self.calls.get_or_create(&CallLabels { method: method.to_owned(), outcome }).get()
    }

    fn register(&self, registry: &mut Registry) {
        registry.register("calls", "Calls that have ended, by method and outcome", self.calls.clone());
        let help = "Duration of calls by method, including long polls and rescans";
        registry.register_with_unit("call", help, Unit::Seconds, self.seconds.clone());
        registry.register("calls_in_flight", "Calls in progress", self.in_flight.clone());
    }
}

/// A call in progress, which is counted when this is dropped: as abandoned, unless [`Meter::ended`] is called.
pub struct Meter {
    metrics: CallMetrics,
    method: String,
    began: Instant,
    outcome: Outcome,
}

impl Meter {
    pub fn ended(mut self, outcome: Outcome) {
        self.outcome = outcome;
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.metrics.in_flight.dec();
        let (method, seconds) = (std::mem::take(&mut self.method), self.began.elapsed().as_secs_f64());
        self.metrics.seconds.get_or_create(&MethodLabels { method: method.clone() }).observe(seconds);
        self.metrics.calls.get_or_create(&CallLabels { method, outcome: self.outcome }).inc();
    }
}

fn registry(calls: &CallMetrics, standing: Standing) -> Registry {
    let mut registry = Registry::with_prefix("outrigger");
    calls.register(&mut registry);
    registry.register_collector(Box::new(standing));
    registry
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_counted_once_when_it_ends() {
        let calls = CallMetrics::default();
        let mut registry = Registry::default();
        calls.register(&mut registry);
        let waiting = calls.begin("getblocktemplate", true);
        calls.begin("getblockcount", true).ended(Outcome::Ok);
        calls.begin("made up", false).ended(Outcome::Error);
        let text = || {
            let mut text = String::new();
            prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
            text
        };
        let has = |line: &str| text().lines().any(|found| found == line);
        assert!(has("calls_in_flight 1"), "{}", text());
        assert!(has("calls_total{method=\"getblockcount\",outcome=\"Ok\"} 1"), "{}", text());
        assert!(has("calls_total{method=\"(unknown)\",outcome=\"Error\"} 1"), "{}", text());
        assert!(has("call_seconds_count{method=\"getblockcount\"} 1"), "{}", text());
        drop(waiting);
        assert!(has("calls_in_flight 0"), "{}", text());
        assert!(has("calls_total{method=\"getblocktemplate\",outcome=\"Abandoned\"} 1"), "{}", text());
    }
}
