//! The checks. Each runs in its own process.

mod calls;
mod events;
mod lifecycle;

use super::protocol::Message;
use super::session::Session;
use super::{Check, arguments};

/// A summary of the check, or the reason why the check could not run.
type Outcome = Result<String, String>;

/// Runs a check and reports the outcome to the tool.
pub fn run(check: Check, session: &Session<'_>) {
    let outcome = match check {
        // Creating the session has already opened the plugin.
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

/// Starts an instance in the job's setting and makes a few calls. The instance may refuse to start if it gives a reason.
fn setting(session: &Session<'_>) -> Outcome {
    if let Ok(harness) = session.try_bring_up() {
        for (method, set) in session.calls(arguments::few) {
            harness.call(method, &set);
        }
        harness.finish();
    }
    Ok(String::new())
}
