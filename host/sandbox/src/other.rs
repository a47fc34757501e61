//! Systems without a sandbox: the same functions, which say so.

use std::os::fd::BorrowedFd;

use crate::denial::{Denials, Event};
use crate::plan::{Enforced, Plan, Policy, SandboxError, Support};

/// What is missing here.
fn missing() -> Vec<String> {
    vec!["a sandbox: there is one on Linux only".to_owned()]
}

/// What this system allows: nothing.
#[must_use]
pub fn probe() -> Support {
    Support { missing: missing(), ..Support::default() }
}

/// Confines nothing.
///
/// # Errors
/// [`Policy::Require`] cannot be satisfied.
pub fn confine(
    plan: &Plan,
    _support: &Support,
    _keep: &[BorrowedFd<'_>],
    _notify: BorrowedFd<'_>,
) -> Result<Enforced, SandboxError> {
    match plan.policy {
        Policy::Require => Err(SandboxError::Missing { missing: missing() }),
        Policy::BestEffort => Ok(Enforced { missing: missing(), ..Enforced::default() }),
    }
}

/// What the host answers a confined process with: there is none here.
#[derive(Debug)]
pub enum Listener {}

impl Listener {
    /// There is nothing to receive.
    ///
    /// # Errors
    /// None.
    pub fn receive(_from: BorrowedFd<'_>) -> std::io::Result<Option<Self>> {
        Ok(None)
    }
}

/// Hears of a confined process.
pub type Watch = Box<dyn FnMut(Event<'_>) + Send>;

/// The thread that answers a confined process: there is none here.
#[derive(Debug)]
pub struct Notifier(Listener);

impl Notifier {
    /// Answers the process that sent a listener.
    ///
    /// # Errors
    /// None.
    pub fn start(listener: Listener, _plan: &Plan, _watch: Watch) -> std::io::Result<Self> {
        Ok(Self(listener))
    }

    /// What the process was refused so far.
    #[must_use]
    pub fn denials(&self) -> Denials {
        match self.0 {}
    }
}
