//! Confines a process to what it was granted, and reports what it tried beyond that.
//!
//! The crate knows nothing of plugins, services or messages. A process that has just started calls [`confine`] with a [`Plan`],
//! before it has a second thread and before it opens foreign code; the process that started it calls [`Listener::receive`] on the
//! other end of the same socket and starts a [`Notifier`].
//!
//! # Layers
//!
//! 1. Namespaces of its own (user, mount, net, ipc) and a root with nothing in it but the library, what opening it needs, and the
//!    files that were granted.
//! 2. Landlock with the same files, no connection, and no signal to others.
//! 3. A filter of system calls. What is not on its list is told to the [`Notifier`], which counts it and answers EPERM. Opening a
//!    file is told always: within what was granted the system then does it, bounded by the first two layers.
//!
//! Granted connections are made by the notifier on its own copy of the address and put into the process, which has no network of its
//! own: nothing can be exchanged between check and use.
//!
//! On systems other than Linux the same functions say that there is no sandbox.

mod closure;
mod denial;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod other;
mod plan;
mod reach;

pub use closure::{ClosureError, library_closure};
pub use denial::{Denial, Denials, Event, FLOOD, Kind, OfKind};
#[cfg(target_os = "linux")]
pub use linux::{Listener, Notifier, Watch, confine, probe};
#[cfg(not(target_os = "linux"))]
pub use other::{Listener, Notifier, Watch, confine, probe};
pub use plan::{Enforced, Layer, Limits, Plan, Policy, SandboxError, Support};
pub use reach::{Reach, ReachError, canonical};
