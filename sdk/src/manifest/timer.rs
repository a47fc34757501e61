//! Timers of a plugin: times at which it receives [`Event::Timer`].

use std::time::Duration;

#[cfg(doc)]
use outrigger_service::events::Event;
use outrigger_values::text::printable;
use serde::Deserialize;

use super::ManifestError;

/// The longest time between two events of a timer, in seconds: 30 days.
const MAX_EVERY: u64 = 30 * DAY;

/// A day, in seconds.
const DAY: u64 = 86_400;

/// A timer. It has `every` or `at`.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimerSpec {
    /// The name of the timer in its events.
    pub name: String,
    /// The interval in seconds, counted from the plugin's start.
    #[serde(default)]
    pub every: Option<u64>,
    /// The time of each day, in UTC, such as `03:30`.
    #[serde(default)]
    pub at: Option<String>,
}

impl TimerSpec {
    pub(super) fn check(&self) -> Result<(), ManifestError> {
        let is_good = match (&self.every, &self.at) {
            (Some(every), None) => (1..=MAX_EVERY).contains(every),
            (None, Some(at)) => minutes(at).is_some(),
            _ => false,
        };
        if is_good {
            return Ok(());
        }
        let name = printable(&self.name);
        Err(ManifestError(format!(
            "the timer '{name}' must have 'every', 1 to {MAX_EVERY} seconds, or 'at', a time such as \"03:30\""
        )))
    }

    /// The time from `now`, in Unix seconds, to the next event.
    pub fn next(&self, now: u64) -> Duration {
        let until = match (&self.every, &self.at) {
            (Some(every), _) => *every,
            (None, at) => {
                let at = at.as_deref().and_then(minutes).unwrap_or_default() * 60;
                match (DAY + at - now % DAY) % DAY {
                    0 => DAY,
                    until => until,
                }
            }
        };
        Duration::from_secs(until)
    }
}

/// Parses a time such as `03:30` into minutes since midnight.
fn minutes(text: &str) -> Option<u64> {
    let (hours, minutes) = text.split_once(':')?;
    let number = |text: &str, below: u64| {
        let number = Some(text).filter(|text| text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit()))?;
        number.parse::<u64>().ok().filter(|number| *number < below)
    };
    Some(number(hours, 24)? * 60 + number(minutes, 60)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timer(every: Option<u64>, at: Option<&str>) -> TimerSpec {
        TimerSpec { name: "t".into(), every, at: at.map(str::to_owned) }
    }

    #[test]
    fn a_timer_has_either_an_interval_or_a_time_of_the_day() {
        for good in [timer(Some(1), None), timer(Some(MAX_EVERY), None), timer(None, Some("23:59"))] {
            assert!(good.check().is_ok(), "{good:?}");
        }
        for bad in [
            timer(None, None),
            timer(Some(1), Some("01:00")),
            timer(Some(0), None),
            timer(Some(MAX_EVERY + 1), None),
            timer(None, Some("24:00")),
            timer(None, Some("1:00")),
            timer(None, Some("01:60")),
            timer(None, Some("+1:00")),
        ] {
            assert!(bad.check().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn the_next_time_is_today_or_tomorrow() {
        let at = timer(None, Some("03:30"));
        let next = |now: u64| at.next(1000 * DAY + now).as_secs();
        assert_eq!([next(0), next(3 * 3600), next(3 * 3600 + 1800)], [12_600, 1800, DAY]);
        assert_eq!(next(4 * 3600), DAY - 1800);
        assert_eq!(timer(Some(7), None).next(99).as_secs(), 7);
    }
}
