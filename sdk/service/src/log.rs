//! `log/1`: a plugin's lines in the host's log. Never put a secret in one.
//!
//! The example `log` of the SDK shows it in use.

use super::service;
use crate::wire::wire_enum;

wire_enum! {
    /// How much a line matters.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
    pub enum Level {
        /// Something failed that should not.
        Error = 0,
        /// Something is off, but goes on.
        Warn = 1,
        /// What an operator wants to read.
        Info = 2,
        /// What a developer wants to read.
        Debug = 3,
    }
}

service! {
    /// The host's log.
    pub trait Log as LogClient = "log/1" {
        /// Writes one line, with the plugin's name beside it.
        fn write(level: Level, message: String) -> ();

        /// Whether the host wants the text of a panic beside its place. It does not of a plugin that may use private keys or wallets,
        /// whose text may hold a secret, unless the configuration says so.
        #[since(1)]
        fn tells_panics() -> bool;
    }
}
