//! The runner: a process that runs one plugin and is controlled by the host.

mod host;
mod plugin;

use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;

use outrigger_abi::PluginTable;
use outrigger_sandbox::confine;
use rustix::process::getppid;

use crate::channel::Channel;
use crate::executable::RUNNER_COMMAND;
use crate::frame::{FrameError, Head, Kind};
use crate::greeting::Hello;
use crate::launch::RunnerCode;
use crate::library::{self, LibraryError};
use crate::passing::{self, Purpose};
use host::Inside;

/// The stack of a thread that runs functions of the plugin, in bytes: as large as in the host.
const STACK_BYTES: usize = 8 << 20;

/// Whether the program's arguments are those of a runner.
pub fn is_asked_for() -> bool {
    std::env::args_os().nth(1).is_some_and(|argument| argument == RUNNER_COMMAND)
}

/// Runs a plugin for the host until the host closes its socket, which is the standard input. `linked` finds a plugin that is
/// linked into the program. Call this function at the start of the program, while the process has only one thread.
pub fn run(linked: impl Fn(&str) -> Option<&'static PluginTable>) -> ExitCode {
    let Ok(control) = std::io::stdin().as_fd().try_clone_to_owned().map(UnixStream::from) else {
        return ExitCode::FAILURE;
    };
    match serve(&control, linked) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("the runner ends: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve(control: &UnixStream, linked: impl Fn(&str) -> Option<&'static PluginTable>) -> Result<(), FrameError> {
    end_with_the_host();
    let mut channel = Channel::to_host(control.try_clone()?);
    let (head, hello) = channel.receive(usize::MAX)?;
    let hello: Hello = match head.kind {
        Kind::Hello => serde_json::from_slice(&hello.map_err(std::io::Error::other)?).map_err(std::io::Error::from)?,
        kind => return Err(FrameError::OutOfTurn(kind)),
    };
    if getppid().is_none_or(|parent| parent.as_raw_nonzero().get() as u32 != hello.host) {
        return Ok(());
    }
    // The channel owns a descriptor that `confine` closes.
    drop(channel);
    let enforced = match &hello.sandbox {
        Some((plan, support)) => {
            let standard = (std::io::stdin(), std::io::stdout(), std::io::stderr());
            let keep = [standard.0.as_fd(), standard.1.as_fd(), standard.2.as_fd()];
            let enforced = confine(plan, support, &keep, control.as_fd()).map_err(std::io::Error::other)?;
            serde_json::to_vec(&enforced).map_err(std::io::Error::from)?
        }
        None => Vec::new(),
    };
    let mut channel = Channel::to_host(control.try_clone()?);
    // Sent before the library is opened, since its constructors may write to the socket.
    channel.send(Head::new(Kind::Confined), &[&enforced])?;
    let table = match &hello.code {
        RunnerCode::Library(path) => open(path),
        RunnerCode::Linked(name) => linked(name).ok_or_else(|| format!("the program has no plugin '{name}'")),
    };
    match table {
        Ok(table) => {
            let inside = Inside::new(table);
            channel.send(Head::new(Kind::Ready), &[])?;
            take_channels(control, inside)
        }
        Err(reason) => channel.send(Head { code: 1, ..Head::new(Kind::Ready) }, &[reason.as_bytes()]),
    }
}

fn open(library: &Path) -> Result<&'static PluginTable, String> {
    match library::open(library) {
        Ok(table) => Ok(Box::leak(Box::new(table))),
        Err(LibraryError::Open(said)) => Err(format!("its library cannot be opened: {said}")),
        Err(LibraryError::NoPlugin(reason)) => Err(format!("its library is not a plugin: {reason}")),
    }
}

/// Makes Linux kill this process when the host ends, even if the host is killed. On other systems, the process ends when
/// its socket is closed.
fn end_with_the_host() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Signal, set_parent_process_death_signal};
        let _ = set_parent_process_death_signal(Some(Signal::KILL));
    }
}

/// Serves the channels that the host opens.
fn take_channels(control: &UnixStream, inside: &'static Inside) -> Result<(), FrameError> {
    while let Some((purpose, socket)) = passing::receive(control)? {
        let channel = Channel::to_host(socket.into());
        match purpose {
            Purpose::Own => inside.add_own(channel),
            Purpose::Entry => {
                let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
                drop(thread.spawn(move || inside.serve(channel))?);
            }
        }
    }
    Ok(())
}
