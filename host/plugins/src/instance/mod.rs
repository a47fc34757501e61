//! A running plugin: the library's table, the instance it made, and what the host gave it.
//!
//! Order of ends: no new call is routed to it, `quiesce`, every call answered, no thread inside, `stop`, `destroy`. An
//! instance that does not let its threads go is left behind: freeing it under them would be worse.

mod answers;
mod end;
mod life;
mod release;
pub mod start;

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use outrigger_abi::{HostTable, PluginTable, RawCall, STATUS_OK, UsedPlugin};
use outrigger_isolate::{Bounds, Confinement, Executable, RunnerStatus, Runners};
use outrigger_memory::wipe_stack;
use outrigger_sdk::manifest::{Manifest, MethodSpec};
use outrigger_service::events::Event;
use outrigger_service::wire;
use outrigger_values::RpcError;
use parking_lot::{Mutex, MutexGuard};

use super::calls::{Calls, Run};
use super::events::EventQueue;
use super::file::{FileError, PluginFile};
use super::grants::{Grant, ServiceSource};
use super::health::{Health, State};
use super::lane::Lane;
use answers::Context;
use life::Life;
pub use start::StartError;

/// How long after a call's deadline its code is looked for. Whoever waits for the answer has seen the deadline pass by then.
const GRACE: Duration = Duration::from_secs(1);

/// A plugin's code, opened: instances are made of it, now or again later.
pub struct LoadedLibrary {
    /// Its file, for the operator.
    pub file: PathBuf,
    /// The SHA-256 of the file's content, in hexadecimal.
    pub hash: String,
    /// The minor version of the ABI that it was built with.
    pub abi_minor: u32,
    /// What the plugin says of itself.
    pub manifest: Manifest,
    code: Code,
}

/// Where a plugin's code runs.
enum Code {
    /// In this process, by this table.
    InProcess(&'static PluginTable),
    /// In a process of its own, which opens this copy of the file.
    Isolated(PathBuf),
}

/// A library that was not loaded, of a plugin with these methods.
#[cfg(test)]
fn test_library(methods: &[&str]) -> Arc<LoadedLibrary> {
    use outrigger_sdk::{Call, Host, Plugin, Reply};

    struct Idle;

    impl Plugin for Idle {
        fn new(_: Host, _: serde_json::Map<String, serde_json::Value>) -> Result<Self, String> {
            Ok(Self)
        }
        fn call(&self, _: Call<'_>, _: Reply) {}
    }

    let methods: Vec<_> =
        methods.iter().map(|name| serde_json::json!({"name": name, "category": "Test", "help": ""})).collect();
    let manifest = serde_json::json!({"id": "idle", "version": "1", "summary": "", "methods": methods}).to_string();
    Arc::new(LoadedLibrary {
        file: PathBuf::new(),
        hash: String::new(),
        abi_minor: 0,
        manifest: Manifest::parse(manifest.as_bytes()).unwrap(),
        code: Code::InProcess(Box::leak(Box::new(outrigger_sdk::entry::plugin_table::<Idle>(0)))),
    })
}

impl LoadedLibrary {
    /// Opens a copy of the file in `copies`, or has the runners of an `isolated` plugin open it: then none of its code runs here.
    /// The file's content need not be kept.
    ///
    /// # Errors
    /// As of [`PluginFile::open`].
    pub fn open(file: PluginFile, copies: &Path, isolated: bool) -> Result<Self, FileError> {
        let code = if isolated { Code::Isolated(file.copy_into(copies)?) } else { Code::InProcess(file.open(copies)?) };
        let PluginFile { path, hash, header, manifest, .. } = file;
        Ok(Self { file: path, hash: hash.to_string(), abi_minor: header.abi_minor_built, manifest, code })
    }

    /// Whether its code runs in a process of its own.
    pub fn is_isolated(&self) -> bool {
        matches!(self.code, Code::Isolated(_))
    }
}

/// How an instance failed, for its supervisor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PluginFailure {
    /// A call or an event ended in a fault.
    Fault,
    /// None of the threads that it may take comes back.
    Stuck,
    /// Its process has ended, and no other is started.
    Crashed,
}

/// What an instance is started with.
pub struct Launch<'a> {
    /// Names it among all instances of this process.
    pub id: u64,
    /// Names the plugin among all plugins and instances of this process.
    pub owner: u64,
    /// Whether the operator trusts it: its inline methods run inline, and its answers are not checked to be JSON.
    pub trusted: bool,
    /// Whether the text of its panics is told.
    pub panic_text: bool,
    /// The services it may use.
    pub grants: &'a [Grant],
    /// Its options, checked and complete.
    pub options: serde_json::Map<String, serde_json::Value>,
    /// Where its services come from.
    pub services: &'a dyn ServiceSource,
    /// The calls in flight.
    pub calls: Arc<Calls>,
    /// How long a call may take that the manifest does not call long-running; none for as long as it likes.
    pub deadline: Option<Duration>,
    /// The longest answer, in bytes, that is taken from it where it is not trusted.
    pub max_answer_bytes: usize,
    /// How the plugin has fared so far, in this instance and earlier ones.
    pub health: Arc<Health>,
    /// How its runners have fared so far, where it is isolated.
    pub runners: Arc<RunnerStatus>,
    /// The program of its runners.
    pub executable: Arc<Executable>,
    /// What they are confined to.
    pub confinement: Option<Confinement>,
    /// What its process may use, where it is isolated.
    pub bounds: Bounds,
    /// Where failures are reported, with the instance's id.
    pub failures: Sender<(u64, PluginFailure)>,
}

/// An instance of a plugin.
pub struct Instance {
    /// Names it among all instances of this process.
    pub id: u64,
    /// Names the plugin among all plugins and instances of this process.
    pub owner: u64,
    /// Whether the operator trusts it: its inline methods run inline, and its answers are not checked to be JSON.
    pub trusted: bool,
    /// Its code.
    pub code: Arc<LoadedLibrary>,
    /// The services it was granted.
    pub grants: Vec<Grant>,
    /// How long a call may take that the manifest does not call long-running.
    pub deadline: Option<Duration>,
    /// How it and earlier instances of the plugin fare.
    pub health: Arc<Health>,
    /// Its events.
    pub events: Arc<EventQueue>,
    plugin: UsedPlugin,
    /// Its runners, where it is isolated.
    runners: Option<Arc<Runners>>,
    /// Tokens of calls that nobody waits for any more. Its reader has a thread of its own: behind the calls that they are
    /// to cancel, or behind another plugin's, such notices would come too late.
    cancels: Sender<u64>,
    /// Since when such a notice is being given.
    cancelling: Since,
    /// Since when an event is being delivered.
    delivering: Since,
    failures: Sender<(u64, PluginFailure)>,
    // A plugin's threads may hold pointers to these two beyond its end, so they are never freed.
    host_table: &'static HostTable,
    context: &'static Context,
}

/// Since when something is going on; none while it is not.
#[derive(Default)]
struct Since {
    /// Seldom, and every call asks.
    going_on: AtomicBool,
    since: Mutex<Option<Instant>>,
}

impl Since {
    /// Does something that counts as going on meanwhile.
    fn during<T>(&self, work: impl FnOnce() -> T) -> T {
        *self.lock() = Some(Instant::now());
        self.going_on.store(true, Ordering::Relaxed);
        let done = work();
        self.going_on.store(false, Ordering::Relaxed);
        *self.lock() = None;
        done
    }

    fn is_longer_than(&self, limit: Option<Duration>) -> bool {
        let longer = |since: Instant| limit.is_some_and(|limit| since.elapsed() > limit);
        self.going_on.load(Ordering::Relaxed) && self.lock().is_some_and(longer)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Instant>> {
        self.since.lock()
    }
}

/// The right to make one call on an instance: it does not end before its leases do.
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
    /// Takes the instance for a call; none once it drains.
    pub fn lease(self: &Arc<Self>) -> Option<Lease> {
        let serves = self.life().begin_lease();
        let lease = Lease(self.clone());
        serves.then_some(lease)
    }

    fn life(&self) -> &Life {
        &self.context.life
    }

    /// What the plugin says of itself.
    pub fn manifest(&self) -> &Manifest {
        &self.code.manifest
    }

    /// How it fares.
    pub fn state(&self) -> State {
        if self.has_crashed() {
            return State::Crashed;
        }
        State::of(self.context.recovery.is_pending(), self.stuck())
    }

    /// Whether its process has ended, and no other is started.
    pub fn has_crashed(&self) -> bool {
        self.runners.as_ref().is_some_and(|runners| runners.is_given_up())
    }

    /// Whether a call would wait for a process to be started.
    pub fn waits_for_runner(&self) -> bool {
        self.runners.as_ref().is_some_and(|runners| !runners.is_running())
    }

    /// How many of its calls, cancellations and events do not come to an end.
    pub fn stuck(&self) -> usize {
        let helpers = [&self.cancelling, &self.delivering];
        let longer = helpers.iter().filter(|since| since.is_longer_than(self.deadline)).count();
        self.context.calls.stuck(self.id) + longer
    }

    /// How many of its calls that may take long hold their thread for longer than others may.
    pub fn long_calls(&self) -> usize {
        self.context.calls.long(self.id)
    }

    /// How many of its calls wait for their answer.
    pub fn waiting(&self) -> usize {
        self.context.calls.waiting(self.id)
    }

    /// Enters the plugin, unless it is stopping.
    fn enter(&self) -> Option<Inside<'_>> {
        let may_enter = self.life().enter();
        let inside = Inside(self);
        may_enter.then_some(inside)
    }

    /// Runs a call on this thread, unless its client has gone. Its answer comes through the calls, now or later, and its
    /// `deadline` is kept by whoever waits there. Whether its code was found not to return in time, before it did.
    pub fn call(&self, token: u64, method: &MethodSpec, params: &[u8], lane: Lane) -> bool {
        if !self.context.calls.begin(token, Run { due: self.due(), lane }) {
            return false;
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
        self.end_call(token)
    }

    fn due(&self) -> Option<Instant> {
        self.deadline.and_then(|limit| Instant::now().checked_add(limit)?.checked_add(GRACE))
    }

    /// The code of a call has returned. Whether it was found not to, in time.
    fn end_call(&self, token: u64) -> bool {
        self.context.calls.end_unless_given_up(token).unwrap_or_else(|| {
            self.cancel(token);
            self.context.calls.end(token)
        })
    }

    /// A call as the plugin gets it.
    fn raw<'a>(&self, token: u64, method: &'a MethodSpec, params: &'a [u8]) -> RawCall<'a> {
        let deadline = self.deadline.filter(|_| !method.long_running);
        let deadline_ms = deadline.map(|deadline| u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX));
        RawCall { token, method: method.name.as_bytes(), params, deadline_ms }
    }

    fn enter_call(&self, token: u64, method: &MethodSpec, params: &[u8]) {
        let began = Instant::now();
        let status = self.plugin.call(&self.raw(token, method, params));
        self.health.spent(began.elapsed());
        if status != STATUS_OK {
            self.fail(token, "Internal error");
            self.fault(format!("the call of {} ended with status {status}", method.name));
        }
    }

    fn fail(&self, token: u64, message: &str) {
        self.health.failed(self.context.calls.answer(self.id, token, Err(RpcError::internal(message))));
    }

    /// The plugin's code ended in a fault: what it keeps may be damaged.
    fn fault(&self, what: String) {
        tracing::error!(plugin = self.manifest().id, "{what}: a fault of the plugin");
        self.context.recovery.fault();
        self.health.fault(what);
        self.tell_supervisor(PluginFailure::Fault);
    }

    /// A call's deadline has passed, and it was answered for the plugin.
    pub fn timed_out(&self, method: &str) {
        self.health.timeouts.fetch_add(1, Ordering::Relaxed);
        tracing::error!(plugin = self.manifest().id, method, "a call was not answered by its deadline");
    }

    /// Ends the process of an isolated plugin, whose calls are answered then and which goes on in another one. False where it has
    /// none of its own.
    pub fn end_runner(&self) -> bool {
        self.runners.as_ref().is_some_and(|runners| runners.kill("its calls did not end"))
    }

    /// The method of one of its calls.
    pub fn method_of(&self, token: u64) -> &str {
        self.context.method_of(token)
    }

    /// A call's code has not returned by its deadline. `share` is how many threads the plugin may take.
    pub fn does_not_return(&self, method: &str, share: usize) {
        tracing::error!(plugin = self.manifest().id, method, "a call has not returned by its deadline");
        if self.stuck() >= share {
            self.tell_supervisor(PluginFailure::Stuck);
        }
        if self.life().is_draining() {
            self.end_if_stuck();
        }
    }

    fn tell_supervisor(&self, failure: PluginFailure) {
        // Without a supervisor the process is at its end, or this is a test without one.
        let _ = self.failures.send((self.id, failure));
    }

    /// Leaves the notice that nobody waits for a call any more. Each call is cancelled at most once this way, so there are
    /// no more notices than calls.
    pub fn leave_cancel(&self, token: u64) {
        // Without the reader the instance is at its end.
        let _ = self.cancels.send(token);
    }

    /// Tells the plugin that nobody waits for a call any more.
    pub fn cancel(&self, token: u64) {
        if let Some(_inside) = self.enter() {
            let status = self.plugin.cancel(token);
            if status != STATUS_OK {
                self.fault(format!("a cancellation ended with status {status}"));
            }
        }
    }

    fn deliver(&self, event: &Event) {
        if let Some(_inside) = self.enter() {
            let bytes = wire::to_bytes(event);
            let status = self.plugin.event(&bytes);
            if status != STATUS_OK {
                self.fault(format!("an event ended with status {status}"));
            }
        }
    }
}

/// Answers a call that a panic of the host's own took away. Forgotten when there was none.
struct AnswerLost<'a> {
    instance: &'a Instance,
    token: u64,
}

impl Drop for AnswerLost<'_> {
    fn drop(&mut self) {
        self.instance.fail(self.token, "Internal error");
    }
}
