//! End-to-end tests: the built binary, driven over HTTP as a client drives it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test says what it expects by failing")]

mod abi;
mod architecture;
mod call;
mod chain;
mod check;
mod circles;
mod compile_fail;
mod connections;
mod control;
mod damages;
mod durability;
mod encryption_kills;
mod envelope;
mod events;
mod faults;
mod former;
mod full_disk;
mod groups;
mod held_up;
mod history;
mod import;
mod in_front;
mod kills;
mod metrics;
mod mining;
mod operator;
mod plugin_control;
mod plugin_log;
mod scaffold;
mod signing;
mod startup;
mod users;
mod vault;
mod wallet;
mod wallet_kills;
