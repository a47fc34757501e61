//! A host that records every violation of the ABI's rules by a plugin.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::ffi::c_void;
use std::hash::{DefaultHasher, Hasher};
use std::mem::offset_of;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use outrigger_abi::{
    ABI_MAJOR, ABI_MINOR, Bytes, CallFrame, HostTable, OwnedBytes, Releases, STATUS_OK, ServiceTable, caught,
};
use outrigger_service::ErrorKind;
use parking_lot::{Condvar, Mutex, MutexGuard};

use super::recording_proxy::{Offer, Recorder, RecordingProxy};

/// The first token. It fits neither a double nor a signed integer, so a plugin that stores tokens as either is found.
const FIRST_TOKEN: u64 = 0xfedc_ba98_7654_3211;

/// How long a paused service call waits for the cancellation. It times out for a plugin that calls services under a lock that
/// its `cancel` takes as well; this is allowed.
const CANCEL_PATIENCE: Duration = Duration::from_millis(50);

/// How many words follow the structs that a plugin gets, as if a newer host had appended fields.
pub(super) const BEYOND: usize = 8;

thread_local! {
    /// The token of the call that runs on this thread; 0 for none.
    static CURRENT: Cell<u64> = const { Cell::new(0) };
}

/// A call, as findings name it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CallName {
    /// The method.
    pub method: String,
    /// Its arguments as JSON.
    pub arguments: String,
}

/// A violation of the ABI's rules.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// The call during which it happened, if any.
    pub call: Option<CallName>,
    /// What the plugin did.
    pub what: String,
}

/// A plugin's answer.
pub struct Answer {
    /// 0 for a result, else the error's code.
    pub code: i32,
    /// The result, or the error's message.
    pub body: OwnedBytes,
    /// The digest of the body when it was handed over.
    digest: u64,
}

impl Answer {
    fn new(code: i32, body: OwnedBytes) -> Self {
        Self { code, digest: digest(&body), body }
    }

    /// Whether its bytes are as they were handed over.
    pub fn is_unchanged(&self) -> bool {
        digest(&self.body) == self.digest
    }
}

fn digest(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}

/// The state of a call.
struct Record {
    name: CallName,
    answer: Option<Answer>,
    answered: bool,
    cancelled: bool,
    /// Whether the plugin's `call` has not returned yet.
    running: bool,
    /// Whether a service is being called with its scope.
    in_service: bool,
}

#[derive(Default)]
struct State {
    calls: BTreeMap<u64, Record>,
    faults: Vec<Fault>,
}

/// Pauses the next service call of a call, so that the call can be cancelled meanwhile.
struct PausePoint {
    token: u64,
    reached: Sender<()>,
}

/// The host's table with the words that a newer host would append.
#[repr(C)]
struct LongTable {
    table: HostTable,
    beyond: [usize; BEYOND],
}

/// A call frame with the words that a newer host would append.
#[repr(C)]
pub(super) struct LongFrame {
    pub frame: CallFrame,
    pub beyond: [usize; BEYOND],
}

/// A strict host for one instance. It is never freed, so that calls after the instance's end are found as well.
pub struct StrictHost {
    minor: u32,
    proxies: OnceLock<HashMap<&'static str, RecordingProxy>>,
    table: OnceLock<LongTable>,
    state: Mutex<State>,
    answered: Condvar,
    tokens: AtomicU64,
    ended: AtomicBool,
    pause_point: Mutex<Option<PausePoint>>,
    /// Signals that `pause_point` was taken away.
    resumed: Condvar,
    /// How often the buffers that services returned were released.
    pub releases: Releases,
    /// How many buffers services returned.
    pub given: AtomicU32,
}

// SAFETY: its tables point only to the host itself, whose state is behind locks and atomics.
unsafe impl Send for StrictHost {}
// SAFETY: as above.
unsafe impl Sync for StrictHost {}

impl StrictHost {
    /// A host of an ABI minor version (one above ours plays a newer host) with these services.
    pub fn new(minor: u32, offers: Vec<Offer>) -> &'static Self {
        let host: &'static Self = Box::leak(Box::new(Self {
            minor,
            proxies: OnceLock::new(),
            table: OnceLock::new(),
            state: Mutex::default(),
            answered: Condvar::new(),
            tokens: AtomicU64::new(FIRST_TOKEN),
            ended: AtomicBool::new(false),
            pause_point: Mutex::default(),
            resumed: Condvar::new(),
            releases: Releases::default(),
            given: AtomicU32::new(0),
        }));
        host.proxies
            .get_or_init(|| offers.into_iter().map(|offer| (offer.name, RecordingProxy::new(host, offer))).collect());
        host.table.get_or_init(|| {
            let table = HostTable {
                struct_size: host.table_size(),
                abi_major: ABI_MAJOR,
                abi_minor: minor,
                ctx: (&raw const *host).cast(),
                service: find_service,
                reply,
                // A host of minor 0 has no such function, so a plugin must not call what is in its place.
                wanted: if minor < 1 { beyond } else { wanted },
            };
            LongTable { table, beyond: [0; BEYOND] }
        });
        host
    }

    /// The table that the plugin gets.
    pub(super) fn table(&self) -> *const HostTable {
        self.table.get().map_or(std::ptr::null(), |long| (&raw const *long).cast())
    }

    /// `struct_size` of the table for this minor version.
    fn table_size(&self) -> usize {
        const { assert!(ABI_MINOR == 1, "say here what the table of the new minor version adds") };
        match self.minor {
            0 => offset_of!(HostTable, wanted),
            ABI_MINOR => size_of::<HostTable>(),
            _ => size_of::<LongTable>(),
        }
    }

    /// `struct_size` of a call's frame for this minor version.
    pub(super) fn frame_size(&self) -> usize {
        const { assert!(ABI_MINOR == 1, "say here what the frame of the new minor version adds") };
        match self.minor {
            0 => offset_of!(CallFrame, deadline_ms),
            ABI_MINOR => size_of::<CallFrame>(),
            _ => size_of::<LongFrame>(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Registers a call and returns its token.
    pub fn open(&self, method: &str, arguments: &str) -> u64 {
        let token = self.tokens.fetch_add(1, Ordering::SeqCst);
        let name = CallName { method: method.to_owned(), arguments: arguments.to_owned() };
        let record =
            Record { name, answer: None, answered: false, cancelled: false, running: false, in_service: false };
        self.lock().calls.insert(token, record);
        token
    }

    /// The plugin's `call` begins on this thread.
    pub(super) fn begin(&self, token: u64) {
        CURRENT.set(token);
        if let Some(record) = self.lock().calls.get_mut(&token) {
            record.running = true;
        }
    }

    /// The plugin's `call` has returned; `fault` is its status if it faulted. An answer given before the fault is dropped.
    pub(super) fn end_call(&self, token: u64, fault: Option<i32>) {
        CURRENT.set(0);
        if let Some(record) = self.lock().calls.get_mut(&token) {
            record.running = false;
            if fault.is_some() {
                (record.answer, record.cancelled) = (None, true);
            }
        }
        if let Some(status) = fault {
            self.note_call(token, format!("the call ended in a fault of the plugin (status {status})"));
            self.answered.notify_all();
        }
    }

    /// Cancels a call: a later answer is stale.
    pub fn give_up(&self, token: u64) {
        if let Some(record) = self.lock().calls.get_mut(&token) {
            record.cancelled = true;
        }
        self.answered.notify_all();
    }

    /// Whether a call still waits for its answer.
    pub fn is_open(&self, token: u64) -> bool {
        self.lock().calls.get(&token).is_some_and(|record| !record.answered && !record.cancelled)
    }

    /// Takes the answers given so far.
    pub fn take_answers(&self) -> Vec<(CallName, Answer)> {
        let taken = |record: &mut Record| Some((record.name.clone(), record.answer.take()?));
        self.lock().calls.values_mut().filter_map(taken).collect()
    }

    /// Waits until every call is answered or cancelled. Returns the calls that are neither after `patience`.
    pub fn wait_answered(&self, patience: Duration) -> Vec<CallName> {
        let deadline = Instant::now() + patience;
        let mut state = self.lock();
        loop {
            let open = |record: &&Record| !record.answered && !record.cancelled;
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || !state.calls.values().any(|record| open(&record)) {
                return state.calls.values().filter(open).map(|record| record.name.clone()).collect();
            }
            self.answered.wait_for(&mut state, left);
        }
    }

    /// How many calls were made.
    pub fn calls(&self) -> usize {
        self.lock().calls.len()
    }

    /// Notes a fault.
    pub fn note(&self, call: Option<CallName>, what: impl Into<String>) {
        self.lock().faults.push(Fault { call, what: what.into() });
    }

    /// Notes a fault of the call that runs on this thread, or of none.
    fn note_here(&self, what: impl Into<String>) {
        match CURRENT.get() {
            0 => self.note(None, what),
            token => self.note_call(token, what),
        }
    }

    /// Notes a fault of a call.
    pub fn note_call(&self, token: u64, what: impl Into<String>) {
        let name = self.lock().calls.get(&token).map(|record| record.name.clone());
        self.note(name, what);
    }

    /// Takes the faults noted so far.
    pub fn take_faults(&self) -> Vec<Fault> {
        std::mem::take(&mut self.lock().faults)
    }

    /// The instance has ended: from now on any call into the host is a fault.
    pub(super) fn end(&self) {
        self.ended.store(true, Ordering::SeqCst);
    }

    fn has_ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }

    /// Pauses the next service call with this call's scope, until [`StrictHost::resume`] or for `CANCEL_PATIENCE`. Sends to
    /// `reached` when it pauses.
    pub fn pause_at(&self, token: u64, reached: Sender<()>) {
        *self.pause_point.lock() = Some(PausePoint { token, reached });
    }

    /// Ends the pause.
    pub fn resume(&self) {
        *self.pause_point.lock() = None;
        self.resumed.notify_all();
    }

    fn wait_at_pause_point(&self, token: u64) {
        let mut pause_point = self.pause_point.lock();
        match pause_point.as_ref() {
            Some(PausePoint { token: watched, reached }) if *watched == token && reached.send(()).is_ok() => {}
            _ => return,
        }
        let deadline = Instant::now() + CANCEL_PATIENCE;
        while pause_point.is_some() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                *pause_point = None;
                return;
            }
            self.resumed.wait_for(&mut pause_point, left);
        }
    }

    fn answer(&self, token: u64, code: i32, body: OwnedBytes) -> i32 {
        if self.has_ended() {
            self.note_call(token, "it was answered after stop had returned");
            return ErrorKind::Stale as i32;
        }
        let mut state = self.lock();
        let Some(record) = state.calls.get_mut(&token) else {
            drop(state);
            self.note_here("it answered a call that was never made");
            return ErrorKind::Stale as i32;
        };
        if std::mem::replace(&mut record.answered, true) {
            drop(state);
            self.note_call(token, "it was answered twice");
            return ErrorKind::Stale as i32;
        }
        if record.cancelled {
            return ErrorKind::Stale as i32;
        }
        record.answer = Some(Answer::new(code, body));
        drop(state);
        self.answered.notify_all();
        STATUS_OK
    }
}

impl Recorder for StrictHost {
    fn enter_service(&self, function: &str, scope: u64) -> Result<(), ErrorKind> {
        if self.has_ended() {
            self.note(None, format!("it asked {function} after stop had returned"));
            return Err(ErrorKind::Stale);
        }
        if scope == 0 {
            return Ok(());
        }
        let mut state = self.lock();
        let Some(record) = state.calls.get_mut(&scope) else {
            drop(state);
            self.note_here(format!("it asked {function} with a scope that no call has"));
            return Err(ErrorKind::Stale);
        };
        if !record.running {
            return Err(ErrorKind::Stale);
        }
        let busy = std::mem::replace(&mut record.in_service, true);
        drop(state);
        if busy {
            self.note_call(scope, format!("it asked {function} while another thread used the same scope"));
        }
        self.wait_at_pause_point(scope);
        Ok(())
    }

    fn leave_service(&self, scope: u64) {
        if let Some(record) = self.lock().calls.get_mut(&scope) {
            record.in_service = false;
        }
    }

    fn give(&'static self, bytes: OwnedBytes) -> OwnedBytes {
        self.given.fetch_add(1, Ordering::SeqCst);
        bytes.watched(&self.releases)
    }
}

unsafe extern "C" fn find_service(ctx: *const c_void, name: Bytes) -> *const ServiceTable {
    let found = caught(|| {
        // SAFETY: `ctx` is the strict host, which is never freed.
        let host = unsafe { &*ctx.cast::<StrictHost>() };
        // SAFETY: the plugin lends its name until we return.
        let name = unsafe { name.as_slice() };
        if host.has_ended() {
            let name = String::from_utf8_lossy(name);
            host.note(None, format!("it asked for the service {name} after stop had returned"));
            return std::ptr::null();
        }
        let proxy = host.proxies.get().and_then(|proxies| proxies.get(std::str::from_utf8(name).ok()?));
        proxy.map_or(std::ptr::null(), RecordingProxy::table)
    });
    found.unwrap_or(std::ptr::null())
}

unsafe extern "C" fn reply(ctx: *const c_void, token: u64, code: i32, body: OwnedBytes) -> i32 {
    // SAFETY: as above.
    let status = caught(|| unsafe { &*ctx.cast::<StrictHost>() }.answer(token, code, body));
    status.unwrap_or(ErrorKind::Internal as i32)
}

unsafe extern "C" fn wanted(ctx: *const c_void, token: u64) -> i32 {
    let wanted = caught(|| {
        // SAFETY: as above.
        let host = unsafe { &*ctx.cast::<StrictHost>() };
        if host.has_ended() {
            host.note(None, "it asked whether a call is wanted after stop had returned");
        }
        host.is_open(token)
    });
    i32::from(wanted.unwrap_or(false))
}

/// In place of a function that this minor version does not have.
unsafe extern "C" fn beyond(ctx: *const c_void, token: u64) -> i32 {
    caught(|| {
        // SAFETY: as above.
        let host = unsafe { &*ctx.cast::<StrictHost>() };
        host.note_call(token, "it called a function beyond the host's struct_size");
    });
    0
}
