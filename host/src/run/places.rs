//! Checks the data folder, files and ports that the host would use at its start, without changing them.

use std::fs::File;
use std::path::Path;

use outrigger_rpc::listen;
use outrigger_zmq::{PubSocket, ZmqEndpoint};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use tokio::net::TcpListener;

use super::{RunError, audit_file, failed, metrics_error};
use crate::audit::AuditLog;
use crate::config::LoadedConfig;

/// Checks them. Returns a line if the ports were not checked.
///
/// # Errors
/// As of the start.
pub fn try_places(loaded: &LoadedConfig, folder: &Path) -> Result<Option<String>, RunError> {
    if let Some((file, refuse)) = audit_file(loaded)? {
        AuditLog::check(&file).map_err(|error| refuse(error.to_string()))?;
    }
    if is_in_use(folder) {
        let folder = folder.display();
        return Ok(Some(format!("{folder} is in use by a running Outrigger: its ports are not checked")));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(super::no_threads)?.block_on(try_ports(loaded))?;
    Ok(None)
}

/// Whether a host runs on this data folder.
fn is_in_use(folder: &Path) -> bool {
    let locked = |folder: File| flock(&folder, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK);
    File::open(folder).is_ok_and(locked)
}

/// Listens on all ports at the same time, since two settings may name the same.
async fn try_ports(loaded: &LoadedConfig) -> Result<(), RunError> {
    let config = &loaded.config;
    let rpc = listen(&config.listen(), config.rpc.listen.is_empty()).await;
    let _rpc = rpc.map_err(|error| failed("cannot listen")(error.into()))?;
    let mut published = Vec::new();
    for one in config.notify.publications().unwrap_or_default() {
        // A Unix socket replaces an existing one.
        if matches!(one.endpoint, ZmqEndpoint::Tcp(..)) && published.iter().all(|(known, _)| *known != one.address) {
            let bound = PubSocket::bind(&one.endpoint, 1).await;
            let refuse =
                |error| loaded.error("notify", &one.address, format!("cannot listen at {}: {error}", one.address));
            published.push((one.address.clone(), bound.map_err(refuse)?));
        }
    }
    if let Some(metrics) = config.metrics.listen {
        TcpListener::bind(metrics).await.map_err(|error| metrics_error(loaded, metrics, &error))?;
    }
    Ok(())
}
