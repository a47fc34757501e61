//! Starts and stops instances of the plugin: one alone, a second beside it as in a reload, and one after all others have stopped.

use super::Outcome;
use crate::session::{Harness, Session};

/// Starts four instances, at most two at the same time, and calls a method of each.
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
    // The newer instance stops first, as in a reload that rejects the new instance.
    third.finish();
    call(session, &second);
    second.finish();
    let last = bring_up("it does not start again after it was stopped")?;
    call(session, &last);
    last.finish();
    Ok("started four times, twice beside another instance, and stopped".to_owned())
}

/// Calls the plugin's first method, if any, so that the instance runs code of the plugin.
fn call(session: &Session<'_>, harness: &Harness<'_>) {
    if let Some(method) = session.methods().next() {
        harness.call(method, "[]");
    }
}
