//! Systems without a sandbox.

use std::os::fd::BorrowedFd;

use crate::denial::Event;
use crate::plan::{Plan, Policy, SandboxError, SandboxLayers};

fn missing() -> Vec<String> {
    vec!["a sandbox: there is one on Linux only".to_owned()]
}

pub fn probe() -> SandboxLayers {
    SandboxLayers { missing: missing(), ..SandboxLayers::default() }
}

/// Enforces nothing. [`Policy::Require`] fails.
pub fn confine(
    plan: &Plan,
    _support: &SandboxLayers,
    _keep: &[BorrowedFd<'_>],
    _notify: BorrowedFd<'_>,
) -> Result<SandboxLayers, SandboxError> {
    match plan.policy {
        Policy::Require => Err(SandboxError::Missing { missing: missing() }),
        Policy::BestEffort | Policy::None => Ok(SandboxLayers { missing: missing(), ..SandboxLayers::default() }),
    }
}

/// Has no values here.
#[derive(Debug)]
pub enum Listener {}

impl Listener {
    pub fn receive(_from: BorrowedFd<'_>) -> std::io::Result<Option<Self>> {
        Ok(None)
    }
}

pub type Watch = Box<dyn FnMut(Event<'_>) + Send>;

/// Has no values here.
#[derive(Debug)]
pub enum Notifier {}

impl Notifier {
    pub fn start(listener: Listener, _plan: &Plan, _watch: Watch) -> std::io::Result<Self> {
        match listener {}
    }
}
