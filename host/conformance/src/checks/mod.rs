//! The checks, each in a process of its own.

mod calls;
mod cancellation;
mod events;
mod lifecycle;
mod setting;

use super::Check;
use super::protocol::Message;
use super::session::Session;
use crate::isolated::Isolation;

/// What a check comes to: what it did, or why there was nothing to do.
pub enum Outcome {
    /// What it did.
    Done(String),
    /// Why there was nothing to check.
    Skipped(String),
}

/// Runs a check and tells what came of it.
pub fn run(check: Check, session: &Session<'_>) {
    let outcome = match check {
        // It was done with the session.
        Check::Open => Outcome::Done(String::new()),
        Check::Lifecycle => lifecycle::lifecycle(session),
        Check::Parameters => calls::parameters(session),
        Check::Tokens => calls::tokens(session),
        Check::Cancellation => cancellation::cancellation(session),
        Check::Concurrency => calls::concurrency(session),
        Check::Events => events::events(session),
        Check::Services => setting::services(session),
        Check::Options => setting::options(session),
        Check::Versions if session.isolation.is_some() => {
            Outcome::Skipped("its process is a host of this version".to_owned())
        }
        Check::Versions => setting::versions(session),
    };
    let refused = session.isolation.map(Isolation::refused).unwrap_or_default();
    session.reporter.tell(&match outcome {
        Outcome::Done(what) => Message::Done(what + &refused),
        Outcome::Skipped(why) => Message::Skipped(why),
    });
}
