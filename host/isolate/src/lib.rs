//! Plugins in their own processes.
//!
//! The boundary is the plugin ABI. In the host, an isolated instance is a proxy: it implements the plugin's functions as messages to a
//! *runner* ([`inside`]). A runner is a process of the same program that runs an unchanged library, or a plugin that is linked into the
//! program. In the runner, the functions of the host table and of the services send messages back. Neither side interprets the payload.
//!
//! Host and runner exchange messages over *channels*, which are sockets. A channel connects one thread of the host with
//! one thread of the runner: the thread that entered the plugin serves the plugin's requests to services until the
//! function has returned. The host has one message in flight on a channel, so a runner cannot fill a queue. The host
//! ends a runner that sends a message out of turn.
//!
//! Every message is bounded: the host discards a body beyond its limit, and ends a runner that pauses for a second within a message.
//! It also ends a runner that starts or stops too slowly, exceeds its memory or threads (`usage`), or holds all threads of its plugin.
//! Calls that a runner had begun when it ended get an error and are never repeated. Other calls wait for the next runner.
//!
//! This crate knows no service, no method and no configuration. Only runners, and callers of [`library`], execute code
//! of plugins.

mod body;
pub mod cgroup;
mod channel;
mod channels;
mod executable;
mod frame;
mod greeting;
pub mod inside;
mod launch;
pub mod library;
mod open;
mod output;
mod passing;
mod process;
mod proxy;
mod runner;
mod status;
mod usage;
mod watch;

pub use channels::max_long_calls;
pub use executable::Executable;
pub use launch::{Launch, RunnerCode};
pub use proxy::{Proxy, STOP_PATIENCE};
pub use runner::asker_is_gone;
pub use status::{Crash, RunnerStatistics, RunnerStatus, Runners};
pub use usage::Bounds;

/// Parses and encodes a head, for the fuzz targets; `None` if it is invalid.
pub fn reread_head(head: &[u8; frame::HEAD_LEN]) -> Option<[u8; frame::HEAD_LEN]> {
    frame::Head::parse(head).ok().map(|head| head.encode())
}
