//! Writing a line to the host's log.
#![allow(clippy::unwrap_used, reason = "a broken expectation fails the example")]

use outrigger_sdk::service::log::Level;
use outrigger_sdk::testing::StubHost;

fn main() {
    let test = StubHost::new();
    let host = test.handle();
    // The short form, which ignores errors of the log.
    host.log(Level::Info, "3 templates made");
    assert_eq!(test.log.lines(), [(Level::Info, "3 templates made".to_owned())]);
}
