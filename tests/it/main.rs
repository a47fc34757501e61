//! End-to-end tests: the built binary, driven over HTTP as a client drives it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test says what it expects by failing")]

mod abi;
mod call;
mod check;
mod compile_fail;
mod control;
mod durability;
mod envelope;
mod events;
mod faults;
mod full_disk;
mod groups;
mod held_up;
mod history;
mod import;
mod kills;
mod mempool;
mod metrics;
mod miner;
mod mining;
mod network;
mod operations;
mod operator;
mod plugin_log;
mod recorded_chain;
mod recorded_history;
mod recorded_random;
mod recorded_rules;
mod recorded_signing;
mod scaffold;
mod signing;
mod startup;
mod users;
mod vault;
mod wallet;
mod wallet_results;
