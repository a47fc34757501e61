//! `metrics/1`: a plugin's own metrics, beside the host's on `/metrics`, as `outrigger_plugin_ID_NAME`.
//!
//! The example `metrics` of the SDK shows it in use.

use super::service;
use crate::wire::{wire_enum, wire_struct};

/// The most series of a plugin: metrics, each with each set of its labels. Samples of further ones are dropped and counted.
pub const MAX_SERIES: usize = 100;

/// The longest name of a metric or a label, in bytes.
pub const MAX_NAME: usize = 64;

/// The longest help, and the longest value of a label, in bytes.
pub const MAX_TEXT: usize = 200;

/// The most labels of a sample, and the most buckets of a histogram.
pub const MAX_ITEMS: usize = 20;

wire_enum! {
    /// What was measured.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub enum Measure {
        /// Something happened. The metric is a counter, whose name on the page ends with `_total`.
        Count {
            /// How often.
            by: u64,
        } = 0,
        /// Something has a value. The metric is a gauge.
        Level {
            /// The value.
            value: i64,
        } = 1,
        /// Something of a size happened. The metric is a histogram.
        Observed {
            /// The size.
            value: u64,
            /// The upper bounds of the buckets, in ascending order. Those of the series' first sample hold.
            bounds: Vec<u64>,
        } = 2,
    }
}

wire_struct! {
    /// A sample of a metric. Its kind and its help are those of the metric's first sample.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct Sample {
        /// The metric's name: letters, digits and `_`, and no digit first. It says the unit.
        pub name: String,
        /// What it is, for people.
        pub help: String,
        /// Names and values of labels. The names are as those of metrics.
        pub labels: Vec<(String, String)>,
        /// What was measured.
        pub measure: Measure,
    }
}

service! {
    /// The plugin's metrics. They last as long as the host, also over a reload of the plugin.
    pub trait Metrics as MetricsClient = "metrics/1" {
        /// Records samples. Fails with `Malformed` at the first one that is not as this page says, or of another kind than the metric's
        /// first one; those before it are recorded.
        #[since(1)]
        fn record(samples: Vec<Sample>) -> ();
    }
}
