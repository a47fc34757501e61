//! `metrics/1`: the metrics of a plugin, over all its instances.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use outrigger_service::metrics::{MAX_ITEMS, MAX_NAME, MAX_SERIES, MAX_TEXT, Measure, Metrics, Sample};
use outrigger_service::{ErrorKind, Result, Scope, ServiceError};
use parking_lot::Mutex;

pub type Labels = Vec<(String, String)>;

#[derive(Clone, PartialEq, Debug)]
pub enum Series {
    Counter(u64),
    Gauge(i64),
    Histogram {
        /// The upper bound of each bucket, and the number of values above the bound before and up to this one.
        buckets: Vec<(u64, u64)>,
        sum: u64,
        count: u64,
    },
}

impl Series {
    fn new(measure: &Measure) -> Self {
        match measure {
            Measure::Count { .. } => Self::Counter(0),
            Measure::Level { .. } => Self::Gauge(0),
            Measure::Observed { bounds, .. } => {
                Self::Histogram { buckets: bounds.iter().map(|bound| (*bound, 0)).collect(), sum: 0, count: 0 }
            }
        }
    }

    /// Adds a sample. Returns false if it is of another kind.
    fn take(&mut self, measure: &Measure) -> bool {
        match (self, measure) {
            (Self::Counter(count), Measure::Count { by }) => *count = count.saturating_add(*by),
            (Self::Gauge(level), Measure::Level { value }) => *level = *value,
            (Self::Histogram { buckets, sum, count }, Measure::Observed { value, .. }) => {
                if let Some((_, sizes)) = buckets.iter_mut().find(|(bound, _)| value <= bound) {
                    *sizes += 1;
                }
                (*sum, *count) = (sum.saturating_add(*value), *count + 1);
            }
            _ => return false,
        }
        true
    }
}

#[derive(Clone, Debug)]
pub struct Metric {
    pub help: String,
    pub series: BTreeMap<Labels, Series>,
}

/// The suffixes that Prometheus appends to names.
const ENDINGS: [&str; 6] = ["_total", "_sum", "_count", "_bucket", "_created", "_info"];

#[derive(Default)]
pub struct PluginMetrics {
    metrics: Mutex<BTreeMap<String, Metric>>,
    /// The number of samples of new series beyond [`MAX_SERIES`].
    dropped: Mutex<u64>,
}

impl PluginMetrics {
    /// The metrics by name, and how many samples were dropped.
    pub fn read(&self) -> (BTreeMap<String, Metric>, u64) {
        (self.metrics.lock().clone(), *self.dropped.lock())
    }

    fn add(&self, sample: Sample) -> Result<()> {
        check(&sample)?;
        let Sample { name, help, mut labels, measure } = sample;
        labels.sort();
        let mut metrics = self.metrics.lock();
        let is_full = metrics.values().map(|metric| metric.series.len()).sum::<usize>() >= MAX_SERIES;
        let is_known = metrics.get(&name).is_some_and(|metric| metric.series.contains_key(&labels));
        if is_full && !is_known {
            *self.dropped.lock() += 1;
            return Ok(());
        }
        let metric = metrics.entry(name).or_insert_with(|| Metric { help, series: BTreeMap::new() });
        let mut first = metric.series.values().next().cloned().unwrap_or_else(|| Series::new(&measure));
        if !first.take(&measure) {
            return Err(malformed("the metric is of another kind"));
        }
        match metric.series.entry(labels) {
            Entry::Vacant(vacant) => vacant.insert(Series::new(&measure)).take(&measure),
            Entry::Occupied(mut known) => known.get_mut().take(&measure),
        };
        Ok(())
    }
}

fn malformed(detail: &str) -> ServiceError {
    ServiceError::new(ErrorKind::Malformed, detail)
}

fn check(sample: &Sample) -> Result<()> {
    let is_name = |name: &str| {
        let good = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        (1..=MAX_NAME).contains(&name.len())
            && name.bytes().all(good)
            && !name.starts_with(|first: char| first.is_ascii_digit())
    };
    let mut names = std::iter::once(&sample.name).chain(sample.labels.iter().map(|(name, _)| name));
    if !names.all(|name| is_name(name)) {
        return Err(malformed("a name has 1 to 64 letters, digits and '_', and no digit first"));
    }
    let reserved = |name: &str| name.starts_with("__") || name == "le";
    let is_twice =
        |(at, (name, _)): (usize, &(String, String))| sample.labels.iter().take(at).any(|(one, _)| one == name);
    if sample.labels.iter().any(|(name, _)| reserved(name)) || sample.labels.iter().enumerate().any(is_twice) {
        return Err(malformed("a label is given twice, or its name is reserved by Prometheus"));
    }
    if sample.help.chars().any(char::is_control) || ENDINGS.iter().any(|ending| sample.name.ends_with(ending)) {
        return Err(malformed("a help has control characters, or a name ends in a suffix of Prometheus"));
    }
    let mut texts = std::iter::once(&sample.help).chain(sample.labels.iter().map(|(_, value)| value));
    if texts.any(|text| text.len() > MAX_TEXT) || sample.labels.len() > MAX_ITEMS {
        return Err(malformed("a help or a label is too long, or there are too many labels"));
    }
    match &sample.measure {
        Measure::Observed { bounds, .. }
            if bounds.len() > MAX_ITEMS || !bounds.is_sorted_by(|one, next| one < next) =>
        {
            Err(malformed("a histogram has at most 20 bounds, in ascending order"))
        }
        _ => Ok(()),
    }
}

impl Metrics for PluginMetrics {
    fn record(&self, _: Scope, samples: Vec<Sample>) -> Result<()> {
        samples.into_iter().try_for_each(|sample| self.add(sample))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(name: &str, label: &str, measure: Measure) -> Sample {
        let labels = vec![("kind".to_owned(), label.to_owned())];
        Sample { name: name.to_owned(), help: "Help".into(), labels, measure }
    }

    #[test]
    fn samples_add_up_and_a_metric_has_one_kind() {
        let metrics = PluginMetrics::default();
        let observed = |value| Measure::Observed { value, bounds: vec![10, 100] };
        for sample in [
            sample("paid", "a", Measure::Count { by: 2 }),
            sample("paid", "a", Measure::Count { by: 3 }),
            sample("held", "a", Measure::Level { value: -7 }),
            sample("size", "a", observed(10)),
            sample("size", "a", observed(11)),
            sample("size", "a", observed(1000)),
        ] {
            metrics.add(sample).unwrap();
        }
        let other = metrics.add(sample("paid", "b", Measure::Level { value: 1 }));
        assert_eq!(other.unwrap_err().kind, ErrorKind::Malformed);
        let (all, dropped) = metrics.read();
        let series = |name: &str| all[name].series.values().next().unwrap().clone();
        assert_eq!((series("paid"), series("held"), dropped), (Series::Counter(5), Series::Gauge(-7), 0));
        assert_eq!(series("size"), Series::Histogram { buckets: vec![(10, 1), (100, 1)], sum: 1021, count: 3 });
        assert_eq!(all["paid"].series.len(), 1);
    }

    #[test]
    fn series_beyond_the_bound_are_dropped_and_counted() {
        let metrics = PluginMetrics::default();
        for number in 0..MAX_SERIES + 5 {
            metrics.add(sample("paid", &number.to_string(), Measure::Count { by: 1 })).unwrap();
        }
        metrics.add(sample("paid", "0", Measure::Count { by: 1 })).unwrap();
        let (all, dropped) = metrics.read();
        assert_eq!((all["paid"].series.len(), dropped), (MAX_SERIES, 5));
        assert_eq!(all["paid"].series[&vec![("kind".to_owned(), "0".to_owned())]], Series::Counter(2));
    }

    #[test]
    fn invalid_names_labels_and_texts_are_refused() {
        let metrics = PluginMetrics::default();
        for name in ["", "1a", "a-b", "a b", "ü", &"a".repeat(MAX_NAME + 1)] {
            assert!(metrics.add(sample(name, "", Measure::Count { by: 1 })).is_err(), "{name}");
        }
        for labels in [vec![("le", "1")], vec![("__name__", "x")], vec![("a", "1"), ("a", "2")]] {
            let labels = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            assert!(metrics.add(Sample { labels, ..sample("a", "", Measure::Count { by: 1 }) }).is_err());
        }
        let help = "x\noutrigger_chain_height 0".to_owned();
        assert!(metrics.add(Sample { help, ..sample("a", "", Measure::Count { by: 1 }) }).is_err());
        assert!(metrics.add(sample("a_total", "", Measure::Count { by: 1 })).is_err());
        let long = metrics.add(sample("a", &"v".repeat(MAX_TEXT + 1), Measure::Count { by: 1 }));
        assert_eq!(long.unwrap_err().kind, ErrorKind::Malformed);
        for bounds in [vec![2, 1], vec![1, 1], (0..21).collect()] {
            assert!(metrics.add(sample("a", "", Measure::Observed { value: 1, bounds })).is_err());
        }
        assert!(metrics.read().0.is_empty());
    }
}
