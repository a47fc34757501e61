//! The Prometheus metrics: calls are counted as they end; the state of the parts is read at each scrape.

mod server;
mod standing;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

pub use server::MetricsServer;
pub use standing::Standing;

/// The upper bounds of the latency buckets, in seconds.
const SECONDS: [f64; 14] = [25e-6, 50e-6, 1e-4, 25e-5, 5e-4, 1e-3, 25e-4, 5e-3, 1e-2, 5e-2, 0.25, 1.0, 5.0, 30.0];

/// The label of unknown methods: clients must not create any number of labels.
const UNKNOWN: &str = "(unknown)";

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, EncodeLabelValue)]
pub enum Outcome {
    Ok,
    Error,
    /// Not begun, since the queue was full.
    Overloaded,
    /// The client went away, or the host stopped.
    Abandoned,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct OfCalls {
    method: String,
    outcome: Outcome,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct OfMethod {
    method: String,
}

#[derive(Clone)]
pub struct CallMetrics {
    calls: Family<OfCalls, Counter>,
    seconds: Family<OfMethod, Histogram, fn() -> Histogram>,
    in_flight: Gauge,
    /// The counters of each method. Replaced as a whole when a method is first called: calls only read it.
    known: Arc<ArcSwap<HashMap<String, Arc<Counters>>>>,
}

struct Counters {
    method: String,
    calls: Family<OfCalls, Counter>,
    seconds: Histogram,
    outcomes: [OnceLock<Counter>; Outcome::COUNT],
}

impl Outcome {
    const COUNT: usize = Self::Abandoned as usize + 1;
}

impl Default for CallMetrics {
    fn default() -> Self {
        let histogram: fn() -> Histogram = || Histogram::new(SECONDS);
        Self {
            calls: Family::default(),
            seconds: Family::new_with_constructor(histogram),
            in_flight: Gauge::default(),
            known: Arc::default(),
        }
    }
}

impl CallMetrics {
    /// Starts a call. `is_known` is called once per method, at its first call; unknown methods share counters.
    pub fn begin(&self, method: &str, is_known: impl FnOnce() -> bool) -> Meter {
        let in_flight = self.in_flight.clone();
        in_flight.inc();
        Meter {
            in_flight,
            counters: self.counters_of(method, is_known),
            began: Instant::now(),
            outcome: Outcome::Abandoned,
        }
    }

    fn counters_of(&self, method: &str, is_known: impl FnOnce() -> bool) -> Arc<Counters> {
        let counted = self.known.load().get(method).cloned();
        counted.unwrap_or_else(|| self.counters(if is_known() { method } else { UNKNOWN }))
    }

    fn counters(&self, method: &str) -> Arc<Counters> {
        if let Some(counters) = self.known.load().get(method) {
            return counters.clone();
        }
        let seconds = self.seconds.get_or_create(&OfMethod { method: method.to_owned() }).clone();
        let counters = Arc::new(Counters {
            method: method.to_owned(),
            calls: self.calls.clone(),
            seconds,
            outcomes: Default::default(),
        });
        self.known.rcu(|known| {
            let mut known = HashMap::clone(known);
            known.entry(method.to_owned()).or_insert_with(|| counters.clone());
            known
        });
        counters
    }

    /// How many calls of a method had this outcome.
    #[cfg(test)]
    pub fn count(&self, method: &str, outcome: Outcome) -> u64 {
        self.calls.get_or_create(&OfCalls { method: method.to_owned(), outcome }).get()
    }

    fn register(&self, registry: &mut Registry) {
        registry.register("calls", "Calls that have ended, by method and outcome", self.calls.clone());
        let help = "How long calls took, by method, long polls and rescans included";
        registry.register_with_unit("call", help, Unit::Seconds, self.seconds.clone());
        registry.register("calls_in_flight", "Calls in progress", self.in_flight.clone());
    }
}

/// A call in progress; it ends when this is dropped.
pub struct Meter {
    in_flight: Gauge,
    counters: Arc<Counters>,
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
        self.in_flight.dec();
        self.counters.ended(self.outcome, self.began.elapsed());
    }
}

impl Counters {
    fn ended(&self, outcome: Outcome, after: Duration) {
        self.seconds.observe(after.as_secs_f64());
        let of_calls = || OfCalls { method: self.method.clone(), outcome };
        if let Some(counter) = self.outcomes.get(outcome as usize) {
            counter.get_or_init(|| self.calls.get_or_create(&of_calls()).clone()).inc();
        }
    }
}

pub fn registry(calls: &CallMetrics, standing: Standing) -> Registry {
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
        let waiting = calls.begin("getblocktemplate", || true);
        calls.begin("getblockcount", || true).ended(Outcome::Ok);
        calls.begin("made up", || false).ended(Outcome::Error);
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
