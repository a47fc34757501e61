//! The runner: a process in which one plugin's library runs, and in which the host is at the other end of lanes.

mod host;
mod lane;
mod plugin;
mod signals;
mod told;

use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use outrigger_sandbox::confine;
use rustix::process::getppid;

use crate::ahead::now;
use crate::executable::RUNNER_COMMAND;
use crate::frame::{FrameError, Head, Kind};
use crate::greeting::Hello;
use crate::lane::Lane;
use crate::library::{self, LibraryError};
use crate::memory::{MemoryLane, Region, Side};
use crate::passing::{self, Parcel, Purpose, Way};
use crate::socket::SocketLane;
use host::Inside;
use lane::RunnerLane;

/// The stack of a thread that runs functions of the plugin, in bytes: as in the host.
const STACK_BYTES: usize = 8 << 20;

/// Whether the arguments of the program are those of a runner.
pub fn is_asked_for() -> bool {
    std::env::args_os().nth(1).is_some_and(|argument| argument == RUNNER_COMMAND)
}

/// Runs a plugin for the host at the other end of the standard input, until that is closed. The first thing that the program
/// does: there is no other thread yet.
pub fn run() -> ExitCode {
    // The clock is found by what the system tells of the process, which is refused later. Then each reading would be a system call,
    // and the look for the clock would be told as an attempt of the plugin.
    now();
    let Ok(control) = std::io::stdin().as_fd().try_clone_to_owned().map(UnixStream::from) else {
        return ExitCode::FAILURE;
    };
    match serve(&control) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("the runner ends: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve(control: &UnixStream) -> Result<(), FrameError> {
    end_with_the_host();
    let mut lane = SocketLane::new(control.try_clone()?);
    let (head, hello) = lane.receive(usize::MAX)?;
    let hello: Hello = match head.kind {
        Kind::Hello => serde_json::from_slice(&hello.map_err(std::io::Error::other)?).map_err(std::io::Error::from)?,
        kind => return Err(FrameError::OutOfTurn(kind)),
    };
    if getppid().is_none_or(|parent| parent.as_raw_nonzero().get() as u32 != hello.host) {
        return Ok(());
    }
    // It owns a descriptor that is about to be closed.
    drop(lane);
    let enforced = match &hello.sandbox {
        Some((plan, support)) => {
            let standard = (std::io::stdin(), std::io::stdout(), std::io::stderr());
            let keep = [standard.0.as_fd(), standard.1.as_fd(), standard.2.as_fd()];
            let enforced = confine(plan, support, &keep, control.as_fd()).map_err(std::io::Error::other)?;
            serde_json::to_vec(&enforced).map_err(std::io::Error::from)?
        }
        None => Vec::new(),
    };
    let mut lane = SocketLane::new(control.try_clone()?);
    // Before constructors of the library: these may say anything, and have their own ways with signals.
    lane.send(Head::new(Kind::Confined), &[&enforced])?;
    signals::tell_before_the_end();
    match library::open(&hello.library) {
        Ok(table) => {
            let inside = Inside::new(Box::leak(Box::new(table)));
            lane.send(Head::new(Kind::Ready), &[])?;
            take_lanes(control, inside)
        }
        Err(error) => {
            let reason = match error {
                LibraryError::Open(said) => format!("its library cannot be opened: {said}"),
                LibraryError::NoPlugin(reason) => format!("its library is no plugin: {reason}"),
            };
            lane.send(Head { code: 1, ..Head::new(Kind::Ready) }, &[reason.as_bytes()])
        }
    }
}

/// The host's end is this one's, also where it is killed. On other systems it ends once the host's end of the socket is closed,
/// which is read all the time.
fn end_with_the_host() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Signal, set_parent_process_death_signal};
        let _ = set_parent_process_death_signal(Some(Signal::KILL));
    }
}

/// Serves the lanes that the host makes.
fn take_lanes(control: &UnixStream, inside: &'static Inside) -> Result<(), FrameError> {
    let mut regions = None;
    while let Some(parcel) = passing::receive(control)? {
        match parcel {
            Parcel::Regions([theirs, ours]) => {
                regions = Some((Region::open(ours, true)?, Region::open(theirs, false)?));
            }
            Parcel::Lane(purpose, Way::Memory(place)) => {
                let lane = regions
                    .as_ref()
                    .and_then(|(ours, theirs)| MemoryLane::new(Side::Runner, place.into(), ours, theirs));
                let lane = lane.ok_or(std::io::ErrorKind::InvalidData).map_err(std::io::Error::from)?;
                serve_lane(Lane::Memory(Box::new(lane)), purpose, inside)?;
            }
            Parcel::Lane(purpose, Way::Socket(socket)) => {
                serve_lane(Lane::Socket(SocketLane::new(socket.into())), purpose, inside)?;
            }
        }
    }
    Ok(())
}

fn serve_lane(lane: Lane, purpose: Purpose, inside: &'static Inside) -> std::io::Result<()> {
    match purpose {
        Purpose::Own => inside.add_own(RunnerLane::new(lane)),
        Purpose::Entry => {
            let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
            drop(thread.spawn(move || inside.serve(RunnerLane::new(lane)))?);
        }
    }
    Ok(())
}
