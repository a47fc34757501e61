//! The host of Outrigger: it owns the network edge, the plugins, the chain and the wallet store, and leaves every
//! operation that a client can call to a plugin.

mod active;
mod audit;
mod cli;
mod config;
mod groups;
mod hooks;
mod methods;
mod metrics;
mod notify;
mod observe;
mod publish;
mod router;
mod run;
mod services;

/// Runs the program with the arguments of the process.
pub fn main() -> std::process::ExitCode {
    // Before anything else: a runner has one thread until it has begun.
    if outrigger_isolate::inside::is_asked_for() { outrigger_isolate::inside::run() } else { cli::main() }
}
