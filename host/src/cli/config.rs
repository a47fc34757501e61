//! `outrigger config`: configuration files.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;

use super::{EXIT_BAD_CONFIGURATION, refused, show};
use crate::config::former::migrate;

/// What to do with a configuration file.
#[derive(Subcommand)]
pub enum ConfigCommand {
    /// Prints the file with each setting that only earlier versions had replaced by a comment.
    Migrate {
        /// The file, which is not changed.
        file: PathBuf,
    },
}

pub fn run(ConfigCommand::Migrate { file }: &ConfigCommand) -> ExitCode {
    let name = file.display().to_string();
    let text = std::fs::read_to_string(file).map_err(|error| format!("{name}: {error}"));
    match text.and_then(|text| migrate(&name, &text).map_err(|error| error.to_string())) {
        Ok(migrated) => show(migrated.strip_suffix('\n').unwrap_or(&migrated)),
        Err(error) => refused(&error, EXIT_BAD_CONFIGURATION),
    }
}
