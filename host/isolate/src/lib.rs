//! Plugins in processes of their own.
//!
//! The seam is the plugin ABI. In the host an isolated instance is a plugin that this crate implements ([`proxy`]): each of its
//! functions is a message to a *runner*, a process of the same program in which the unchanged library runs ([`inside`]). There the
//! plugin finds a host whose services are messages back. Neither side knows what the bytes mean.
//!
//! Host and runner exchange messages over *channels*, which are sockets. A channel connects one thread of the host with one thread of
//! the runner: the thread that entered the plugin serves the plugin's requests to services until the function has returned. The host
//! has one message under way on a channel, so a runner cannot fill a queue, and it ends a runner that sends a message out of turn.
//!
//! This crate knows no service, no method and no configuration. Code of plugins is run by the runner alone, and by whoever opens a
//! library with [`library`].

mod body;
pub mod cgroup;
mod channel;
mod channels;
mod executable;
mod fatal;
mod frame;
mod greeting;
pub mod inside;
mod launch;
pub mod library;
mod open;
mod output;
mod passing;
mod process;
pub mod proxy;
mod runner;
mod status;
mod usage;
mod watch;

pub use executable::Executable;
pub use launch::{Confinement, Launch};
pub use proxy::{Proxy, Seed};
pub use status::{Crash, RunnerStatus, Runners};
pub use usage::Bounds;

/// Reads the head of a message and writes it again, for the fuzz targets; none where it is no head.
pub fn reread_head(head: &[u8; frame::HEAD_LEN]) -> Option<[u8; frame::HEAD_LEN]> {
    frame::Head::parse(head).ok().map(|head| head.encode())
}
