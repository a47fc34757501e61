//! Paths of the configuration and of the command line. Parsing makes them absolute. Only the data directory stays as written: the command
//! line may replace its default, for which the home directory must be known.

use std::path::{MAIN_SEPARATOR, PathBuf};

use clap::builder::{PathBufValueParser, TypedValueParser};
use outrigger_base::paths::{absolute, absolute_text};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

/// Parses a path of the command line.
pub fn path_argument() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| absolute(&path))
}

/// Parses a program and its arguments. The program is a path, or a bare name in `PATH`.
pub(super) fn program<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let mut words = Vec::<String>::deserialize(deserializer)?;
    if let Some(program) = words.first_mut().filter(|program| program.contains(MAIN_SEPARATOR)) {
        *program = absolute_text(program).map_err(D::Error::custom)?;
    }
    Ok(words)
}
