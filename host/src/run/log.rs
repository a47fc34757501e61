//! Starts the log. Its level can change while the host runs.

use std::mem;

use outrigger_plugins::log::OWN_LEVEL;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::reload::Error;

use crate::config::{ConfigError, LoadedConfig, LogFormat};

/// Replaces the log's filter, and returns the former one.
pub type SetLog = Box<dyn Fn(EnvFilter) -> Result<EnvFilter, Error> + Send + Sync>;

pub fn log_filter(loaded: &LoadedConfig) -> Result<EnvFilter, ConfigError> {
    let level = &loaded.config.log.level;
    // `EnvFilter` would read an unknown word as a target's name, and log everything of that target.
    let known = |directive: &str| {
        let name = directive.rsplit('=').next().unwrap_or(directive).trim();
        name.parse::<tracing_subscriber::filter::LevelFilter>().is_ok()
    };
    if let Some(unknown) = level.split(',').find(|directive| !known(directive)) {
        let reason = format!("'{unknown}' is not a level: use error, warn, info, debug, trace or off, or target=level");
        return Err(loaded.error("log.level", level, reason));
    }
    // Also let through the lines of plugins that have their own level. The filter reads a level's name in upper or lower case.
    let of_plugins = loaded.config.plugins.iter().filter_map(|plugin| plugin.log).max();
    let level = of_plugins.map_or_else(|| level.clone(), |most| format!("{level},{OWN_LEVEL}={most:?}"));
    EnvFilter::try_new(&level).map_err(|error| loaded.error("log.level", &level, error.to_string()))
}

/// Starts the log, and returns a function that changes its level.
pub fn init_log(loaded: &LoadedConfig) -> Result<SetLog, ConfigError> {
    let filter = log_filter(loaded)?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    Ok(match loaded.config.log.format {
        LogFormat::Text => {
            let builder = builder.with_ansi(false).with_filter_reloading();
            let handle = builder.reload_handle();
            builder.init();
            Box::new(move |mut filter| handle.modify(|current| mem::swap(current, &mut filter)).map(|()| filter))
        }
        LogFormat::Json => {
            let builder = builder.json().with_filter_reloading();
            let handle = builder.reload_handle();
            builder.init();
            Box::new(move |mut filter| handle.modify(|current| mem::swap(current, &mut filter)).map(|()| filter))
        }
    })
}
