//! `log/1`: a plugin's lines in the host's log. Never put a secret in one.
//!
//! ```
//! use outrigger_sdk::service::log::Level;
//! use outrigger_sdk::testing::TestHost;
//!
//! let test = TestHost::new();
//! let host = test.handle();
//! // The short form, which a log that cannot be written does not stop.
//! host.log(Level::Info, "3 templates made");
//! assert_eq!(test.log.lines(), [(Level::Info, "3 templates made".to_owned())]);
//! ```

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
    }
}
