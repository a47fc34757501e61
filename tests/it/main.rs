//! End-to-end tests: the built binary, driven over HTTP as a client drives it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test says what it expects by failing")]

mod groups;
mod startup;
