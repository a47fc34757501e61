//! A line in the log of the host.
#![allow(clippy::unwrap_used, reason = "a broken expectation fails the example")]

use outrigger_sdk::service::log::Level;
use outrigger_sdk::testing::StubHost;

fn main() {
    let test = StubHost::new();
    let host = test.handle();
    // The short form, which a log that cannot be written does not stop.
    host.log(Level::Info, "3 templates made");
    assert_eq!(test.log.lines(), [(Level::Info, "3 templates made".to_owned())]);
}
