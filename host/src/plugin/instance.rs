//! A running plugin: the library's table, the instance it made, and what the host gave it.
//!
//! Order of ends: no new call, `quiesce`, the events' thread ended, no thread inside, `stop`, `destroy`. An instance
//! that does not let its threads go is left behind: freeing it under them would be worse.
#![allow(unsafe_code)]

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::Bytes as SharedBytes;
use outrigger_sdk::abi::{
    ABI_MAJOR, ABI_MINOR, Bytes, CallFrame, ExportedService, HostTable, OwnedBytes, PluginTable, STATUS_OK,
    ServiceTable,
};
use outrigger_sdk::manifest::Manifest;
use outrigger_sdk::service::events::Event;
use outrigger_sdk::service::{ErrorKind, Events, Log};
use outrigger_sdk::{Code, RpcError, wire};
use serde_json::{Map, Value};

use super::calls::{Answer, Calls};
use super::events::{EventQueue, EventsService};
use super::file::PluginFile;
use super::log::LogService;

/// How often stopping looks whether threads are still inside the plugin.
const DRAIN_STEP: Duration = Duration::from_millis(2);

/// Why a plugin could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// It needs a service that its configuration does not grant.
    #[error("plugin '{plugin}' needs the service {service}, which its 'grants' do not list")]
    NotGranted {
        /// The plugin.
        plugin: String,
        /// The service.
        service: String,
    },
    /// It needs, or is granted, a service that this host does not have.
    #[error("plugin '{plugin}': this host has no service {service}")]
    NoService {
        /// The plugin.
        plugin: String,
        /// The service.
        service: String,
    },
    /// It made no instance.
    #[error("plugin '{0}' could not make an instance")]
    Create(String),
    /// Its `init` or `start` refused.
    #[error("plugin '{plugin}' refused to start: {reason}")]
    Refused {
        /// The plugin.
        plugin: String,
        /// What it said.
        reason: String,
    },
    /// The system gave no thread.
    #[error("plugin '{plugin}': {source}")]
    Thread {
        /// The plugin.
        plugin: String,
        /// What the system said.
        source: std::io::Error,
    },
}

/// What a plugin's functions did so far.
#[derive(Default)]
pub struct Statistics {
    /// Calls begun.
    pub calls: AtomicU64,
    /// Calls whose code ended in a fault.
    pub faults: AtomicU64,
    /// Time inside the plugin's `call`, in nanoseconds.
    pub nanoseconds: AtomicU64,
}

/// What `HostTable::ctx` points to.
struct Context {
    id: u64,
    calls: Arc<Calls>,
    services: HashMap<String, Arc<ExportedService>>,
}

/// An instance of a plugin.
pub struct Instance {
    /// Names it among all instances of this process.
    pub id: u64,
    /// What the plugin says of itself.
    pub manifest: Manifest,
    /// Its file, for the operator.
    pub file: std::path::PathBuf,
    /// The SHA-256 of the file's content, in hexadecimal.
    pub hash: String,
    /// The services it was granted.
    pub grants: Vec<String>,
    /// What its functions did so far.
    pub statistics: Statistics,
    /// Its events.
    pub events: Arc<EventQueue>,
    table: &'static PluginTable,
    handle: *mut c_void,
    inside: AtomicU64,
    /// No further call may enter.
    closed: AtomicBool,
    /// Nothing may enter.
    stopping: AtomicBool,
    deliverer: Mutex<Option<JoinHandle<()>>>,
    // A plugin's threads may hold pointers to these two beyond its end, so they are never freed.
    host_table: &'static HostTable,
    context: &'static Context,
}

// SAFETY: the ABI demands that a plugin's functions may be called from any thread; the tables are only read.
unsafe impl Send for Instance {}
// SAFETY: as above.
unsafe impl Sync for Instance {}

/// The services of the host that are the same for every plugin, by name.
pub type SharedServices = HashMap<String, Arc<ExportedService>>;

unsafe extern "C" fn find_service(ctx: *const c_void, name: Bytes) -> *const ServiceTable {
    // SAFETY: `ctx` is the instance's context, which outlives it.
    let context = unsafe { &*ctx.cast::<Context>() };
    // SAFETY: the plugin lends its name until we return.
    let name = unsafe { name.as_slice() };
    let service = std::str::from_utf8(name).ok().and_then(|name| context.services.get(name));
    service.map_or(std::ptr::null(), |service| service.table())
}

unsafe extern "C" fn reply(ctx: *const c_void, token: u64, code: i32, body: OwnedBytes) -> i32 {
    // SAFETY: as above.
    let context = unsafe { &*ctx.cast::<Context>() };
    let answer: Answer = match code {
        0 if !is_json(&body) => Err(RpcError::internal("The plugin's answer is not JSON")),
        0 => Ok(SharedBytes::from_owner(body)),
        code => Err(RpcError::new(Code(code), String::from_utf8_lossy(&body).into_owned())),
    };
    if context.calls.answer(context.id, token, answer) { STATUS_OK } else { ErrorKind::Stale as i32 }
}

unsafe extern "C" fn wanted(ctx: *const c_void, token: u64) -> i32 {
    // SAFETY: as above.
    let context = unsafe { &*ctx.cast::<Context>() };
    i32::from(context.calls.is_waiting(context.id, token))
}

impl Instance {
    /// Opens the file and brings an instance up to where calls may follow.
    pub fn start(
        id: u64,
        file: &PluginFile,
        table: &'static PluginTable,
        grants: &[String],
        options: &Map<String, Value>,
        shared: &SharedServices,
        calls: Arc<Calls>,
    ) -> Result<Arc<Self>, StartError> {
        let plugin = file.manifest.id.clone();
        let events = EventQueue::new(file.manifest.events.clone());
        let services = grant(&plugin, grants, shared, &events)?;
        let context: &Context = Box::leak(Box::new(Context { id, calls, services }));
        let host_table = Box::leak(Box::new(HostTable {
            struct_size: size_of::<HostTable>(),
            abi_major: ABI_MAJOR,
            abi_minor: ABI_MINOR,
            ctx: (&raw const *context).cast(),
            service: find_service,
            reply,
            wanted,
        }));
        // SAFETY: `create` takes nothing and may be called on any thread.
        let handle = table.create.map_or(std::ptr::null_mut(), |create| unsafe { create() });
        if handle.is_null() {
            return Err(StartError::Create(plugin));
        }
        let instance = Arc::new(Self {
            id,
            manifest: file.manifest.clone(),
            file: file.path.clone(),
            hash: file.hash.to_string(),
            grants: grants.to_vec(),
            statistics: Statistics::default(),
            events,
            table,
            handle,
            inside: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            deliverer: Mutex::new(None),
            host_table,
            context,
        });
        instance.bring_up(options)?;
        Ok(instance)
    }

    fn bring_up(self: &Arc<Self>, options: &Map<String, Value>) -> Result<(), StartError> {
        let options = Value::Object(options.clone()).to_string();
        let mut error = OwnedBytes::EMPTY;
        let (handle, lent) = (self.handle, Bytes::lend(options.as_bytes()));
        // SAFETY: a fresh handle of this table; host table and options outlive the call, and `error` can be written.
        let mut status = self.run(self.table.init, |init| unsafe { init(handle, self.host_table, lent, &mut error) });
        if status == STATUS_OK {
            error = OwnedBytes::EMPTY;
            // SAFETY: `init` succeeded.
            status = self.run(self.table.start, |start| unsafe { start(handle, &mut error) });
        }
        if status != STATUS_OK {
            let reason = match &*error {
                [] => format!("status {status}"),
                text => String::from_utf8_lossy(text).into_owned(),
            };
            self.end();
            return Err(StartError::Refused { plugin: self.manifest.id.clone(), reason });
        }
        self.deliver_events().inspect_err(|_| self.end())
    }

    /// Calls a function of the table; one that may be missing and is counts as done.
    fn run<F>(&self, function: Option<F>, call: impl FnOnce(F) -> i32) -> i32 {
        function.map_or(STATUS_OK, call)
    }

    fn deliver_events(self: &Arc<Self>) -> Result<(), StartError> {
        let instance = Arc::downgrade(self);
        let queue = self.events.clone();
        let deliver = move |event: Event| {
            if let Some(instance) = instance.upgrade() {
                instance.deliver(&event);
            }
        };
        let builder = std::thread::Builder::new().name(format!("events-{}", self.manifest.id));
        let thread = builder
            .spawn(move || queue.run(deliver))
            .map_err(|source| StartError::Thread { plugin: self.manifest.id.clone(), source })?;
        *self.deliverer.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        Ok(())
    }

    /// Enters the plugin, unless it is stopping.
    fn enter(&self) -> Option<Inside<'_>> {
        self.inside.fetch_add(1, Ordering::SeqCst);
        let inside = Inside(self);
        (!self.stopping.load(Ordering::SeqCst)).then_some(inside)
    }

    /// Runs a call on this thread, unless its client has gone. Its answer comes through the calls, now or later.
    pub fn call(&self, token: u64, method: &str, params: &[u8]) {
        if !self.context.calls.begin(token) {
            return;
        }
        let lost = AnswerLost { instance: self, token };
        let inside = self.enter().filter(|_| !self.closed.load(Ordering::SeqCst));
        match inside {
            Some(_inside) => self.enter_call(token, method, params),
            None => self.fail(token, "The plugin is stopping"),
        }
        std::mem::forget(lost);
        if self.context.calls.end(token) {
            self.cancel(token);
        }
    }

    fn enter_call(&self, token: u64, method: &str, params: &[u8]) {
        self.statistics.calls.fetch_add(1, Ordering::Relaxed);
        let began = Instant::now();
        let frame = CallFrame {
            struct_size: size_of::<CallFrame>(),
            token,
            method: Bytes::lend(method.as_bytes()),
            params: Bytes::lend(params),
            deadline_ms: 0,
        };
        // SAFETY: the instance is started and not destroyed while we are inside; the frame outlives the call.
        let status = self.run(self.table.call, |call| unsafe { call(self.handle, &frame) });
        let spent = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.statistics.nanoseconds.fetch_add(spent, Ordering::Relaxed);
        if status != STATUS_OK {
            self.statistics.faults.fetch_add(1, Ordering::Relaxed);
            tracing::error!(plugin = self.manifest.id, method, status, "a call ended in a fault of the plugin");
            self.fail(token, "Internal error");
        }
    }

    fn fail(&self, token: u64, message: &str) {
        self.context.calls.answer(self.id, token, Err(RpcError::internal(message)));
    }

    /// Tells the plugin that nobody waits for a call any more.
    pub fn cancel(&self, token: u64) {
        if let Some(_inside) = self.enter() {
            // SAFETY: as in `enter_call`.
            self.run(self.table.cancel, |cancel| unsafe { cancel(self.handle, token) });
        }
    }

    fn deliver(&self, event: &Event) {
        if let Some(_inside) = self.enter() {
            let bytes = wire::to_bytes(event);
            let lent = Bytes::lend(&bytes);
            // SAFETY: as in `enter_call`; the bytes outlive it.
            let status = self.run(self.table.event, |event| unsafe { event(self.handle, lent) });
            if status != STATUS_OK {
                self.statistics.faults.fetch_add(1, Ordering::Relaxed);
                tracing::error!(plugin = self.manifest.id, status, "an event ended in a fault of the plugin");
            }
        }
    }

    /// Begins the end: no further call enters, and the plugin is asked to answer what it keeps.
    pub fn quiesce(&self) {
        if self.closed.swap(true, Ordering::SeqCst) {
            return;
        }
        if let Some(_inside) = self.enter() {
            // SAFETY: as in `enter_call`.
            self.run(self.table.quiesce, |quiesce| unsafe { quiesce(self.handle) });
        }
        self.events.close();
    }

    /// Ends the instance after [`Instance::quiesce`]: waits until no thread is inside, and frees it.
    ///
    /// What still waits at the deadline is answered for it; an instance that is not free by then is left behind.
    pub fn stop(&self, deadline: Instant) {
        if self.stopping.load(Ordering::SeqCst) {
            return;
        }
        let delivered = || {
            let deliverer = self.deliverer.lock().unwrap_or_else(PoisonError::into_inner);
            deliverer.as_ref().is_none_or(JoinHandle::is_finished)
        };
        wait_until(deadline, || delivered() && self.context.calls.waiting(self.id) == 0);
        self.stopping.store(true, Ordering::SeqCst);
        let free = wait_until(deadline, || self.inside.load(Ordering::SeqCst) == 0);
        let stopped = || Err(RpcError::new(Code::CLIENT_NOT_CONNECTED, "Shutting down"));
        self.context.calls.answer_all(self.id, stopped);
        if free {
            self.end();
        } else {
            tracing::error!(
                plugin = self.manifest.id,
                "the plugin does not end its calls; its instance is left behind"
            );
        }
    }

    /// Stops and frees what `create` made. Nobody is inside, and nothing enters again.
    fn end(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        // SAFETY: called once per instance, from `bring_up` on failure or from `stop`, with nobody inside.
        self.run(self.table.stop, |stop| unsafe { stop(self.handle) });
        if let Some(destroy) = self.table.destroy {
            // SAFETY: as above, and after `stop`.
            unsafe { destroy(self.handle) };
        }
    }
}

/// Looks again and again until something is so, or until the deadline. Whether it was.
fn wait_until(deadline: Instant, done: impl Fn() -> bool) -> bool {
    while !done() {
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(DRAIN_STEP);
    }
    true
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

/// The largest answer that is checked whole, in bytes; of a larger one only what would break a client's framing is.
const MAX_CHECKED_ANSWER: usize = 64 << 10;

/// Whether an answer is one JSON value on one line, as clients take it.
fn is_json(answer: &[u8]) -> bool {
    if answer.len() > MAX_CHECKED_ANSWER {
        return !answer.contains(&b'\n');
    }
    !answer.contains(&b'\n') && serde_json::from_slice::<&serde_json::value::RawValue>(answer).is_ok()
}

/// A thread inside the plugin.
struct Inside<'a>(&'a Instance);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.inside.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Checks what a plugin needs and what it is granted, before any of its code runs.
///
/// # Errors
/// A grant of a service that this host does not have, or a service that the plugin needs and that is not granted.
pub fn check_grants(manifest: &Manifest, grants: &[String], shared: &SharedServices) -> Result<(), StartError> {
    let plugin = || manifest.id.clone();
    let known = |service: &String| OWN_SERVICES.contains(&service.as_str()) || shared.contains_key(service);
    if let Some(service) = grants.iter().find(|service| !known(service)) {
        return Err(StartError::NoService { plugin: plugin(), service: service.clone() });
    }
    match manifest.services.iter().find(|service| !grants.contains(service)) {
        Some(service) => Err(StartError::NotGranted { plugin: plugin(), service: service.clone() }),
        None => Ok(()),
    }
}

/// The services of which each instance has its own.
const OWN_SERVICES: [&str; 2] = ["events/1", "log/1"];

/// The services an instance gets: those granted, of which `events/1` and `log/1` are its own.
fn grant(
    plugin: &str,
    grants: &[String],
    shared: &SharedServices,
    events: &Arc<EventQueue>,
) -> Result<SharedServices, StartError> {
    let service = |name: &String| {
        let service = match name.as_str() {
            "events/1" => Some(Arc::new(ExportedService::new::<dyn Events>(Arc::new(EventsService(events.clone()))))),
            "log/1" => {
                let log = LogService { plugin: plugin.to_owned() };
                Some(Arc::new(ExportedService::new::<dyn Log>(Arc::new(log))))
            }
            name => shared.get(name).cloned(),
        };
        match service {
            Some(service) => Ok((name.clone(), service)),
            None => Err(StartError::NoService { plugin: plugin.to_owned(), service: name.clone() }),
        }
    };
    grants.iter().map(service).collect()
}
