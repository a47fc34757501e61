//! Utilities that the host's crates share, such as containing panics, offloading work from network threads, busy
//! polling, rate limits for log lines, absolute paths, the rule for files that clients name, atomic replacement of files, maps by token, and
//! suggestions for misspelt names.
//!
//! This crate depends on no other crate of the project.

pub mod busy_poll;
pub mod client_files;
pub mod contain;
pub mod nearest;
pub mod nesting;
pub mod offload;
pub mod paths;
pub mod progress;
pub mod rate;
pub mod replace;
pub mod tokens;
pub mod unix_socket;
