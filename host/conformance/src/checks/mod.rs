//! The checks, each in a process of its own.

mod calls;
mod events;
mod lifecycle;

use super::protocol::Message;
use super::session::Session;
use super::{Check, arguments};

/// What a check did, or the reason why it did not.
type Outcome = Result<String, String>;

/// Runs a check and tells what came of it.
pub fn run(check: Check, session: &Session<'_>) {
    let outcome = match check {
        // It was done with the session.
        Check::Open => Ok(String::new()),
        Check::Lifecycle => lifecycle::lifecycle(session),
        Check::Parameters => calls::parameters(session),
        Check::Tokens => calls::tokens(session),
        Check::Cancellation => calls::cancellation(session),
        Check::Concurrency => calls::concurrency(session),
        Check::Events => events::events(session),
        Check::Services | Check::Options => setting(session),
    };
    let done = outcome.unwrap_or_else(|not_started| not_started);
    session.reporter.tell(&Message::Done(done + &session.denials()));
}

/// An instance in the setting of the job, and a few calls. It may refuse to start with a reason.
fn setting(session: &Session<'_>) -> Outcome {
    if let Ok(harness) = session.try_bring_up() {
        for (method, set) in session.calls(arguments::few) {
            harness.call(method, &set);
        }
        harness.finish();
    }
    Ok(String::new())
}
