//! Tests that take rights which not every machine gives: to mount, or to make network namespaces.

use std::io::Write;

/// Says that a test is skipped, since this machine does not give it the rights that it takes.
#[track_caller]
pub fn skip_unprivileged(what: &str) {
    let required = std::env::var_os("OUTRIGGER_PRIVILEGED").is_some_and(|value| value == "required");
    assert!(!required, "{what}, and OUTRIGGER_PRIVILEGED=required");
    // Not by a macro, whose lines of a test that passes nobody sees.
    let _ = writeln!(std::io::stderr(), "skipped: {what}");
}
