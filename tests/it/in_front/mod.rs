//! The host in front of a real bitcoind.

mod chain;
mod failures;
mod hints;
mod nodes;
mod passed;
mod users;
mod waiting;

use outrigger_tests::{Host, HostOptions, bitcoind};

/// A host in front of a node with these arguments; `None`, said aloud, where there is no bitcoind here.
fn start(arguments: &[&'static str]) -> Option<Host> {
    bitcoind::installed()?;
    Some(Host::start_with(HostOptions::in_front_of(arguments)))
}
