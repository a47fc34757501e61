//! The host of Outrigger: it owns the network edge, the plugins, the chain and the wallet store. Plugins implement
//! every operation that a client can call.

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

pub fn main() -> std::process::ExitCode {
    // First, since a runner must still have only one thread.
    if outrigger_isolate::inside::is_asked_for() { outrigger_isolate::inside::run() } else { cli::main() }
}
