//! `metrics/1`: a plugin's metrics, which the host publishes on `/metrics` as `outrigger_plugin_ID_NAME`.
//!
//! The example `metrics` of the SDK shows it in use.

use super::service;
use crate::wire::{wire_enum, wire_struct};

/// The most series of a plugin (a metric with a set of labels). The host drops samples of further series and counts them.
pub const MAX_SERIES: usize = 100;

/// The longest name of a metric or a label, in bytes.
pub const MAX_NAME: usize = 64;

/// The longest help, and the longest value of a label, in bytes.
pub const MAX_TEXT: usize = 200;

/// The most labels of a sample, and the most buckets of a histogram.
pub const MAX_ITEMS: usize = 20;

wire_enum! {
    /// The kind of a metric, and a measured value.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub enum Measure {
        /// A counter. The host appends `_total` to its name.
        Count {
            /// The number to add.
            by: u64,
        } = 0,
        /// A gauge: the current value.
        Level {
            /// The value.
            value: i64,
        } = 1,
        /// A histogram: one observation.
        Observed {
            /// The observed value.
            value: u64,
            /// The upper bounds of the buckets, in ascending order. The first sample of the series sets them.
            bounds: Vec<u64>,
        } = 2,
    }
}

wire_struct! {
    /// A sample of a metric. The metric's first sample sets its kind and help.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct Sample {
        /// The metric's name: letters, digits and `_`, not starting with a digit. It should include the unit.
        pub name: String,
        /// The help text for people.
        pub help: String,
        /// Names and values of labels. Names follow the rules for metrics.
        pub labels: Vec<(String, String)>,
        /// The kind of a metric, and a measured value.
        pub measure: Measure,
    }
}

service! {
    /// The plugin's metrics. The host keeps them until it stops, also across reloads of the plugin.
    pub trait Metrics = "metrics/1" {
        /// Records samples. Fails with `Malformed` at the first invalid sample, or the first of another kind than the metric's.
        /// The samples before it are recorded.
        fn record(samples: Vec<Sample>) -> ();
    }
}
