//! Instances come and go: one alone, a second beside it, as a reload has it, and one after all others.

use super::Outcome;
use crate::session::{Harness, Session};

/// Four instances, two of them at the same time, each of which answers.
///
/// # Errors
/// One does not start.
pub fn lifecycle(session: &Session<'_>) -> Outcome {
    let bring_up = |failure: &str| session.bring_up().map_err(|_| failure.to_owned());
    let first = session.bring_up()?;
    call(session, &first);
    let second = bring_up("a second instance does not start beside the first")?;
    call(session, &second);
    call(session, &first);
    first.finish();
    call(session, &second);
    let third = bring_up("it does not start again after one of two instances was stopped")?;
    // This time the later one ends first, as a reload has it whose new instance does not please.
    third.finish();
    call(session, &second);
    second.finish();
    let last = bring_up("it does not start again after it was stopped")?;
    call(session, &last);
    last.finish();
    Ok("started four times, twice beside another instance, and stopped".to_owned())
}

/// Makes one call, so that something runs in the instance.
fn call(session: &Session<'_>, harness: &Harness<'_>) {
    if let Some(method) = session.methods().next() {
        harness.call(method, "[]");
    }
}
