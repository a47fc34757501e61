//! Checks the data folder, files and ports that the host uses when it starts, without changing them.

use std::io;
use std::path::Path;

use outrigger_embedded::{EmbeddedError, EmbeddedNode};
use outrigger_node::NodeError;
use outrigger_plugins::trust;
use outrigger_rpc::{ListenAddress, ListenError, listen, try_unix};
use outrigger_zmq::{PubSocket, ZmqEndpoint};
use tokio::net::TcpListener;

use super::lock::{LOCK_FILE, is_locked};
use super::refusals::{datadir_error, in_use, listen_error, metrics_error, publish_error};
use super::{Before, RunArgs, RunError, failed};
use crate::audit::{AuditLog, may_create};
use crate::config::{Config, LoadedConfig};

/// The folder of the embedded chain, below the folder of the network.
pub const CHAIN: &str = "chain";

/// Checks the data folder, files and ports. Before a restart, it skips those that the running host uses.
pub fn try_places(loaded: &LoadedConfig, args: &RunArgs, folder: &Path, before: Before) -> Result<(), RunError> {
    if let Some(file) = &loaded.config.audit.file {
        AuditLog::check(file).map_err(|error| loaded.error("audit.file", "", error.to_string()))?;
    }
    super::backups::folder(loaded, folder)?;
    let refuse = |reason: String| datadir_error(loaded, args, &reason);
    trust::check_own_folder(folder).map_err(|error| refuse(error.to_string()))?;
    match before {
        Before::Start if is_in_use(folder) => Err(refuse(in_use(folder))),
        Before::Restart if is_in_use(folder) => Ok(()),
        _ => {
            super::backups::check_unused(loaded, folder)?;
            check_folders(&loaded.config, folder)?;
            if loaded.config.backend.is_none() {
                // The check also fails if a host has started meanwhile and writes to the files.
                EmbeddedNode::check(&folder.join(CHAIN)).map_err(|error| match is_in_use(folder) {
                    true => refuse(in_use(folder)),
                    false => chain_error(error),
                })?;
            }
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.map_err(super::no_threads)?.block_on(try_ports(loaded))
        }
    }
}

pub fn chain_error(error: EmbeddedError) -> RunError {
    failed("chain")(NodeError::from(error).into())
}

/// Checks that no file is in the place of the folders of the chain and the wallets.
pub fn check_folders(config: &Config, folder: &Path) -> Result<(), RunError> {
    for name in [chain_folder(config), "wallets"] {
        let path = folder.join(name);
        if path.metadata().is_ok_and(|metadata| !metadata.is_dir()) {
            return Err(RunError::Failed(format!("{} is not a folder", path.display())));
        }
    }
    Ok(())
}

/// The folder of the embedded chain, or of the node's headers.
fn chain_folder(config: &Config) -> &'static str {
    if config.backend.is_some() { "headers" } else { CHAIN }
}

/// Whether a host runs on this data folder.
fn is_in_use(folder: &Path) -> bool {
    is_locked(folder) || is_locked(folder.join(LOCK_FILE))
}

/// Listens on all ports at the same time, since two settings may name the same port.
async fn try_ports(loaded: &LoadedConfig) -> Result<(), RunError> {
    let config = &loaded.config;
    let (ports, sockets): (Vec<_>, Vec<_>) =
        config.listen().into_iter().partition(|address| !matches!(address, ListenAddress::Unix(_)));
    let refuse = |error: ListenError| listen_error(loaded, &error);
    for address in sockets {
        if let ListenAddress::Unix(path) = &address {
            try_unix(path).map_err(|source| refuse(ListenError::Bind { address: address.clone(), source }))?;
        }
    }
    let _rpc = match ports.is_empty() {
        true => Vec::new(),
        false => listen(&ports, config.rpc.listen.is_empty(), config.rpc.socket_mode).await.map_err(refuse)?,
    };
    let mut published = Vec::new();
    for one in config.notify.publications().unwrap_or_default() {
        let refuse = |error: io::Error| publish_error(loaded, &one.address, &error);
        match &one.endpoint {
            // A Unix socket replaces an abandoned one.
            ZmqEndpoint::Ipc(path) => may_create(path).map_err(refuse)?,
            ZmqEndpoint::Tcp(..) if published.iter().all(|(known, _)| *known != one.address) => {
                let bound = PubSocket::bind(&one.endpoint, 1).await;
                published.push((one.address.clone(), bound.map_err(refuse)?));
            }
            ZmqEndpoint::Tcp(..) => {}
        }
    }
    if let Some(metrics) = config.metrics.listen {
        TcpListener::bind(metrics).await.map_err(|error| metrics_error(loaded, metrics, &error))?;
    }
    Ok(())
}
