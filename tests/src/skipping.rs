//! Reports that a test is skipped.

use std::io::Write;

/// Reports that a test, or a part of it, is skipped.
pub fn skip(why: &str) {
    // Not with `eprintln!`: the test harness hides its output if the test passes.
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}

/// Reports that a test is skipped because it lacks a right: to mount, or to make network namespaces.
#[track_caller]
pub fn skip_unprivileged(why: &str) {
    skip_unless_required("OUTRIGGER_PRIVILEGED", why);
}

/// Reports that a test is skipped because a program that it needs is missing.
#[track_caller]
pub fn skip_without(why: &str) {
    skip_unless_required("OUTRIGGER_TOOLS", why);
}

#[track_caller]
fn skip_unless_required(variable: &str, why: &str) {
    let required = std::env::var_os(variable).is_some_and(|value| value == "required");
    assert!(!required, "{why}, and {variable}=required");
    skip(why);
}
