//! End-to-end tests: the built binary, driven over HTTP as a client drives it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test says what it expects by failing")]

mod abi;
mod architecture;
mod call;
mod chain;
mod chain_files;
mod check;
mod circles;
mod compared;
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
mod hardware_wallets;
mod held_up;
mod history;
mod hooks;
mod import;
mod in_front;
mod kills;
mod legacy;

mod methods;
mod metrics;
mod migration;
mod mining;
mod operator;
mod packages;
mod plugin_control;
mod plugin_log;
mod publishing;
mod scaffold;
mod signing;
mod startup;
mod users;
mod vault;
mod wallet;
mod wallet_kills;
