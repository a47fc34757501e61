//! Collects a plugin's metrics.

use std::sync::Mutex;

use outrigger_service::metrics::Sample;
use outrigger_service::{Metrics, Result, Scope};

use super::lock;

/// Keeps the samples without checks.
#[derive(Default)]
pub struct StubMetrics(Mutex<Vec<Sample>>);

impl StubMetrics {
    /// The samples since the last call.
    pub fn take(&self) -> Vec<Sample> {
        std::mem::take(&mut lock(&self.0))
    }
}

impl Metrics for StubMetrics {
    fn record(&self, _: Scope, samples: Vec<Sample>) -> Result<()> {
        lock(&self.0).extend(samples);
        Ok(())
    }
}
