//! The two exposition formats: OpenMetrics, and the Prometheus text format.

use std::fmt;

use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    OpenMetrics,
    /// The Prometheus text format 0.0.4, which every scraper reads.
    Prometheus,
}

const OPEN_METRICS: &str = "application/openmetrics-text";
const PLAIN: &str = "text/plain";

impl Format {
    /// The format for these `Accept` headers: OpenMetrics if it is listed with at least the weight of `text/plain`.
    pub fn accepted<'a>(accept: impl Iterator<Item = &'a str>) -> Self {
        let (mut open, mut plain) = (0.0, 0.0_f32);
        for range in accept.flat_map(|line| line.split(',')) {
            let mut parts = range.split(';').map(str::trim);
            let kind = parts.next().unwrap_or_default();
            let weight = parts.find_map(|part| part.strip_prefix("q=")).map_or(Some(1.0), |q| q.parse().ok());
            let best = match kind {
                _ if kind.eq_ignore_ascii_case(OPEN_METRICS) => &mut open,
                _ if kind.eq_ignore_ascii_case(PLAIN) => &mut plain,
                _ => continue,
            };
            *best = best.max(weight.unwrap_or(0.0));
        }
        if open > 0.0 && open >= plain { Self::OpenMetrics } else { Self::Prometheus }
    }

    pub fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }

    pub fn write(self, registry: &Registry) -> Result<String, fmt::Error> {
        let mut text = String::new();
        encode(&mut text, registry)?;
        Ok(match self {
            Self::OpenMetrics => text,
            Self::Prometheus => to_prometheus(&text),
        })
    }
}

/// Converts OpenMetrics text to the Prometheus format: `HELP` and `TYPE` of a counter get the `_total` name of its
/// samples, and `UNIT` and `EOF` lines are dropped.
fn to_prometheus(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let is_counter = |line: &str| line.strip_prefix("# TYPE ").is_some_and(|rest| rest.ends_with(" counter"));
        let described = match line {
            _ if line.starts_with("# UNIT ") || line == "# EOF" => continue,
            _ if is_counter(line) => line.strip_prefix("# TYPE "),
            _ if lines.peek().is_some_and(|next| is_counter(next)) => line.strip_prefix("# HELP "),
            _ => None,
        };
        match described.and_then(|described| described.split_once(' ')) {
            Some((name, rest)) => {
                let kind = line.get(..7).unwrap_or_default();
                out.extend([kind, name, "_total ", rest]);
            }
            None => out.push_str(line),
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use prometheus_client::metrics::counter::Counter;
    use prometheus_client::metrics::gauge::Gauge;
    use prometheus_client::registry::Unit;

    use super::*;

    #[test]
    fn metrics_open_metrics_is_for_those_who_accept_it() {
        let of = |accept: &[&str]| Format::accepted(accept.iter().copied());
        for plain in [
            &[][..],
            &["*/*"],
            &["text/plain"],
            &["text/plain;version=0.0.4;q=0.5, application/openmetrics-text;q=0.4"],
            &["application/openmetrics-text; q=0"],
            &["application/json", "text/html"],
        ] {
            assert_eq!(of(plain), Format::Prometheus, "{plain:?}");
        }
        for open in [
            &[
                "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
            ][..],
            &["text/html", "application/OpenMetrics-Text"],
        ] {
            assert_eq!(of(open), Format::OpenMetrics, "{open:?}");
        }
    }

    #[test]
    fn metrics_prometheus_format_describes_counters_by_their_total_name() {
        let mut registry = Registry::with_prefix("o");
        registry.register("calls", "Calls", Counter::<u64>::default());
        registry.register_with_unit("busy", "Time", Unit::Seconds, Counter::<u64>::default());
        registry.register("open", "Open", Gauge::<i64>::default());
        let expected = "# HELP o_calls_total Calls.\n# TYPE o_calls_total counter\no_calls_total 0\n\
            # HELP o_busy_seconds_total Time.\n# TYPE o_busy_seconds_total counter\no_busy_seconds_total 0\n\
            # HELP o_open Open.\n# TYPE o_open gauge\no_open 0\n";
        assert_eq!(Format::Prometheus.write(&registry).unwrap(), expected);
        assert!(Format::OpenMetrics.write(&registry).unwrap().ends_with("# EOF\n"));
    }
}
