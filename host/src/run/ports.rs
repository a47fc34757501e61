//! Opens the addresses on which the host listens.

use std::path::Path;
use std::sync::Arc;

use outrigger_rpc::{Authenticator, ListenAddress, RpcService, Server, ServerOptions, Tls, Workers};

use super::RunError;
use super::parts::Frame;
use super::refusals::listen_error;
use crate::config::LoadedConfig;
use crate::console::PAGES;
use crate::router::passed_rest;

/// Connections leave one in this many open files to wallets, the chain and plugins, but at most [`MOST_OTHER_FILES`].
const OTHER_FILES_PART: usize = 4;
const MOST_OTHER_FILES: usize = 1024;

/// The file in the network's data folder that lists the URLs on which the host listens, one per line.
pub const ADDRESS_FILE: &str = ".address";

/// Listens on the configured addresses. Connections wait until the server serves.
pub async fn open<S: RpcService>(
    loaded: &LoadedConfig,
    folder: &Path,
    frame: &Frame,
    service: S,
    known: Authenticator,
    (workers, tls): (Workers, Option<Tls>),
) -> Result<Server<S>, RunError> {
    let rpc = &loaded.config.rpc;
    let mut limits = rpc.limits();
    limits.max_connections = connections(limits.max_connections, raise_file_limit());
    let mut listen = loaded.config.listen();
    if tls.is_some() {
        listen.extend(own_socket(&listen, folder));
    }
    // The default addresses include IPv6, which not every machine has.
    let may_lack_ipv6 = rpc.listen.is_empty();
    let listeners = outrigger_rpc::listen(&listen, may_lack_ipv6, rpc.socket_mode)
        .await
        .map_err(|error| listen_error(loaded, &error))?;
    let other = listen.iter().find(|listen| listen.is_for_others());
    let has_console = rpc.console.unwrap_or(other.is_none() && rpc.trusted_proxies.is_empty());
    let backend = loaded.config.backend.as_ref().filter(|backend| backend.rest_passthrough);
    let rest = backend.map(|backend| (passed_rest(frame.gate.clone(), frame.metrics.clone()), backend.rest_anonymous));
    let options = ServerOptions {
        access: rpc.access(),
        tls: tls.map(Arc::new),
        rest,
        tips: Some(frame.hub.tips()),
        readiness: Some(frame.readiness()),
        pages: if has_console { &PAGES[..] } else { &[] },
        workers,
    };
    if let Some(listen) = other.filter(|_| rpc.access().allowed.is_empty()) {
        tracing::warn!(%listen, "only this machine's clients are accepted: rpc.allow_from names no network");
    }
    Ok(Server::new(listeners, service, Arc::new(known), limits, options))
}

/// Logs the addresses of the server, and writes them to [`ADDRESS_FILE`]. Returns them as URLs.
pub fn tell<S: RpcService>(server: &Server<S>, has_tls: bool, folder: &Path) -> Vec<String> {
    for address in &server.addresses {
        tracing::info!(%address, "listening");
    }
    let urls: Vec<String> = server.addresses.iter().map(|address| address.url(has_tls)).collect();
    // The file is for `outrigger call`, which cannot use the addresses of proxies.
    let lines: String = urls.iter().filter(|url| !url.starts_with("proxy:")).map(|url| format!("{url}\n")).collect();
    if let Err(error) = std::fs::write(folder.join(ADDRESS_FILE), lines) {
        tracing::warn!(%error, "the file with the host's addresses cannot be written");
    }
    urls
}

/// The socket in the data folder that lets commands on this machine work without a certificate; `None` if a socket is configured.
fn own_socket(listen: &[ListenAddress], folder: &Path) -> Option<ListenAddress> {
    let is_configured = listen.iter().any(|address| matches!(address, ListenAddress::Unix(_)));
    let socket = ListenAddress::Unix(folder.join(".rpc.sock"));
    if !is_configured && !socket.is_possible() {
        tracing::warn!(%socket, "a socket's path is too long: commands on this machine need the host's certificate");
    }
    (!is_configured && socket.is_possible()).then_some(socket)
}

/// Raises the soft limit of open files to the hard limit, since every connection is an open file. Returns the new limit.
fn raise_file_limit() -> Option<u64> {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // If this fails, the host accepts fewer connections.
    let _ = setrlimit(Resource::Nofile, limit);
    getrlimit(Resource::Nofile).current
}

/// The most connections that the limit of open files allows: without free files, authenticated connections could not
/// displace others, and no wallet could be loaded.
fn connections(allowed: usize, files: Option<u64>) -> usize {
    let files = files.and_then(|files| usize::try_from(files).ok()).unwrap_or(usize::MAX);
    let room = (files - (files / OTHER_FILES_PART).min(MOST_OTHER_FILES)).max(1);
    if room < allowed {
        tracing::warn!(
            "rpc.max_connections" = allowed,
            files,
            "at most {room} connections are taken, as the system lets this process open few files"
        );
    }
    allowed.min(room)
}
