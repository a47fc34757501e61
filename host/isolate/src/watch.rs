//! The sandbox of a runner, and the log of its denied system calls.

use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::OnceLock;

use outrigger_base::rate::Rate;
use outrigger_sandbox::{
    Event, Listener, MAX_CONNECTIONS, Notifier, Plan, Policy, SandboxError, SandboxLayers, library_closure, probe,
};

use crate::channels::MAX_CHANNELS;
use crate::launch::{Launch, RunnerCode};

/// The largest file that a runner may write, in bytes.
const FILE_SIZE: u64 = 4 << 30;

/// How many file descriptors a runner may have besides its channels and connections.
const OPEN_FILES: u64 = 64;

/// How many denials of a runner are logged per second; all are counted.
const LOGGED_PER_SECOND: u32 = 10;

/// The advice that the host logs after the sandbox denied a name look-up.
const LOOKUP: &str = "a look-up of a name needs connect:tcp:NAME:PORT or connect:tls:NAME:PORT in the plugin's reach, \
                      and the host resolves the name: the plugin connects by net::connect of the SDK";

/// The sandbox features of this system. The first call probes them.
pub fn support() -> &'static SandboxLayers {
    static SUPPORT: OnceLock<SandboxLayers> = OnceLock::new();
    SUPPORT.get_or_init(probe)
}

/// The sandbox of a plugin's runner; `None` if it is not confined.
pub fn plan(launch: &Launch) -> Result<Option<Plan>, String> {
    let policy = launch.policy;
    if policy == Policy::None {
        return Ok(None);
    }
    let support = support();
    if policy == Policy::Require && !support.suffices() {
        return Err(SandboxError::Missing { missing: support.missing.clone() }.to_string());
    }
    let library = match &launch.code {
        RunnerCode::Library(library) => Some(library.clone()),
        // The plugin is part of the program, which is already mapped.
        RunnerCode::Linked(_) => None,
    };
    let closure = library.as_deref().map(library_closure).transpose()?;
    Ok(Some(Plan {
        library,
        closure: closure.unwrap_or_default(),
        reach: launch.reach.clone(),
        file_size: FILE_SIZE,
        open_files: OPEN_FILES + (MAX_CHANNELS + MAX_CONNECTIONS) as u64,
        policy,
    }))
}

/// Starts answering a process's forwarded system calls; `None` if the system does not forward any.
pub fn begin(control: &UnixStream, plan: &Plan, launch: &Launch) -> std::io::Result<Option<Notifier>> {
    let Some(listener) = Listener::receive(control.as_fd())? else { return Ok(None) };
    let (plugin, status, runners) = (launch.plugin.clone(), launch.status.clone(), launch.runners.clone());
    let (rate, lookups) = (Rate::per_second(LOGGED_PER_SECOND), Rate::once_a_minute());
    let hear = move |event: Event<'_>| match event {
        Event::Denied(denial) => {
            status.denied(denial);
            let kind = denial.kind.name();
            if rate.allows(drop) {
                tracing::warn!(plugin, kind, "the sandbox denied the plugin: {denial}");
            }
            if denial.is_lookup() && lookups.allows(drop) {
                tracing::warn!(plugin, "{LOOKUP}");
            }
        }
        Event::Flood => {
            runners.kill("too many system calls forwarded to the host");
        }
    };
    Notifier::start(listener, plan, Box::new(hear)).map(Some)
}
