//! The host of Outrigger: it owns the network edge, the plugins, the chain and the wallet store, and leaves every
//! operation that a client can call to a plugin.

mod cli;
mod client_files;
mod config;
mod contain;
mod disk;
#[doc(hidden)]
pub mod fuzzing;
mod groups;
mod metrics;
mod nearest;
mod node;
mod notify;
mod offload;
mod plugin;
mod router;
mod rpc;
mod run;
mod services;
mod wallet;

/// Runs the program with the arguments of the process.
pub fn main() -> std::process::ExitCode {
    cli::main()
}
