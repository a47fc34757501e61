//! The host of Outrigger: it owns the network edge, the plugins, the chain and the wallet store, and leaves every
//! operation that a client can call to a plugin.

mod cli;
mod config;
mod metrics;
mod node;
mod notify;
mod plugin;
mod router;
mod rpc;
mod run;
mod services;
mod wallet;

fn main() -> std::process::ExitCode {
    cli::main()
}
