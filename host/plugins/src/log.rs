//! `log/1`: plugins' lines in the host's log.

use outrigger_base::rate::Rate;
use outrigger_service::log::Level;
use outrigger_service::{Log, Result, Scope};
use outrigger_values::text::printable;

/// Longer lines are truncated.
const MAX_LINE_BYTES: usize = 4096;

/// How many lines of an untrusted plugin are logged per second; the rest are counted.
const LINES_PER_SECOND: u32 = 100;

pub struct LogService {
    plugin: String,
    /// `None`: without limit.
    rate: Option<Rate>,
    /// Whether the text of its panics is logged.
    tells_panics: bool,
}

impl LogService {
    pub fn new(plugin: &str, trusted: bool, tells_panics: bool) -> Self {
        let rate = (!trusted).then(|| Rate::per_second(LINES_PER_SECOND));
        Self { plugin: plugin.to_owned(), rate, tells_panics }
    }

    fn may_write(&self) -> bool {
        let plugin = self.plugin.as_str();
        let tell = |left_out| tracing::warn!(plugin, left_out, "the plugin writes too many lines; some were dropped");
        self.rate.as_ref().is_none_or(|rate| rate.allows(tell))
    }
}

impl Log for LogService {
    fn write(&self, _: Scope, level: Level, message: String) -> Result<()> {
        // Lines below the log level do not count.
        let is_written = match level {
            Level::Error => tracing::enabled!(tracing::Level::ERROR),
            Level::Warn => tracing::enabled!(tracing::Level::WARN),
            Level::Info => tracing::enabled!(tracing::Level::INFO),
            Level::Debug => tracing::enabled!(tracing::Level::DEBUG),
        };
        if !is_written || !self.may_write() {
            return Ok(());
        }
        let (plugin, message) = (self.plugin.as_str(), line(message));
        match level {
            Level::Error => tracing::error!(plugin, "{message}"),
            Level::Warn => tracing::warn!(plugin, "{message}"),
            Level::Info => tracing::info!(plugin, "{message}"),
            Level::Debug => tracing::debug!(plugin, "{message}"),
        }
        Ok(())
    }

    fn tells_panics(&self, _: Scope) -> Result<bool> {
        Ok(self.tells_panics)
    }
}

/// A message as one line of limited length: line ends and other control characters are escaped, so that it cannot
/// imitate another line or control a terminal.
fn line(mut message: String) -> String {
    cut(&mut message);
    let mut line = printable(&message).into_owned();
    cut(&mut line);
    line
}

fn cut(text: &mut String) {
    let end = (0..=MAX_LINE_BYTES.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    text.truncate(end.unwrap_or(0));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugin_that_is_not_trusted_has_a_rate() {
        let (trusted, other) = (LogService::new("trusted", true, false), LogService::new("x", false, false));
        assert!((0..2 * LINES_PER_SECOND).all(|_| trusted.may_write()));
        assert!(trusted.rate.is_none() && other.rate.is_some());
    }

    #[test]
    fn a_plugins_text_cannot_forge_lines() {
        let forged = "x\n2026-01-01T00:00:00Z ERROR outrigger_host: forged\r\u{1b}[2J";
        assert_eq!(line(forged.to_owned()), r"x\n2026-01-01T00:00:00Z ERROR outrigger_host: forged\r\u{1b}[2J");
        assert_eq!(line("\n".repeat(1 << 20)).len(), MAX_LINE_BYTES);
        assert!(line("ü".repeat(1 << 20)).len() <= MAX_LINE_BYTES);
    }
}
