//! A running plugin: the library's table, its instance, and its services.
//!
//! An instance ends in this order: routing stops, `quiesce` runs, every call is answered, every thread leaves, `stop` and
//! `destroy` run. An instance with threads inside is leaked: they may still use its memory.

mod answers;
mod end;
mod life;
mod places;
pub mod start;

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use bitcoin::Network;
use outrigger_abi::{HostTable, PluginTable, RawCall, STATUS_OK, UsedPlugin};
use outrigger_isolate::{Executable, RunnerCode, RunnerStatus, Runners};
use outrigger_memory::wipe_stack;
use outrigger_sdk::manifest::{Manifest, MethodSpec};
use outrigger_service::events::Event;
use outrigger_service::wire;
use outrigger_sockets::{Listening, Sockets};
use outrigger_values::RpcError;
use parking_lot::Mutex;
use tokio::sync::OwnedSemaphorePermit;

use super::calls::{Answer, Calls, Run};
use super::events::EventQueue;
use super::file::{FileError, PluginFile};
use super::grants::{Grant, ServiceSource};
use super::health::{Health, State, returned};
use super::lane::Lane;
use super::linked::{BUILT_IN, Found, LIBRARY};
use crate::PluginConfig;
use answers::Context;
use life::Life;
use places::{Full, Places};
pub use start::StartError;

/// How long after a deadline a call's code counts as overdue. By then the client has its timeout.
const GRACE: Duration = Duration::from_secs(1);

/// A plugin's loaded code. Several instances can be made from it.
pub struct LoadedLibrary {
    /// `None` if its code is in the program.
    pub file: Option<PathBuf>,
    /// The SHA-256 of the file's content, in hexadecimal.
    pub hash: Option<String>,
    /// The minor version of the ABI that it was built with.
    pub abi_minor: u32,
    pub manifest: Manifest,
    code: Code,
}

enum Code {
    InProcess(&'static PluginTable),
    /// In its own process, which runs this code.
    Isolated(RunnerCode),
}

impl LoadedLibrary {
    /// Opens a copy of the file in `copies`, or takes the program's own code. An `isolated` plugin's copy is opened only by
    /// its runners, so none of its code runs here.
    pub fn of(found: Found, copies: &Path, isolated: bool) -> Result<Self, FileError> {
        match found {
            Found::File(file) => {
                let code = match isolated {
                    true => Code::Isolated(RunnerCode::Library(file.copy_into(copies)?)),
                    false => Code::InProcess(file.open(copies)?),
                };
                let PluginFile { path, hash, header, manifest, .. } = *file;
                let (file, hash) = (Some(path), Some(hash.to_string()));
                Ok(Self { file, hash, abi_minor: header.abi_minor_built, manifest, code })
            }
            Found::Linked(linked, manifest) => {
                let code = match isolated {
                    true => Code::Isolated(RunnerCode::Linked(linked.name.to_owned())),
                    false => Code::InProcess(linked.table),
                };
                let abi_minor = linked.table.abi_minor_built;
                Ok(Self { file: None, hash: None, abi_minor, manifest: *manifest, code })
            }
        }
    }

    /// Whether both were made from the same content for the same kind of process. Loaded code is never freed, so a new instance
    /// reuses it.
    pub fn is_same(&self, other: &Self) -> bool {
        (&self.file, &self.hash, self.is_isolated()) == (&other.file, &other.hash, other.is_isolated())
    }

    /// Where its code is: [`BUILT_IN`] or [`LIBRARY`].
    pub fn form(&self) -> &'static str {
        if self.file.is_some() { LIBRARY } else { BUILT_IN }
    }

    pub fn is_isolated(&self) -> bool {
        matches!(self.code, Code::Isolated(_))
    }
}

/// How an instance failed, for its supervisor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PluginFailure {
    /// A call or an event ended in a fault.
    Fault,
    /// All threads that it may use are lost.
    Stuck,
    /// Its process has ended and is not restarted.
    Crashed,
    /// Several of its processes in a row ended soon after their start, before they answered a call.
    Quarantined,
}

/// The release of Bitcoin Core whose answers clients expect now: the node's, which may be upgraded meanwhile. The lower 16
/// bits are the major release, the bits above them the deprecated features that the operator keeps.
pub type ReleaseSource = Arc<dyn Fn() -> u32 + Send + Sync>;

/// Arguments of [`Instance::start`].
pub struct Launch<'a> {
    /// Unique among all instances of this process.
    pub id: u64,
    /// The plugin's id among all plugins and instances of this process.
    pub owner: u64,
    pub config: &'a PluginConfig,
    /// Its options, validated and complete.
    pub options: serde_json::Map<String, serde_json::Value>,
    pub services: &'a dyn ServiceSource,
    pub release: ReleaseSource,
    pub calls: Arc<Calls>,
    /// The deadline of calls that are not long-running; `None` for no limit.
    pub deadline: Option<Duration>,
    /// Shared by all instances of the plugin.
    pub health: Arc<Health>,
    pub runners: Arc<RunnerStatus>,
    pub executable: Arc<Executable>,
    /// Its private folder, which is created if its manifest asks for it.
    pub folder: PathBuf,
    pub network: Network,
    /// Whether `plugin check` runs it: see [`outrigger_isolate::Launch::is_checked`]. The limits of its process do not apply then.
    pub is_checked: bool,
    /// The channel for failures, with the instance's id.
    pub failures: Sender<(u64, PluginFailure)>,
}

pub struct Instance {
    pub id: u64,
    /// The plugin's id among all plugins and instances of this process.
    pub owner: u64,
    pub trusted: bool,
    pub code: Arc<LoadedLibrary>,
    pub grants: Vec<Grant>,
    pub deadline: Option<Duration>,
    /// Shared by all instances of the plugin.
    pub health: Arc<Health>,
    pub events: Arc<EventQueue>,
    plugin: UsedPlugin,
    release: ReleaseSource,
    /// Its runners, if it is isolated.
    runners: Option<Arc<Runners>>,
    /// Places in its process for calls without a time limit, if it is isolated.
    long_places: Option<Places>,
    /// Tokens of cancelled calls, which a thread of the instance reads. In the pool, the notices would wait behind the calls
    /// to cancel or behind those of another plugin.
    cancels: Sender<u64>,
    /// When the current cancellation began.
    cancelling: Since,
    /// When the current delivery of an event began.
    delivering: Since,
    failures: Sender<(u64, PluginFailure)>,
    /// Closed when the instance ends.
    sockets: Mutex<Option<Sockets>>,
    // Never freed, since a plugin's threads may hold pointers to these two after its end.
    host_table: &'static HostTable,
    context: &'static Context,
}

/// The start time of an activity, while it is in progress: the nanoseconds since `epoch`, or 0. Every call reads it.
struct Since {
    epoch: Instant,
    nanoseconds: AtomicU64,
}

impl Since {
    fn new() -> Self {
        Self { epoch: Instant::now(), nanoseconds: AtomicU64::new(0) }
    }

    /// Runs `work` and marks the activity as in progress meanwhile.
    fn during<T>(&self, work: impl FnOnce() -> T) -> T {
        let began = u64::try_from(self.epoch.elapsed().as_nanos()).unwrap_or(u64::MAX).max(1);
        self.nanoseconds.store(began, Ordering::Relaxed);
        let done = work();
        self.nanoseconds.store(0, Ordering::Relaxed);
        done
    }

    fn is_longer_than(&self, limit: Option<Duration>) -> bool {
        let since = Duration::from_nanos(self.nanoseconds.load(Ordering::Relaxed));
        !since.is_zero() && limit.is_some_and(|limit| self.epoch.elapsed().saturating_sub(since) > limit)
    }
}

/// The right to make one call. The instance does not end before its leases.
pub struct Lease(Arc<Instance>);

impl Deref for Lease {
    type Target = Instance;
    fn deref(&self) -> &Instance {
        &self.0
    }
}

impl Clone for Lease {
    fn clone(&self) -> Self {
        // A lease holds the instance, whatever its stage.
        self.0.life().begin_lease();
        Self(self.0.clone())
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.0.life().end_lease();
    }
}

/// A thread inside the plugin.
struct Inside<'a>(&'a Instance);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.life().exit();
    }
}

impl Instance {
    /// Its listening sockets, which stay open while a caller holds them.
    pub fn listening(&self) -> Vec<Arc<Listening>> {
        self.sockets.lock().as_ref().map(|sockets| sockets.listening().to_vec()).unwrap_or_default()
    }

    /// A lease for a call; `None` while the instance drains.
    pub fn lease(self: &Arc<Self>) -> Option<Lease> {
        let serves = self.life().begin_lease();
        let lease = Lease(self.clone());
        serves.then_some(lease)
    }

    /// A lease for a call for which a call of this instance waits; `None` once the instance stops.
    pub fn lease_while_draining(self: &Arc<Self>) -> Option<Lease> {
        let serves = self.life().begin_lease_while_draining();
        let lease = Lease(self.clone());
        serves.then_some(lease)
    }

    fn life(&self) -> &Life {
        &self.context.life
    }

    pub fn manifest(&self) -> &Manifest {
        &self.code.manifest
    }

    pub fn state(&self) -> State {
        if self.has_crashed() {
            return State::Crashed;
        }
        State::of(self.context.recovery.is_pending(), self.stuck())
    }

    /// Whether its process has ended and is not restarted.
    pub fn has_crashed(&self) -> bool {
        self.runners.as_ref().is_some_and(|runners| runners.is_given_up())
    }

    /// Whether a call would wait for a process to start.
    pub fn waits_for_runner(&self) -> bool {
        self.runners.as_ref().is_some_and(|runners| !runners.is_running())
    }

    /// How many of its calls, cancellations and events are stuck.
    pub fn stuck(&self) -> usize {
        let helpers = [&self.cancelling, &self.delivering];
        let longer = helpers.iter().filter(|since| since.is_longer_than(self.deadline)).count();
        self.context.calls.stuck(self.id) + longer
    }

    /// How many of its long-running calls have exceeded the limit of other calls.
    pub fn long_calls(&self) -> usize {
        self.context.calls.long(self.id)
    }

    /// The place of a call without a time limit in an isolated plugin's process, until the call's code has returned. Such calls must
    /// leave places for others. A `nested` call, for which another one waits, gets none if none is free.
    ///
    /// # Errors
    /// No place becomes free within the plugin's time limit for other calls.
    pub async fn place_for(&self, method: &MethodSpec, nested: bool) -> Result<Option<OwnedSemaphorePermit>, String> {
        let places = self.long_places.as_ref().filter(|_| method.long_running || self.deadline.is_none());
        let Some(places) = places else { return Ok(None) };
        places.take(nested, self.deadline).await.map_err(|Full| self.context.note_full(&method.name, places.most))
    }

    /// How many of its calls are open.
    pub fn waiting(&self) -> usize {
        self.context.calls.waiting(self.id)
    }

    fn enter(&self) -> Option<Inside<'_>> {
        let may_enter = self.life().enter();
        let inside = Inside(self);
        may_enter.then_some(inside)
    }

    /// Runs a call on this thread, unless its client has gone. The answer goes to the table of calls, now or later; the
    /// waiting side enforces the deadline.
    pub fn call(&self, token: u64, method: &MethodSpec, params: &[u8], lane: Lane) {
        if !self.context.calls.begin(token, Run { due: self.due(), lane }) {
            return;
        }
        self.health.calls.fetch_add(1, Ordering::Relaxed);
        let lost = AnswerLost { instance: self, token };
        match self.enter() {
            Some(_inside) => {
                self.enter_call(token, method, params);
                if method.private_keys {
                    wipe_stack();
                }
            }
            None => self.fail(token, "The plugin is stopping"),
        }
        std::mem::forget(lost);
        if !self.context.calls.end_unless_given_up(token) {
            self.cancel(token);
            self.context.calls.end(token);
        }
    }

    fn due(&self) -> Option<Instant> {
        self.deadline.and_then(|limit| Instant::now().checked_add(limit)?.checked_add(GRACE))
    }

    fn enter_call(&self, token: u64, method: &MethodSpec, params: &[u8]) {
        let deadline = self.deadline.filter(|_| !method.long_running);
        let deadline_ms = deadline.map(|deadline| u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX));
        let (name, release) = (method.name.as_bytes(), Some((self.release)()));
        let began = Instant::now();
        let status = self.plugin.call(&RawCall { token, method: name, params, deadline_ms, release });
        self.health.spent(began.elapsed());
        if status != STATUS_OK {
            self.fail(token, "Internal error");
            self.fault(returned(&format!("the call of {}", method.name), status));
        }
    }

    fn fail(&self, token: u64, message: &str) {
        self.health.failed(self.context.calls.answer(self.id, token, Answer::Failed(RpcError::internal(message))));
    }

    /// The plugin's code faulted, so its state may be damaged.
    fn fault(&self, what: String) {
        tracing::error!(plugin = self.manifest().id, "a fault of the plugin: {what}");
        self.context.recovery.fault();
        self.health.fault(what);
        self.notify_supervisor(PluginFailure::Fault);
    }

    /// The host answered a call at its deadline.
    pub fn timed_out(&self, method: &str) {
        self.health.timeouts.fetch_add(1, Ordering::Relaxed);
        tracing::error!(plugin = self.manifest().id, method, "a call was not answered by its deadline");
    }

    /// Ends the process of an isolated plugin; its calls are answered and another process is started. Returns false if it
    /// has no process.
    pub fn end_runner(&self) -> bool {
        self.runners.as_ref().is_some_and(|runners| runners.kill("its calls did not end"))
    }

    pub fn method_of(&self, token: u64) -> Arc<str> {
        self.context.method_of(token)
    }

    /// A call's code has not returned by its deadline. `share` is how many threads the plugin may use.
    pub fn does_not_return(&self, method: &str, share: usize) {
        tracing::error!(plugin = self.manifest().id, method, "a call has not returned by its deadline");
        if self.stuck() >= share {
            self.notify_supervisor(PluginFailure::Stuck);
        }
        if self.life().is_draining() {
            self.end_if_stuck();
        }
    }

    fn notify_supervisor(&self, failure: PluginFailure) {
        // Fails at the end of the process, or in a test without a supervisor.
        let _ = self.failures.send((self.id, failure));
    }

    /// Queues the notice of a cancelled call. Each call is cancelled at most once this way, so the queue is bounded by
    /// the calls.
    pub fn leave_cancel(&self, token: u64) {
        // Fails only at the end of the instance.
        let _ = self.cancels.send(token);
    }

    /// Notifies the plugin of a cancelled call.
    pub fn cancel(&self, token: u64) {
        if let Some(_inside) = self.enter() {
            let status = self.plugin.cancel(token);
            if status != STATUS_OK {
                self.fault(returned("a cancellation", status));
            }
        }
    }

    fn deliver(&self, event: &Event) {
        if let Some(_inside) = self.enter() {
            let bytes = wire::to_bytes(event);
            let status = self.plugin.event(&bytes);
            if status != STATUS_OK {
                self.fault(returned("an event", status));
            }
        }
    }
}

/// Answers a call on drop, after a panic of the host. A call that ends regularly forgets it.
struct AnswerLost<'a> {
    instance: &'a Instance,
    token: u64,
}

impl Drop for AnswerLost<'_> {
    fn drop(&mut self) {
        self.instance.fail(self.token, "Internal error");
    }
}
