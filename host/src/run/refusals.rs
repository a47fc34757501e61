//! Errors about the data directory and the addresses in the configuration, shared by `run` and `run --check`.

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::path::Path;

use super::{RunArgs, RunError};
use crate::config::LoadedConfig;

pub fn datadir_error(loaded: &LoadedConfig, args: &RunArgs, reason: &str) -> RunError {
    let reason = format!("the data directory: {reason}");
    RunError::Failed(match &args.datadir {
        Some(_) => format!("--datadir: {reason}"),
        None => loaded.error("datadir", "", reason).to_string(),
    })
}

/// The error text if another host uses the data directory.
pub fn in_use(folder: &Path) -> String {
    format!("{} is in use by another Outrigger; stop it, or give this one another --datadir", folder.display())
}

pub fn listen_error(loaded: &LoadedConfig, error: &dyn Error) -> RunError {
    let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
    let reason = format!("{error}{}", cause.map_or("", remedy));
    RunError::Failed(loaded.error("rpc.listen", "", reason).to_string())
}

pub fn metrics_error(loaded: &LoadedConfig, listen: SocketAddr, error: &io::Error) -> RunError {
    let reason = format!("cannot listen on {listen}: {error}{}", remedy(error));
    loaded.error("metrics.listen", &listen.to_string(), reason).into()
}

pub fn publish_error(loaded: &LoadedConfig, address: &str, error: &io::Error) -> RunError {
    let topics = loaded.config.notify.publications().unwrap_or_default();
    let key = topics.iter().find(|one| one.address == address).map_or("", |one| one.topic.name());
    let reason = format!("cannot listen at {address}: {error}{}", remedy(error));
    loaded.error(&format!("notify.zmqpub{key}"), "", reason).into()
}

/// What an operator can do about an address on which the host cannot listen; empty if unknown.
fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            "; stop the program that listens there (`ss -ltnp` names it), or choose another port"
        }
        io::ErrorKind::AddrNotAvailable => "; this machine has no such address (`ip address` lists them)",
        io::ErrorKind::PermissionDenied => "; ports below 1024 need CAP_NET_BIND_SERVICE",
        _ => "",
    }
}
