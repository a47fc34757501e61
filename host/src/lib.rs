//! The host of Outrigger: it owns the network edge, the plugins, the chain and the wallet store. Plugins implement
//! every operation that a client can call.

mod active;
mod audit;
mod backups;
mod cli;
mod config;
mod console;
mod groups;
mod hooks;
mod methods;
mod metrics;
mod notify;
mod observe;
mod publish;
mod quotas;
mod router;
mod run;
mod services;

use std::process::ExitCode;

use outrigger_isolate::inside;

pub fn main() -> ExitCode {
    // This comes first: the process of an isolated plugin must still have only one thread here.
    if inside::is_asked_for() {
        return inside::run(|name| groups::GROUPS.iter().find(|one| one.name == name).map(|one| one.table));
    }
    outrigger_abi::keep_panic_hook();
    cli::main()
}
