//! `log/1`: plugins' lines in the host's log.

use outrigger_sdk::service::log::Level;
use outrigger_sdk::service::{Log, Result, Scope};

/// The longest line that is written, in bytes; the rest is cut.
const MAX_LINE_BYTES: usize = 4096;

/// The log of one plugin.
pub struct LogService {
    /// Whose lines they are.
    pub plugin: String,
}

impl Log for LogService {
    fn write(&self, _: Scope, level: Level, mut message: String) -> Result<()> {
        let cut = (0..=MAX_LINE_BYTES.min(message.len())).rev().find(|at| message.is_char_boundary(*at));
        message.truncate(cut.unwrap_or(0));
        let plugin = self.plugin.as_str();
        match level {
            Level::Error => tracing::error!(plugin, "{message}"),
            Level::Warn => tracing::warn!(plugin, "{message}"),
            Level::Info => tracing::info!(plugin, "{message}"),
            Level::Debug => tracing::debug!(plugin, "{message}"),
        }
        Ok(())
    }
}
