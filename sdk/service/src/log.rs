//! `log/1`: writes a plugin's lines to the host's log. A line must not contain secrets.
//!
//! The example `log` of the SDK shows it in use.

use super::service;
use crate::wire::wire_enum;

wire_enum! {
    /// The level of a line.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
    pub enum Level {
        /// An operation failed.
        Error = 0,
        /// A problem that does not stop the operation.
        Warn = 1,
        /// Information for operators.
        Info = 2,
        /// Information for developers.
        Debug = 3,
    }
}

service! {
    /// The host's log.
    pub trait Log = "log/1" {
        /// Writes one line, with the plugin's name.
        fn write(level: Level, message: String) -> ();

        /// Whether the plugin should log the message of a panic, not only its location. The message may contain a secret, so this is false
        /// for a plugin that may use private keys or wallets, unless the configuration allows it.
        fn tells_panics() -> bool;
    }
}
