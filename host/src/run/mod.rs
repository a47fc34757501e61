//! `outrigger run`: listens, assembles the parts, serves, and stops the parts in order.

mod args;
mod backend;
mod backups;
mod bitcoin_conf;
mod check;
mod configuration;
mod confined;
mod limits;
mod lock;
mod log;
mod node_report;
mod parts;
mod places;
mod ports;
mod refusals;
mod reload;
mod requirements;
mod rights;
mod sources;
mod users;

use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jsonrpsee::core::middleware::RpcServiceT;
use jsonrpsee::server::middleware::rpc::RpcServiceBuilder;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::audit::AuditLog;
use crate::config::{ConfigError, LoadedConfig};
use crate::metrics::{self, Standing};
use crate::observe::{Methods, Observe};
use crate::quotas::{Bounded, Quotas};
use crate::router::StartupGate;
use crate::router::onward::Front;
use crate::{hooks, notify};
pub use args::{Before, RunArgs};
pub use check::check;
use configuration::configuration;
pub use configuration::{default_login, login as backend_login};
use limits::check_limits;
pub use lock::lock_folder;
use log::{SetLog, init_log};
use outrigger_plugins::memory;
use outrigger_rpc::{
    Authenticator, CookieFile, EdgeFigures, Gateway, NetworkThreads, RpcUser, STACK_BYTES, Workers, request_of,
};
use parking_lot::Mutex;
pub use parts::PLUGINS_FOLDER;
use parts::{Frame, Parts};
pub use ports::ADDRESS_FILE;
use refusals::{datadir_error, metrics_error};
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

/// The layers through which every call of clients and plugins goes.
type Layers = Observe<Bounded<Gateway<StartupGate>>>;

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
    let tls = loaded.tls()?;
    let has_tls = tls.is_some();
    let audit = open_audit(&loaded)?;
    // From here on, a signal stops the host in order instead of killing it.
    let stopping = stop_requested(frame.stop.subscribe())?;
    let cookie = CookieFile::create(folder.join(COOKIE_FILE)).map_err(|e| failed("cookie")(e.into()))?;
    let applied = Mutex::new(Applied::of(&loaded, &users));
    at_hangup(frame.reloading.clone())?;
    let known = users.into_iter().fold(Authenticator::default().with_cookie(&cookie), Authenticator::with_user);
    let quotas = Quotas::new(&loaded.config.rpc.users, folder);
    let server = ports::open(&loaded, folder, frame, layers(frame, &audit, &quotas), known, (workers, tls)).await?;
    let (admit, edge) = (Box::new(server.admission()), server.figures());
    let urls = ports::tell(&server, has_tls, folder);
    let served = tokio::spawn(server.serve(stop_in_order(stopping, &loaded, frame)));
    let parts = match assemble(&loaded, args, folder, frame, audit.clone(), edge).await {
        Ok(parts) => parts,
        Err(error) => {
            frame.stop.send_replace(true);
            // The server first answers the remaining clients.
            let _ = served.await;
            return Err(error);
        }
    };
    let of_plugins = Arc::new(layers(frame, &audit, &quotas));
    parts.switchboard.connect(Front {
        service: Box::new(move |call| {
            let service = of_plugins.clone();
            Box::pin(async move { service.call(request_of(call)).await })
        }),
        router: parts.router.clone(),
        audit: audit.clone(),
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
        Ok(metrics) => tell_ready(&loaded, folder, &urls, *metrics),
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

fn layers(frame: &Frame, audit: &Option<Arc<AuditLog>>, quotas: &Arc<Quotas>) -> Layers {
    let gate = frame.gate.clone();
    let methods: Methods = Arc::new(move |method| gate.router()?.spec(method));
    let observe = |service| Observe {
        service,
        methods: methods.clone(),
        metrics: frame.metrics.clone(),
        active: frame.active.clone(),
        audit: audit.clone(),
    };
    let bounded = |service| Bounded { service: Arc::new(service), quotas: quotas.clone() };
    RpcServiceBuilder::new().layer_fn(observe).layer_fn(bounded).service(Gateway::new(frame.gate.clone()))
}

/// Waits for the request to stop, and starts the stop of all parts.
fn stop_in_order<F: Future<Output = ()>>(
    stopping: F,
    loaded: &LoadedConfig,
    frame: &Frame,
) -> impl Future<Output = ()> + use<F> {
    let (hub, stop, shutdown) = (frame.hub.clone(), frame.stop.clone(), loaded.config.notify.shutdownnotify.clone());
    async move {
        stopping.await;
        notify::tell(notify::STOPPING);
        // As in bitcoind, the program ends before anything stops.
        let _ = tokio::task::spawn_blocking(move || hooks::run("shutdownnotify", &shutdown, &[])).await;
        // These answer long polls and the node's open calls, and cancel long imports. A signal has not set `stop` yet.
        stop.send_replace(true);
        hub.stopping();
    }
}

/// Tells the operator, the service manager and the configured program that the host is ready.
fn tell_ready(loaded: &LoadedConfig, folder: &Path, urls: &[String], metrics: Option<SocketAddr>) {
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

/// Assembles the parts on a thread that may block.
async fn assemble(
    loaded: &Arc<LoadedConfig>,
    args: &RunArgs,
    folder: &Path,
    frame: &Frame,
    audit: Option<Arc<AuditLog>>,
    edge: Arc<EdgeFigures>,
) -> Result<Parts, RunError> {
    let (loaded, args, folder, frame) = (loaded.clone(), args.clone(), folder.to_owned(), frame.clone());
    let assembled =
        tokio::task::spawn_blocking(move || Parts::assemble(&loaded, &args, &folder, &frame, audit, edge)).await;
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
    let listener = TcpListener::bind(listen).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    tokio::spawn(metrics::serve(listener, metrics::Pages::new(&frame.metrics, standing)));
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
