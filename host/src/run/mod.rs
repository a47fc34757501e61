//! `outrigger run`: listens, assembles the parts, serves, and stops the parts in order.

mod args;
mod backend;
mod backups;
mod bitcoin_conf;
mod check;
mod configuration;
mod confined;
mod limits;
mod log;
mod node_report;
mod parts;
mod places;
mod refusals;
mod reload;
mod requirements;
mod rights;
mod sources;
mod users;

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::net::SocketAddr;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jsonrpsee::core::middleware::RpcServiceT;
use jsonrpsee::server::middleware::rpc::RpcServiceBuilder;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::audit::AuditLog;
use crate::config::{ConfigError, LoadedConfig};
use crate::console::PAGES;
use crate::metrics::{self, MetricsServer, Standing};
use crate::observe::Observe;
use crate::quotas::{Bounded, Quotas};
use crate::router::PassedRest;
use crate::router::onward::Front;
use crate::{hooks, notify};
pub use args::{Before, RunArgs};
pub use check::check;
use configuration::configuration;
pub use configuration::{default_login, login as backend_login};
use limits::check_limits;
use log::{SetLog, init_log};
use outrigger_plugins::{memory, trust};
use outrigger_rpc::{
    Authenticator, CookieFile, EdgeFigures, Gateway, ListenAddress, NetworkThreads, Rest, RpcUser, STACK_BYTES, Server,
    ServerOptions, Workers, request_of,
};
use parking_lot::Mutex;
pub use parts::PLUGINS_FOLDER;
use parts::{Frame, Parts};
use refusals::{datadir_error, in_use, listen_error, metrics_error};
use reload::{Applied, Reloader, at_hangup};
pub use reload::{Reloaded, Reloading};
use users::users;

/// The network threads in addition to one per core. They do I/O and run inline methods; all other calls run on the pool.
const SPARE_NETWORK_THREADS: usize = 1;

/// Threads that accept connections and handle signals and metrics. They serve connections only while all network threads
/// are blocked.
const FRONT_THREADS: usize = 2;

/// How long stopping waits for network threads, and again for background tasks.
const RUNTIME_PATIENCE: Duration = Duration::from_secs(1);

/// Connections leave one in this many open files to wallets, the chain and plugins, but at most [`MOST_OTHER_FILES`].
const OTHER_FILES_PART: usize = 4;
const MOST_OTHER_FILES: usize = 1024;

/// The file in the network's data folder that lists the URLs on which the host listens, one per line.
pub const ADDRESS_FILE: &str = ".address";

/// The file in the network's data folder that holds the credentials of the cookie's user.
pub const COOKIE_FILE: &str = ".cookie";

#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("{0}")]
    Configuration(#[from] ConfigError),
    #[error("{0}")]
    Failed(String),
}

fn failed(what: &str) -> impl Fn(Box<dyn std::error::Error>) -> RunError + '_ {
    move |error| RunError::Failed(format!("{what}: {error}"))
}

/// Runs the host until it is stopped.
///
/// # Errors
/// The configuration is invalid, the start fails, or a required plugin failed while the host ran.
pub fn run(args: &RunArgs) -> Result<(), RunError> {
    check_limits(None)?;
    let loaded = configuration(args)?;
    let set_log = init_log(&loaded)?;
    check_limits(Some(&loaded.config))?;
    memory::give_back_large_blocks();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(FRONT_THREADS)
        .thread_stack_size(STACK_BYTES)
        .enable_all()
        .build()
        .map_err(no_threads)?;
    runtime.block_on(async { survive_large_files() })?;
    let users = users(&loaded, &sources::sources(args))?;
    let folder = data_folder(&loaded);
    // The lock is held while the host runs: two hosts must not share a data directory.
    let _lock = lock_folder(&folder).map_err(|error| datadir_error(&loaded, args, &error.to_string()))?;
    let network = NetworkThreads::start(network_threads()).map_err(no_threads)?;
    let frame = Frame::default();
    let parts =
        runtime.block_on(serve(Arc::new(loaded), args, users, &folder, &frame, network.workers.clone(), set_log));
    if let Ok(parts) = &parts {
        parts.stop();
    }
    // Plugin code that does not return must not keep the process alive.
    network.stop(RUNTIME_PATIENCE);
    runtime.shutdown_timeout(RUNTIME_PATIENCE);
    parts?;
    match frame.fatal.get() {
        Some(reason) => Err(RunError::Failed(reason.clone())),
        None => Ok(()),
    }
}

fn no_threads(error: std::io::Error) -> RunError {
    RunError::Failed(format!("cannot start the network threads: {error}"))
}

fn network_threads() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get) + SPARE_NETWORK_THREADS
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

/// Listens and serves until the host is stopped. While the parts are assembled, calls are answered with -28.
async fn serve(
    loaded: Arc<LoadedConfig>,
    args: &RunArgs,
    users: Vec<RpcUser>,
    folder: &Path,
    frame: &Frame,
    workers: Workers,
    set_log: SetLog,
) -> Result<Parts, RunError> {
    let rpc = &loaded.config.rpc;
    let tls = loaded.tls()?.map(Arc::new);
    let audit = open_audit(&loaded)?;
    let verdicts = audit.clone();
    // From here on, a signal stops the host in order instead of killing it.
    let stopping = stop_requested(frame.stop.subscribe())?;
    let cookie = CookieFile::create(folder.join(COOKIE_FILE)).map_err(|e| failed("cookie")(e.into()))?;
    let applied = Mutex::new(Applied::of(&loaded, &users));
    at_hangup(frame.reloading.clone())?;
    let known = users.into_iter().fold(Authenticator::default().with_cookie(&cookie), Authenticator::with_user);
    let observe = |service| Observe {
        service,
        methods: frame.gate.clone(),
        metrics: frame.metrics.clone(),
        active: frame.active.clone(),
        audit: audit.clone(),
    };
    let quotas = Quotas::new(&loaded.config.rpc.users, folder);
    let bounded = |service| Bounded { service: Arc::new(service), quotas: quotas.clone() };
    let service =
        RpcServiceBuilder::new().layer_fn(observe).layer_fn(bounded).service(Gateway::new(frame.gate.clone()));
    let of_plugins = Arc::new(observe(bounded(Gateway::new(frame.gate.clone()))));
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
        .map_err(|error| listen_error(&loaded, &error))?;
    let is_for_others = listen.iter().any(ListenAddress::is_for_others) || !rpc.trusted_proxies.is_empty();
    let has_console = rpc.console.unwrap_or(!is_for_others);
    let backend = loaded.config.backend.as_ref().filter(|backend| backend.rest_passthrough);
    let rest = backend.map(|backend| {
        let passed = PassedRest { gate: frame.gate.clone(), metrics: frame.metrics.clone() };
        let rest: Arc<dyn Rest> = Arc::new(passed);
        (rest, backend.rest_anonymous)
    });
    let options = ServerOptions {
        access: rpc.access(),
        tls: tls.clone(),
        rest,
        tips: Some(frame.hub.tips()),
        readiness: Some(frame.readiness()),
        pages: if has_console { &PAGES[..] } else { &[] },
        workers,
    };
    let server = Server::new(listeners, service, Arc::new(known), limits, options);
    if let Some(listen) = listen.iter().find(|listen| rpc.access().allowed.is_empty() && listen.is_for_others()) {
        tracing::warn!(%listen, "only this machine's clients are accepted: rpc.allow_from names no network");
    }
    let admit = Box::new(server.admission());
    let (addresses, edge) = (server.addresses.clone(), server.figures());
    for address in &addresses {
        tracing::info!(%address, "listening");
    }
    let urls: Vec<String> = addresses.iter().map(|address| address.url(tls.is_some())).collect();
    // The file is for `outrigger call`, which cannot use the addresses of proxies.
    let lines: String = urls.iter().filter(|url| !url.starts_with("proxy:")).map(|url| format!("{url}\n")).collect();
    if let Err(error) = std::fs::write(folder.join(ADDRESS_FILE), lines) {
        tracing::warn!(%error, "the file with the host's addresses cannot be written");
    }
    let (hub, stop, shutdown) = (frame.hub.clone(), frame.stop.clone(), loaded.config.notify.shutdownnotify.clone());
    let served = tokio::spawn(server.serve(async move {
        stopping.await;
        notify::tell(notify::STOPPING);
        // As in bitcoind, the program ends before anything stops.
        let _ = tokio::task::spawn_blocking(move || hooks::run("shutdownnotify", &shutdown, &[])).await;
        // These answer long polls and the node's open calls, and cancel long imports. A signal has not set `stop` yet.
        stop.send_replace(true);
        hub.stopping();
    }));
    let parts = match assemble(&loaded, args, folder, frame, edge).await {
        Ok(parts) => parts,
        Err(error) => {
            frame.stop.send_replace(true);
            // The server first answers the remaining clients.
            let _ = served.await;
            return Err(error);
        }
    };
    parts.switchboard.connect(Front {
        service: Box::new(move |call| {
            let service = of_plugins.clone();
            Box::pin(async move { service.call(request_of(call)).await })
        }),
        router: parts.router.clone(),
        audit: verdicts,
    });
    quotas.know(&parts.standing.wallets);
    // Set once, only here.
    let _ = frame.reloading.set(Reloader {
        args: reload::arguments(args, &loaded.config.network),
        sources: sources::sources(args),
        admit,
        quotas,
        set_log,
        audit,
        registry: parts.standing.plugins.clone(),
        started: loaded.table()?,
        applied,
    });
    frame.gate.open(parts.router.clone());
    // Set once, only here.
    let _ = frame.standing.set(parts.standing.clone());
    let outcome = tell_metrics(&loaded, frame, parts.standing.clone()).await;
    match &outcome {
        Err(_) => {
            frame.stop.send_replace(true);
        }
        Ok(metrics) => {
            let metrics = metrics.map(|metrics| format!(", metrics: http://{metrics}/metrics")).unwrap_or_default();
            let network = &loaded.config.network;
            let ready = format!("Outrigger is ready: {} ({network}, {}){metrics}", urls.join(" "), folder.display());
            // The host goes on if its standard output is closed.
            if let Err(error) = writeln!(std::io::stdout(), "{ready}") {
                tracing::warn!(%error, "standard output cannot be written; {ready}");
            }
            notify::tell(notify::READY);
            let program = loaded.config.notify.startupnotify.clone();
            tokio::task::spawn_blocking(move || hooks::run("startupnotify", &program, &[]));
        }
    }
    let drained = served.await.map_err(|_| RunError::Failed("the server of the RPC port was lost".to_owned()));
    match outcome.and(drained) {
        Ok(dropped) if dropped > 0 => {
            tracing::warn!(connections = dropped, "calls were cut off while stopping");
        }
        Ok(_) => {}
        Err(error) => {
            parts.stop();
            return Err(error);
        }
    }
    Ok(parts)
}

/// Assembles the parts on a thread that may block.
async fn assemble(
    loaded: &Arc<LoadedConfig>,
    args: &RunArgs,
    folder: &Path,
    frame: &Frame,
    edge: Arc<EdgeFigures>,
) -> Result<Parts, RunError> {
    let (loaded, args, folder, frame) = (loaded.clone(), args.clone(), folder.to_owned(), frame.clone());
    let assembled = tokio::task::spawn_blocking(move || Parts::assemble(&loaded, &args, &folder, &frame, edge)).await;
    assembled.unwrap_or_else(|_| Err(RunError::Failed("the start ended without a result".to_owned())))
}

/// Opens the metrics port, if configured, and returns its address. The port closes when the runtime stops.
async fn tell_metrics(
    loaded: &LoadedConfig,
    frame: &Frame,
    standing: Standing,
) -> Result<Option<SocketAddr>, RunError> {
    let Some(listen) = loaded.config.metrics.listen else { return Ok(None) };
    let failed = |error: std::io::Error| metrics_error(loaded, listen, &error);
    let asked = standing.clone();
    let registry = metrics::registry(&frame.metrics, standing);
    let server = MetricsServer::bind(listen, registry, move || asked.is_ready()).await.map_err(failed)?;
    let address = server.local_addr().map_err(failed)?;
    tokio::spawn(server.serve());
    Ok(Some(address))
}

fn data_folder(loaded: &LoadedConfig) -> PathBuf {
    loaded.config.datadir.join(loaded.folder_name())
}

fn open_audit(loaded: &LoadedConfig) -> Result<Option<Arc<AuditLog>>, ConfigError> {
    let Some(file) = &loaded.config.audit.file else { return Ok(None) };
    let log = AuditLog::open(file.to_path_buf(), loaded.config.audit.max_bytes, loaded.config.audit.keep);
    log.map(|log| Some(Arc::new(log))).map_err(|error| loaded.error("audit.file", "", error.to_string()))
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

/// Makes a write beyond the limit on the size of files (`ulimit -f`) fail, as on a full disk. By default, its signal kills the process.
fn survive_large_files() -> Result<(), RunError> {
    // The handler stays when the stream of signals is dropped.
    let handled = signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()));
    handled.map(drop).map_err(|error| RunError::Failed(format!("cannot handle SIGXFSZ: {error}")))
}

/// Registers signal handlers. Returns a future that completes at SIGTERM, SIGINT or a call of `stop`.
fn stop_requested(mut stop: watch::Receiver<bool>) -> Result<impl Future<Output = ()>, RunError> {
    let listen = |kind| signal(kind).map_err(|error| RunError::Failed(format!("cannot listen for signals: {error}")));
    let (mut terminate, mut interrupt) = (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = stop.wait_for(|stop| *stop) => {}
        }
    })
}

/// How many times the host tries to create the lock file, in case something removes it.
const LOCK_ATTEMPTS: usize = 10;

const LOCK_FILE: &str = ".lock";

pub struct FolderLock {
    /// The lock of the directory itself. Unlike a lock file, it cannot be bypassed by unlinking.
    _folder: File,
    /// The lock of [`LOCK_FILE`], which earlier versions use.
    _file: File,
}

/// Locks the data directory, so that only one host uses it at a time.
///
/// # Errors
/// The directory is in use, other users may change it, or it cannot be opened.
pub fn lock_folder(folder: &Path) -> Result<FolderLock, RunError> {
    let io = |error: std::io::Error| RunError::Failed(format!("{}: {error}", folder.display()));
    // The directory must be private: it holds keys, the cookie, and code that the host loads.
    trust::own_folder(folder).map_err(|error| RunError::Failed(error.to_string()))?;
    let in_use = || RunError::Failed(in_use(folder));
    let lock = |file: &File| flock(file, FlockOperation::NonBlockingLockExclusive);
    let of_folder = File::open(folder).map_err(io)?;
    match lock(&of_folder) {
        Err(Errno::WOULDBLOCK) => return Err(in_use()),
        // Some file systems cannot lock a directory.
        Err(error) => tracing::warn!(%error, "only the file .lock locks the data directory"),
        Ok(()) => {}
    }
    let path = folder.join(LOCK_FILE);
    let file = lock_file(&path, lock).map_err(|error| match error.kind() {
        ErrorKind::WouldBlock => in_use(),
        _ if path.symlink_metadata().is_ok() => RunError::Failed(format!("{}: {error}", path.display())),
        _ => io(error),
    })?;
    Ok(FolderLock { _folder: of_folder, _file: file })
}

/// Creates the lock file and locks it by `lock`. If a clean-up script removes the file before it is locked, another host could lock a new
/// one, so this creates the file again.
fn lock_file(path: &Path, lock: impl Fn(&File) -> rustix::io::Result<()>) -> std::io::Result<File> {
    // The system refuses to open a symbolic link, and does not wait for a reader of a FIFO.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let flags = flags.bits().cast_signed();
    for _ in 0..LOCK_ATTEMPTS {
        let file = File::options().write(true).create(true).truncate(false).custom_flags(flags).open(path)?;
        lock(&file)?;
        let locked = file.metadata()?.ino();
        if path.metadata().is_ok_and(|found| found.ino() == locked) {
            return Ok(file);
        }
    }
    Err(Errno::WOULDBLOCK.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_file_that_is_replaced_before_it_is_locked_is_created_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(LOCK_FILE);
        for replaced in [0, 1, LOCK_ATTEMPTS - 1, LOCK_ATTEMPTS] {
            let left = std::cell::Cell::new(replaced);
            let lock = |_: &File| {
                if left.get() > 0 {
                    left.set(left.get() - 1);
                    std::fs::remove_file(&path).unwrap();
                    File::create(&path).unwrap();
                }
                Ok(())
            };
            match lock_file(&path, lock) {
                Ok(file) => {
                    assert!(replaced < LOCK_ATTEMPTS, "{replaced}");
                    assert_eq!(file.metadata().unwrap().ino(), path.metadata().unwrap().ino(), "{replaced}");
                }
                Err(error) => assert_eq!((replaced, error.kind()), (LOCK_ATTEMPTS, ErrorKind::WouldBlock)),
            }
        }
    }
    #[test]
    fn a_lock_file_that_is_a_link_or_a_fifo_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (other, link, fifo) = (folder.path().join("other"), folder.path().join("link"), folder.path().join("fifo"));
        std::fs::write(&other, "text").unwrap();
        std::os::unix::fs::symlink(&other, &link).unwrap();
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        for path in [link, fifo] {
            assert!(lock_file(&path, |_| Ok(())).is_err(), "{}", path.display());
        }
        assert_eq!(std::fs::read_to_string(other).unwrap(), "text");
    }
}
