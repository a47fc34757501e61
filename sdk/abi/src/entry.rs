//! The C functions in the table of a Rust plugin.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::bytes::{Bytes, OwnedBytes};
use super::host::HostTable;
use super::panics;
use super::plugin::{CallFrame, Instance, PluginTable};
use super::service::RawService;
use super::{ABI_MINOR, ErrorKind, STATUS_OK};

/// A plugin that handles encoded bytes. The SDK implements it for plugins, which handle decoded values.
pub trait PluginCode: Send + Sync + Sized + 'static {
    /// The data for an instance besides the options. `create` has no argument, so a plugin in a library gets the default.
    type Seed: Default + Send;

    /// Makes the instance from its seed and its options, a JSON object. The operator sees the reason of a refusal.
    fn init(seed: Self::Seed, host: HostHandle, options: &[u8]) -> Result<Self, String>;

    /// Starts the instance: calls follow. The operator sees the reason of a refusal.
    fn start(&self) -> Result<(), String>;

    /// Runs a call. The plugin answers it once with [`HostHandle::reply`], now or later. Here and below, an error is a fault.
    fn call(&self, call: RawCall<'_>) -> Result<(), ErrorKind>;

    /// Notes that the client no longer waits for the answer.
    fn cancel(&self, token: u64) -> Result<(), ErrorKind>;

    /// Handles an encoded event.
    fn event(&self, event: &[u8]) -> Result<(), ErrorKind>;

    /// Notes that the host sends no more calls.
    fn quiesce(&self) -> Result<(), ErrorKind>;

    /// Ends the instance and its threads. The plugin may not call the host afterwards.
    fn stop(&self) -> Result<(), ErrorKind>;
}

/// A call in bytes.
pub struct RawCall<'a> {
    /// The call's identifier.
    pub token: u64,
    /// The method's name. A host passes UTF-8.
    pub method: &'a [u8],
    /// The arguments, a JSON array.
    pub params: &'a [u8],
    /// The milliseconds until the host answers in the plugin's place; `None` without a deadline.
    pub deadline_ms: Option<u64>,
    /// The value of [`CallFrame::release`]; `None` if the host gives none.
    pub release: Option<u32>,
}

/// An instance's access to the host, until the instance has ended.
#[derive(Clone)]
pub struct HostHandle {
    host: *const HostTable,
    instance: usize,
    /// Set when `stop` returns. From then on, a reply or service that safe code kept must not call the host. If a thread
    /// checks this just before, the tables are still valid, and the host refuses the call.
    ended: Arc<AtomicBool>,
}

// SAFETY: any thread may call the host's functions, and its table is valid for the life of the process.
unsafe impl Send for HostHandle {}
// SAFETY: as above.
unsafe impl Sync for HostHandle {}

impl HostHandle {
    /// The service with this name and revision. If it is not granted, each function fails with [`ErrorKind::NotGranted`].
    pub fn service(&self, name: &str) -> RawService {
        // SAFETY: the host's table and its service tables are valid for the life of the process.
        let service =
            unsafe { RawService::new(((*self.host).service)((*self.host).ctx, Bytes::lend(name.as_bytes()))) };
        service.until(self.ended.clone())
    }

    /// Answers a call. With code 0, `body` is the result, else an error message. Returns whether the call still waited.
    pub fn reply(&self, token: u64, code: i32, body: OwnedBytes) -> bool {
        if self.has_ended() {
            return false;
        }
        // SAFETY: the host's table is valid for the life of the process.
        unsafe { ((*self.host).reply)((*self.host).ctx, token, code, body) == STATUS_OK }
    }

    /// Whether a call still waits for its answer.
    pub fn is_wanted(&self, token: u64) -> bool {
        if self.has_ended() {
            return false;
        }
        // SAFETY: as above; a host of minor 0 has no such function.
        unsafe { HostTable::wanted(self.host).is_none_or(|wanted| wanted((*self.host).ctx, token) != 0) }
    }

    /// Passes the location and the text of this instance's panics to `report`. The text may contain a secret.
    pub fn report_panics(&self, report: impl Fn(String, Option<&str>) + Send + Sync + 'static) {
        panics::report_to(self.instance, Arc::new(report));
    }

    fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }
}

/// The table of a Rust plugin that runs on hosts of this minor version or later.
///
/// # Panics
/// At compile time, if this SDK does not know the minor version.
pub const fn plugin_table<P: PluginCode>(minor_needed: u32) -> PluginTable {
    assert!(minor_needed <= ABI_MINOR, "this SDK has no such minor version of the plugin ABI");
    PluginTable {
        abi_minor_needed: minor_needed,
        create: Some(create::<P>),
        init: Some(init::<P>),
        start: Some(start::<P>),
        call: Some(call::<P>),
        cancel: Some(cancel::<P>),
        event: Some(event::<P>),
        quiesce: Some(quiesce::<P>),
        stop: Some(stop::<P>),
        destroy: Some(destroy::<P>),
        ..PluginTable::EMPTY
    }
}

struct Slot<P: PluginCode> {
    plugin: Option<P>,
    /// Taken by `init`.
    seed: P::Seed,
    ended: Arc<AtomicBool>,
}

/// Runs an instance's code. A panic yields the status [`ErrorKind::Internal`].
fn guarded(instance: Instance, body: impl FnOnce() -> i32) -> i32 {
    panics::inside(instance.addr(), || panics::caught(body)).unwrap_or(ErrorKind::Internal as i32)
}

unsafe extern "C" fn create<P: PluginCode>() -> Instance {
    panics::caught(|| instance_of::<P>(P::Seed::default())).unwrap_or(std::ptr::null_mut())
}

/// Makes an instance for the functions of [`plugin_table`]; null on failure.
pub(crate) fn instance_of<P: PluginCode>(seed: P::Seed) -> Instance {
    let slot = || Box::into_raw(Box::new(Slot::<P> { plugin: None, seed, ended: Arc::default() })).cast();
    panics::caught(slot).unwrap_or(std::ptr::null_mut())
}

unsafe extern "C" fn init<P: PluginCode>(
    instance: Instance,
    host: *const HostTable,
    options: Bytes,
    error: *mut OwnedBytes,
) -> i32 {
    guarded(instance, || {
        // SAFETY: the host passes the pointer from `create`, and calls `init` on one thread only.
        let slot = unsafe { &mut *instance.cast::<Slot<P>>() };
        // SAFETY: the options are readable until this function returns.
        let options = unsafe { options.as_slice() };
        let handle = HostHandle { host, instance: instance.addr(), ended: slot.ended.clone() };
        match P::init(std::mem::take(&mut slot.seed), handle, options) {
            Ok(plugin) => {
                slot.plugin = Some(plugin);
                STATUS_OK
            }
            Err(reason) => refuse(reason, error),
        }
    })
}

fn refuse(reason: String, error: *mut OwnedBytes) -> i32 {
    // SAFETY: the host passes writable memory that holds nothing to release.
    unsafe { error.write(reason.into_bytes().into()) };
    ErrorKind::Refused as i32
}

/// Runs `body` on the plugin of an instance whose `init` succeeded.
///
/// # Safety
/// `instance` is from `create::<P>` and not destroyed.
unsafe fn with<P: PluginCode>(instance: Instance, body: impl FnOnce(&P) -> i32) -> i32 {
    guarded(instance, || {
        // SAFETY: the caller's promise; after `init` the slot is only read.
        let slot = unsafe { &*instance.cast::<Slot<P>>() };
        slot.plugin.as_ref().map_or(ErrorKind::Stale as i32, body)
    })
}

fn status_of(outcome: Result<(), ErrorKind>) -> i32 {
    outcome.map_or_else(|fault| fault as i32, |()| STATUS_OK)
}

unsafe extern "C" fn start<P: PluginCode>(instance: Instance, error: *mut OwnedBytes) -> i32 {
    // SAFETY: the host passes a live instance.
    unsafe {
        with::<P>(instance, |plugin| match plugin.start() {
            Ok(()) => STATUS_OK,
            Err(reason) => refuse(reason, error),
        })
    }
}

unsafe extern "C" fn call<P: PluginCode>(instance: Instance, frame: *const CallFrame) -> i32 {
    // SAFETY: the host passes a live instance and a frame that is valid until this function returns.
    unsafe {
        // An older host's frame is shorter, so a reference to the frame would be invalid.
        let call = RawCall {
            token: (*frame).token,
            method: (*frame).method.as_slice(),
            params: (*frame).params.as_slice(),
            deadline_ms: CallFrame::deadline_ms(frame).filter(|ms| *ms > 0),
            release: CallFrame::release(frame)
                .and_then(|release| u32::try_from(release).ok())
                .filter(|release| *release > 0),
        };
        with::<P>(instance, |plugin| status_of(plugin.call(call)))
    }
}

unsafe extern "C" fn cancel<P: PluginCode>(instance: Instance, token: u64) -> i32 {
    // SAFETY: the host passes a live instance.
    unsafe { with::<P>(instance, |plugin| status_of(plugin.cancel(token))) }
}

unsafe extern "C" fn event<P: PluginCode>(instance: Instance, event: Bytes) -> i32 {
    // SAFETY: the host passes a live instance and bytes that are readable until this function returns.
    unsafe {
        let bytes = event.as_slice();
        with::<P>(instance, |plugin| status_of(plugin.event(bytes)))
    }
}

unsafe extern "C" fn quiesce<P: PluginCode>(instance: Instance) -> i32 {
    // SAFETY: the host passes a live instance.
    unsafe { with::<P>(instance, |plugin| status_of(plugin.quiesce())) }
}

unsafe extern "C" fn stop<P: PluginCode>(instance: Instance) -> i32 {
    // SAFETY: the host passes a live instance, in which no other thread runs.
    let status = unsafe { with::<P>(instance, |plugin| status_of(plugin.stop())) };
    // From here on, replies and services that safe code kept may not call the host, either.
    let closed = guarded(instance, || {
        panics::forget(instance.addr());
        // SAFETY: as above; after `init` the slot is only read.
        let slot = unsafe { &*instance.cast::<Slot<P>>() };
        slot.ended.store(true, Ordering::Release);
        STATUS_OK
    });
    if status == STATUS_OK { closed } else { status }
}

unsafe extern "C" fn destroy<P: PluginCode>(instance: Instance) {
    // The plugin's `drop` may panic. No reporter gets that panic, not even another instance's.
    guarded(instance, || {
        panics::forget(instance.addr());
        // SAFETY: the host destroys an instance once, when no thread runs in it.
        let slot = unsafe { Box::from_raw(instance.cast::<Slot<P>>()) };
        // A reply that is dropped with the plugin must not reach the host, even if the host did not call `stop`.
        slot.ended.store(true, Ordering::Release);
        drop(slot);
        STATUS_OK
    });
}
