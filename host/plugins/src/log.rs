//! `log/1`: plugins' lines in the host's log.

use outrigger_base::rate::Rate;
use outrigger_service::log::Level;
use outrigger_service::{Log, Result, Scope};
use outrigger_values::text::printable;

use crate::LogLevel;

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
    /// The least level of its lines; `None` leaves it to the host's filter.
    least: Option<LogLevel>,
}

/// The target of lines of plugins with their own level. The host's filter lets it through.
pub const OWN_LEVEL: &str = "outrigger_plugin";

impl LogService {
    pub fn new(plugin: &str, trusted: bool, tells_panics: bool, least: Option<LogLevel>) -> Self {
        let rate = (!trusted).then(|| Rate::per_second(LINES_PER_SECOND));
        Self { plugin: plugin.to_owned(), rate, tells_panics, least }
    }

    fn is_written(&self, level: Level) -> bool {
        let (own, of_host) = match level {
            Level::Error => (LogLevel::Error, tracing::enabled!(tracing::Level::ERROR)),
            Level::Warn => (LogLevel::Warn, tracing::enabled!(tracing::Level::WARN)),
            Level::Info => (LogLevel::Info, tracing::enabled!(tracing::Level::INFO)),
            Level::Debug => (LogLevel::Debug, tracing::enabled!(tracing::Level::DEBUG)),
        };
        self.least.map_or(of_host, |least| least >= own)
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
        if !self.is_written(level) || !self.may_write() {
            return Ok(());
        }
        let (plugin, message) = (self.plugin.as_str(), line(message));
        match (level, self.least.is_some()) {
            (Level::Error, false) => tracing::error!(plugin, "{message}"),
            (Level::Warn, false) => tracing::warn!(plugin, "{message}"),
            (Level::Info, false) => tracing::info!(plugin, "{message}"),
            (Level::Debug, false) => tracing::debug!(plugin, "{message}"),
            (Level::Error, true) => tracing::error!(target: OWN_LEVEL, plugin, "{message}"),
            (Level::Warn, true) => tracing::warn!(target: OWN_LEVEL, plugin, "{message}"),
            (Level::Info, true) => tracing::info!(target: OWN_LEVEL, plugin, "{message}"),
            (Level::Debug, true) => tracing::debug!(target: OWN_LEVEL, plugin, "{message}"),
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
    fn a_plugin_with_a_level_of_its_own_writes_no_lines_below_it() {
        let service = LogService::new("x", true, false, Some(LogLevel::Info));
        let written = [Level::Error, Level::Warn, Level::Info, Level::Debug].map(|level| service.is_written(level));
        assert_eq!(written, [true, true, true, false]);
    }

    #[test]
    fn a_plugins_text_cannot_forge_lines() {
        let forged = "x\n2026-01-01T00:00:00Z ERROR outrigger_host: forged\r\u{1b}[2J";
        assert_eq!(line(forged.to_owned()), r"x\n2026-01-01T00:00:00Z ERROR outrigger_host: forged\r\u{1b}[2J");
        assert_eq!(line("\n".repeat(1 << 20)).len(), MAX_LINE_BYTES);
        assert!(line("ü".repeat(1 << 20)).len() <= MAX_LINE_BYTES);
    }
}
