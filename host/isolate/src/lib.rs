//! Plugins in processes of their own.
//!
//! The seam is the plugin ABI. In the host an isolated instance is a plugin that this crate implements ([`proxy`]): each of its
//! functions is a message to a *runner*, a process of the same program in which the unchanged library runs ([`inside`]). There the
//! plugin finds a host whose services are messages back. Neither side knows what the bytes mean.
//!
//! Host and runner talk over *lanes*. A lane pairs one thread of the host with one thread of the runner: the thread that entered the
//! plugin answers what the plugin asks of services meanwhile. A thread that has several short calls hands them over at once; the
//! runner runs them one after the other and wakes the host when the last one has returned. A lane holds no more messages than these
//! need, so that there is no queue that a runner could fill, and a message out of turn is a fault of the runner, which is ended then.
//!
//! This crate knows no service, no method and no configuration. Code of plugins is run by the runner alone, and by whoever opens a
//! library with [`library`].

mod ahead;
mod body;
mod budget;
pub mod cgroup;
mod executable;
mod fatal;
mod frame;
mod greeting;
pub mod inside;
mod lane;
mod launch;
pub mod library;
mod memory;
mod open;
mod output;
mod passing;
mod process;
pub mod proxy;
mod runner;
mod socket;
mod status;
mod together;
mod usage;
mod watch;

pub use executable::Executable;
pub use launch::{Confinement, Launch, Transport};
pub use proxy::{Proxy, Seed};
pub use status::{Crash, RunnerStatus, Runners};
pub use together::{MAX_TOGETHER, Returned};
pub use usage::Bounds;

/// Reads the head of a message and writes it again, for the fuzz targets; none where it is no head.
pub fn reread_head(head: &[u8; frame::HEAD_LEN]) -> Option<[u8; frame::HEAD_LEN]> {
    frame::Head::parse(head).ok().map(|head| head.encode())
}
