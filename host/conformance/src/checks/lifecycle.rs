//! Instances come and go: one alone, a second beside it, as a reload has it, and one after all others.

use super::Outcome;
use crate::session::{Harness, Session, Shape};

/// Three instances, two of them at the same time, each of which answers.
pub fn lifecycle(session: &Session<'_>) -> Outcome {
    let Some(first) = session.bring_up(Shape::USUAL) else { return Outcome::Done("it does not start".to_owned()) };
    call(session, &first);
    let Some(second) = session.bring_up(Shape::USUAL) else {
        session.finish(first);
        return Outcome::Done("a second instance does not start beside the first".to_owned());
    };
    call(session, &second);
    call(session, &first);
    session.finish(first);
    call(session, &second);
    let Some(third) = session.bring_up(Shape::USUAL) else {
        session.finish(second);
        return Outcome::Done("it does not start again after one of two instances was stopped".to_owned());
    };
    // This time the later one ends first, as a reload has it whose new instance does not please.
    session.finish(third);
    call(session, &second);
    session.finish(second);
    let Some(last) = session.bring_up(Shape::USUAL) else {
        return Outcome::Done("it does not start again after it was stopped".to_owned());
    };
    call(session, &last);
    session.finish(last);
    Outcome::Done("started four times, twice beside another instance, and stopped".to_owned())
}

/// Makes one call, so that something runs in the instance.
fn call(session: &Session<'_>, harness: &Harness<'_>) {
    if let Some(method) = session.methods().next() {
        harness.probe.call(&method.name, "[]");
    }
}
