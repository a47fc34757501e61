//! What several crates of the host need and that has no subject of its own: containing panics, work aside from the threads that
//! serve connections, polling of connections, the rate of lines in the log, the rule for files that clients name, maps by token,
//! and the name that was probably meant.
//!
//! It depends on no other crate of the project.

pub mod busy_poll;
pub mod client_files;
pub mod contain;
pub mod nearest;
pub mod offload;
pub mod rate;
pub mod tokens;
