//! Starting an instance.
#![allow(unsafe_code)]

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SendError, channel};
use std::time::Duration;

use outrigger_abi::{ErrorKind, ExportedService, UsedPlugin, host_table};
use outrigger_base::rate::Rate;
use outrigger_isolate::{Bounds, Launch as RunnerLaunch, Proxy, RunnerStatus, Runners, max_long_calls};
use outrigger_sandbox::{Denial, Kind, Policy, Reach};
use outrigger_sdk::manifest::Manifest;
use outrigger_service::about::About;
use outrigger_service::events::Event;
use outrigger_service::{Events, HostInfo, Log, Metrics};
use outrigger_sockets::{Place, Sockets, SocketsError};
use outrigger_values::text::printable;
use parking_lot::Mutex;
use serde_json::Value;

use super::answers::{Context, NOTES_PER_SECOND};
use super::life::{Life, Stage};
use super::places::Places;
use super::{Code, Instance, Launch, LoadedLibrary, PluginFailure, Since};
use crate::about::AboutService;
use crate::answer::AnswerRules;
use crate::events::EventQueue;
use crate::grants::{self, Grant, GrantError, HOST, Holder, OWN_SERVICES, may_hold_secrets};
use crate::health::Recovery;
use crate::log::LogService;
use crate::trust::{TrustError, own_folder};
use outrigger_base::contain::contain;

/// The time limit for a library's constructors, and for `create`, `init` and `start` together.
const START_PATIENCE: Duration = Duration::from_secs(30);

/// The stack of a thread that starts a plugin, in bytes: as large as a call's.
const START_STACK_BYTES: usize = 8 << 20;

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Grant(#[from] GrantError),
    #[error("plugin '{0}' could not make an instance")]
    Create(String),
    #[error("plugin '{plugin}' refused to start: {reason}")]
    Refused { plugin: String, reason: String },
    /// The library's constructors, `create`, `init` or `start` did not return.
    #[error("plugin '{0}' did not start within {limit} s", limit = START_PATIENCE.as_secs())]
    TooLong(String),
    #[error("plugin '{plugin}': {source}")]
    Thread { plugin: String, source: std::io::Error },
    #[error("the folder of the plugin '{plugin}': {source}")]
    Folder { plugin: String, source: TrustError },
    #[error("plugin '{plugin}': {source}")]
    Sockets { plugin: String, source: SocketsError },
}

impl StartError {
    /// Whether the plugin's code failed without giving a reason.
    pub fn is_fault(&self) -> bool {
        matches!(self, Self::Refused { reason, .. } if reason.starts_with("status "))
    }
}

impl Instance {
    /// Makes an instance and starts it.
    ///
    /// # Errors
    /// Names the failed step. The host has then removed the instance, unless one of its functions does not return.
    pub fn start(code: &Arc<LoadedLibrary>, launch: Launch<'_>) -> Result<Arc<Self>, StartError> {
        let (plugin, config) = (code.manifest.id.clone(), launch.config);
        let (grants, trusted, max_answer) = (config.grants(), config.trusted, config.max_answer_bytes());
        grants::check(&code.manifest, grants)?;
        let timers = code.manifest.timers.clone();
        let events = EventQueue::new(code.manifest.events.clone(), timers, grants::known_wallets(grants));
        let mut reach = config.reach.clone();
        let folder = private_folder(code, &launch.folder, &mut reach)?;
        let sockets = sockets(&plugin, &launch, &mut reach)?;
        let bounds = if launch.is_checked { Bounds::NONE } else { config.bounds() };
        // The host must not open files for the plugin that the plugin must not open itself, unless it is trusted.
        let is_confined = config.sandbox != Policy::None && code.is_isolated() && !trusted;
        let (instance, max_store) = (launch.id, config.max_store());
        let life = Arc::new(Life::new());
        let is_ending = Arc::new({
            let life = life.clone();
            move || life.is_draining()
        });
        let confined = is_confined.then_some(&reach[..]);
        let holder = Holder { plugin: &plugin, instance, grants, reach: confined, max_store, is_ending };
        let socket = sockets.as_ref().map(|sockets| sockets.path().to_string_lossy().into_owned());
        let services = exported(&code.manifest, &launch, &holder, &events, (folder, socket))?;
        let runners: Arc<Runners> = Arc::default();
        let make = maker(code, &launch, &runners, reach, bounds);
        let context: &Context = Box::leak(Box::new(Context {
            id: launch.id,
            code: code.clone(),
            calls: launch.calls,
            health: launch.health.clone(),
            recovery: Recovery::default(),
            rules: if trusted { AnswerRules::Trusted } else { AnswerRules::Bounded(max_answer) },
            services,
            life,
            notes: Rate::per_second(NOTES_PER_SECOND),
        }));
        let (cancels, notices) = channel();
        let (isolated, status) = (code.is_isolated(), launch.runners.clone());
        let code = code.clone();
        let grants = grants.to_vec();
        let options = Value::Object(launch.options).to_string();
        let bring_up = move || {
            let instance = Arc::new(Self {
                plugin: make().ok_or_else(|| StartError::Create(code.manifest.id.clone()))?,
                id: launch.id,
                owner: launch.owner,
                trusted,
                release: launch.release,
                code,
                grants,
                deadline: launch.deadline,
                health: launch.health,
                runners: isolated.then_some(runners),
                long_places: isolated.then(|| Places::new(max_long_calls(bounds))),
                events,
                cancels,
                cancelling: Since::new(),
                delivering: Since::new(),
                failures: launch.failures,
                sockets: Mutex::new(sockets),
                host_table: Box::leak(Box::new(host_table(context))),
                context,
            });
            instance.init_and_start(&options).inspect_err(|_| instance.end()).map(|()| instance)
        };
        // An instance that started after the time limit is ended.
        let late = |outcome: Result<Arc<Self>, StartError>| outcome.iter().for_each(|instance| instance.end());
        let instance = in_time(&plugin, bring_up, late)??;
        if isolated {
            warn_missing(&plugin, &status);
        }
        instance.start_threads(notices).inspect_err(|_| instance.end())?;
        Ok(instance)
    }

    fn init_and_start(&self, options: &str) -> Result<(), StartError> {
        let begun = self.plugin.init(self.host_table, options.as_bytes()).and_then(|()| self.plugin.start());
        let Err((status, said)) = begun else { return Ok(()) };
        let mut reason = match &*said {
            [] => format!("status {status}"),
            // One line without control characters: it goes to the log.
            text => printable(&String::from_utf8_lossy(text)).into_owned(),
        };
        if reason == format!("status {}", ErrorKind::Internal as i32) {
            reason += ": the plugin panicked or failed internally";
        }
        Err(StartError::Refused { plugin: self.manifest().id.clone(), reason })
    }

    /// Starts the threads that deliver events and cancellations.
    fn start_threads(self: &Arc<Self>, notices: Receiver<u64>) -> Result<(), StartError> {
        self.life().advance(Stage::Serving);
        if let Some(lease) = self.lease() {
            // The thread ends when the queue is closed, and its lease keeps the instance until then.
            let deliver = move || {
                let event = |event: Event| lease.delivering.during(|| lease.deliver(&event));
                lease.events.run(event);
            };
            self.spawn("events", deliver)?;
        }
        let instance = Arc::downgrade(self);
        let cancel = move || {
            for token in notices {
                if let Some(instance) = instance.upgrade() {
                    contain("cancelling a call", || instance.cancelling.during(|| instance.cancel(token)));
                }
            }
        };
        self.spawn("cancel", cancel).map(drop).inspect_err(|_| self.events.close())
    }

    pub(super) fn spawn(
        &self,
        purpose: &str,
        work: impl FnOnce() + Send + 'static,
    ) -> Result<std::thread::JoinHandle<()>, StartError> {
        let plugin = self.manifest().id.clone();
        let builder = std::thread::Builder::new().name(format!("{purpose}-{plugin}"));
        builder.spawn(work).map_err(|source| StartError::Thread { plugin, source })
    }
}

/// Runs plugin code on its own thread, since it might never return. A result after the time limit goes to `late`, on that
/// thread.
///
/// # Errors
/// `TooLong`; `Thread` if the system refuses one; `Refused` if the host panicked in `work`.
pub fn in_time<T: Send + 'static>(
    plugin: &str,
    work: impl FnOnce() -> T + Send + 'static,
    late: impl FnOnce(T) + Send + 'static,
) -> Result<T, StartError> {
    let (done, outcome) = channel();
    let work = move || {
        if let Err(SendError(unheard)) = done.send(work()) {
            late(unheard);
        }
    };
    let thread = std::thread::Builder::new().name(format!("start-{plugin}")).stack_size(START_STACK_BYTES);
    thread.spawn(work).map_err(|source| StartError::Thread { plugin: plugin.to_owned(), source })?;
    outcome.recv_timeout(START_PATIENCE).map_err(|error| match error {
        RecvTimeoutError::Timeout => StartError::TooLong(plugin.to_owned()),
        RecvTimeoutError::Disconnected => {
            StartError::Refused { plugin: plugin.to_owned(), reason: "its start ended without a result".to_owned() }
        }
    })
}

/// Makes the plugin's instance in this process, or its proxy.
fn maker(
    code: &Arc<LoadedLibrary>,
    launch: &Launch<'_>,
    runners: &Arc<Runners>,
    reach: Vec<Reach>,
    bounds: Bounds,
) -> Box<dyn FnOnce() -> Option<UsedPlugin> + Send> {
    match &code.code {
        Code::InProcess(table) => {
            let table = *table;
            // SAFETY: a plugin's table, whose library is never closed or is the program.
            Box::new(move || unsafe { UsedPlugin::create(table) })
        }
        Code::Isolated(runs) => {
            let (failures, id, health) = (launch.failures.clone(), launch.id, launch.health.clone());
            let (calls, config) = (launch.calls.clone(), launch.config);
            let inline = code.manifest.methods.iter().filter(|method| method.inline);
            let launch = RunnerLaunch {
                plugin: code.manifest.id.clone(),
                code: runs.clone(),
                services: config.grants().iter().map(|grant| grant.service.clone()).chain([HOST.to_owned()]).collect(),
                restartable: code.manifest.restartable,
                is_checked: launch.is_checked,
                inline: inline.map(|method| method.name.clone()).collect(),
                max_answer: if config.trusted { usize::MAX } else { config.max_answer_bytes() },
                executable: launch.executable.clone(),
                policy: config.sandbox,
                reach,
                bounds,
                status: launch.runners.clone(),
                runners: runners.clone(),
                depth: Box::new(move |token| calls.depth(token)),
                crashed: Box::new(move |crash| health.crashed(crash)),
                given_up: Box::new(move |in_quarantine| {
                    let failure = if in_quarantine { PluginFailure::Quarantined } else { PluginFailure::Crashed };
                    let _ = failures.send((id, failure));
                }),
            };
            Box::new(move || Proxy::instance(launch))
        }
    }
}

/// Logs which parts of an isolated plugin's sandbox are missing.
fn warn_missing(plugin: &str, status: &RunnerStatus) {
    let missing = status.read().enforced.map(|held| held.missing).unwrap_or_default();
    if !missing.is_empty() {
        let missing = missing.join("; ");
        tracing::warn!(plugin, missing, "this system does not allow all of the sandbox around the plugin's process");
    }
}

/// The services of an instance: the granted ones, with its own `events/1`, `log/1` and `metrics/1`, and `host/1`.
fn exported(
    manifest: &Manifest,
    launch: &Launch<'_>,
    holder: &Holder<'_>,
    events: &Arc<EventQueue>,
    (folder, sockets): (Option<String>, Option<String>),
) -> Result<HashMap<String, Arc<ExportedService>>, GrantError> {
    let (plugin, config) = (manifest.id.as_str(), launch.config);
    let [own_events, own_log, own_metrics] = OWN_SERVICES;
    let service = |grant: &Grant| {
        let service = match grant.service.as_str() {
            name if name == own_events => Some(Arc::new(ExportedService::new::<dyn Events>(events.clone()))),
            name if name == own_log => {
                let tells_panics = config.panic_text || !may_hold_secrets(config.grants(), manifest);
                let log = LogService::new(plugin, config.trusted, tells_panics, config.log);
                Some(Arc::new(ExportedService::new::<dyn Log>(Arc::new(log))))
            }
            name if name == own_metrics => {
                Some(Arc::new(ExportedService::new::<dyn Metrics>(launch.health.metrics.clone())))
            }
            name => launch.services.export(name, holder),
        };
        let missing = || GrantError::no_service(plugin, &grant.service);
        service.map(|service| (grant.service.clone(), service)).ok_or_else(missing)
    };
    let mut services: HashMap<_, _> = config.grants().iter().map(service).collect::<Result<_, _>>()?;
    let about = About {
        plugin: plugin.to_owned(),
        network: launch.network,
        release: 0,
        folder,
        deadline_seconds: launch.deadline.map(|deadline| deadline.as_secs()),
        max_answer_bytes: (!config.trusted).then_some(config.max_answer_bytes() as u64),
        sockets,
    };
    let (release, calls, instance) = (launch.release.clone(), launch.calls.clone(), launch.id);
    let about = AboutService { about, release, calls, instance };
    services.insert(HOST.to_owned(), Arc::new(ExportedService::new::<dyn HostInfo>(Arc::new(about))));
    Ok(services)
}

/// Creates the folder that the plugin's manifest asks for, and allows an isolated plugin to reach it.
fn private_folder(code: &LoadedLibrary, folder: &Path, reach: &mut Vec<Reach>) -> Result<Option<String>, StartError> {
    if !code.manifest.folder {
        return Ok(None);
    }
    let failed = |source| StartError::Folder { plugin: code.manifest.id.clone(), source };
    own_folder(folder).map_err(failed)?;
    // An absolute path without links, as the sandbox requires.
    let folder = folder.canonicalize().map_err(|source| failed(TrustError::Io { path: folder.to_owned(), source }))?;
    reach.push(Reach::Write(folder.clone()));
    Ok(Some(folder.to_string_lossy().into_owned()))
}

/// Opens the connections and listening sockets of a plugin's `reach`, and allows an isolated plugin to use them.
fn sockets(plugin: &str, launch: &Launch<'_>, reach: &mut Vec<Reach>) -> Result<Option<Sockets>, StartError> {
    let (status, rate, id) = (launch.runners.clone(), Rate::per_second(NOTES_PER_SECOND), plugin.to_owned());
    let denied = move |entry: &str| {
        let (call, argument) = entry.split_once(':').unwrap_or(("connect", entry));
        let kind = if call == "listen" { Kind::Socket } else { Kind::Connect };
        let denial = Denial::new(kind, if call == "listen" { call } else { "connect" }, argument);
        status.denied(&denial);
        if rate.allows(drop) {
            tracing::warn!(
                plugin = id,
                kind = kind.name(),
                "the host denied the plugin: {denial}; its reach has no such entry"
            );
        }
    };
    let place = if launch.is_checked { Place::Free } else { Place::Entry };
    let sockets = Sockets::open(plugin, reach, place, Box::new(denied));
    let sockets = sockets.map_err(|source| StartError::Sockets { plugin: plugin.to_owned(), source })?;
    reach.extend(sockets.as_ref().map(|sockets| Reach::Unix(sockets.path().to_owned())));
    Ok(sockets)
}
