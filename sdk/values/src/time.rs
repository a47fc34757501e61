//! Moments as ISO 8601 text (`2026-11-23T05:30:00Z`), as in bitcoind's dump files.

const SECONDS_PER_DAY: u64 = 86_400;
/// The days of 400 years, after which the calendar repeats itself.
const DAYS_PER_ERA: u64 = 146_097;
/// The days from the first of March of the year 0 to the first of January 1970.
const EPOCH: u64 = 719_468;

/// The text of a moment in seconds since 1970.
///
/// ```
/// use outrigger_values::time::{from_iso8601, to_iso8601};
///
/// assert_eq!(to_iso8601(1_709_210_096), "2024-02-29T12:34:56Z");
/// assert_eq!(from_iso8601("2024-02-29T12:34:56Z"), Some(1_709_210_096));
/// assert_eq!(from_iso8601("yesterday"), None);
/// ```
pub fn to_iso8601(seconds: u64) -> String {
    let (days, rest) = (seconds / SECONDS_PER_DAY + EPOCH, seconds % SECONDS_PER_DAY);
    let (era, day) = (days / DAYS_PER_ERA, days % DAYS_PER_ERA);
    // Years begin in March here, so that the leap day is the last one.
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// The moment of a text, in seconds since 1970; none for other text and earlier moments.
pub fn from_iso8601(text: &str) -> Option<u64> {
    let number = |begin: usize, end: usize| text.get(begin..end)?.parse::<u64>().ok();
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let (year, month) = if month > 2 { (year, month - 3) } else { (year.checked_sub(1)?, month.checked_add(9)?) };
    let (era, year) = (year / 400, year % 400);
    let day = (153 * month + 2) / 5 + day.checked_sub(1)?;
    let days = (era * DAYS_PER_ERA + year * 365 + year / 4 - year / 100 + day).checked_sub(EPOCH)?;
    let moment = days * SECONDS_PER_DAY + hour * 3600 + minute * 60 + second;
    // Whatever is out of its range comes back as another text.
    (to_iso8601(moment) == text).then_some(moment)
}
