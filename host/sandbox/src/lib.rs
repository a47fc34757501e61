//! Confines a process to its grants, and reports its attempts beyond them.
//!
//! A new process calls [`confine`] with a [`Plan`], while it has one thread and before it loads foreign code. Its
//! parent calls [`Listener::receive`] on the other end of the socket, and starts a [`Notifier`]. On other systems than
//! Linux, these functions report that there is no sandbox.
//!
//! # Layers
//!
//! 1. Namespaces (user, mount, net, ipc), and a root with the library, its dependencies and the granted files only.
//! 2. Landlock with the same files, no connections, and no signals to other processes.
//! 3. A system-call filter. Calls that are not on its list are forwarded to the [`Notifier`], which reports them and
//!    answers EPERM. Opening a file is always forwarded: within the grants the kernel then executes it, bounded by the
//!    first two layers.
//!
//! The notifier makes granted connections from its own copy of the address, and installs them in the process, which has
//! no network. So the process cannot swap the address between check and use.

mod closure;
mod denial;
mod descriptors;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod other;
mod plan;
mod reach;

pub use closure::library_closure;
pub use denial::{Denial, Denials, Event, FLOOD, Kind, OfKind};
pub use descriptors::{receive_descriptors, send_descriptors};
#[cfg(target_os = "linux")]
pub use linux::{Listener, Notifier, Watch, confine, probe};
#[cfg(not(target_os = "linux"))]
pub use other::{Listener, Notifier, Watch, confine, probe};
pub use plan::{Plan, Policy, SandboxError, SandboxLayers};
pub use reach::{Endpoint, MAX_CONNECTIONS, Reach, ReachError, canonical};
