//! The functions behind a plugin's table, for a plugin written in Rust.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::bytes::{Bytes, OwnedBytes};
use super::host::HostTable;
use super::panics;
use super::plugin::{CallFrame, Instance, PluginTable};
use super::service::RawService;
use super::{ABI_MINOR, ErrorKind, STATUS_OK};

/// The code of a plugin, as bytes come to it and go from it.
///
/// Nobody writes one by hand: the SDK makes one of a plugin, which sees values in place of bytes.
pub trait PluginCode: Send + Sync + Sized + 'static {
    /// What an instance is made of beside its options: nothing for a plugin in a library, whose `create` takes nothing.
    type Seed: Default + Send;

    /// Makes the instance from its seed and the JSON of its options. The reason of a refusal is shown to the operator.
    fn init(seed: Self::Seed, host: HostHandle, options: &[u8]) -> Result<Self, String>;

    /// Calls follow.
    fn start(&self) -> Result<(), String>;

    /// Runs a call, which is answered once, now or later, by [`HostHandle::reply`].
    ///
    /// # Errors
    /// A fault of the plugin.
    fn call(&self, call: RawCall<'_>) -> Result<(), ErrorKind>;

    /// A call's answer is not wanted any more.
    ///
    /// # Errors
    /// A fault of the plugin, here and below.
    fn cancel(&self, token: u64) -> Result<(), ErrorKind>;

    /// Something happened; the bytes are an encoded event.
    fn event(&self, event: &[u8]) -> Result<(), ErrorKind>;

    /// No call will follow.
    fn quiesce(&self) -> Result<(), ErrorKind>;

    /// The last word to the instance.
    fn stop(&self) -> Result<(), ErrorKind>;
}

/// A call as it comes.
pub struct RawCall<'a> {
    /// Names the call.
    pub token: u64,
    /// The method's name; a host passes UTF-8.
    pub method: &'a [u8],
    /// Its arguments, a JSON array.
    pub params: &'a [u8],
    /// After how many milliseconds the host answers in the plugin's place; none when it does not.
    pub deadline_ms: Option<u64>,
}

/// The host, as an instance reaches it until it has ended.
#[derive(Clone)]
pub struct HostHandle {
    host: *const HostTable,
    instance: usize,
    /// Set when `stop` has returned: safe code may keep a reply or a service for longer, and the host is not to be called then.
    /// Who passes a moment before it is set finds the host's tables in their place, and a host that answers nothing.
    ended: Arc<AtomicBool>,
}

// SAFETY: the host's functions may be called from any thread, and its table is valid for the life of the process.
unsafe impl Send for HostHandle {}
// SAFETY: as above.
unsafe impl Sync for HostHandle {}

impl HostHandle {
    /// The service of this name and revision; each of its functions fails where it is not granted.
    pub fn service(&self, name: &str) -> RawService {
        // SAFETY: the host's table is valid for the life of the process, and so are the service tables it gives.
        let service =
            unsafe { RawService::new(((*self.host).service)((*self.host).ctx, Bytes::lend(name.as_bytes()))) };
        service.until(self.ended.clone())
    }

    /// Answers a call: with code 0 the body is its result, otherwise the message of an error. Whether the answer was wanted.
    pub fn reply(&self, token: u64, code: i32, body: OwnedBytes) -> bool {
        if self.has_ended() {
            return false;
        }
        // SAFETY: the table is the host's and valid for the life of the process.
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

    /// From now on panics of this instance are told to `report`, and no more to the standard error of the process. It is told
    /// where a panic happened and, if that is a text, what it said, which may hold a secret.
    pub fn report_panics(&self, report: impl Fn(String, Option<&str>) + Send + Sync + 'static) {
        panics::report_to(self.instance, Arc::new(report));
    }

    fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }
}

/// The table of a Rust plugin that runs on hosts of this minor version and later.
///
/// # Panics
/// When this SDK does not know the minor version: while compiling.
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

/// What stands behind an [`Instance`] of a Rust plugin.
struct Slot<P: PluginCode> {
    plugin: Option<P>,
    /// What it is made of, until it is.
    seed: P::Seed,
    /// The instance has ended.
    ended: Arc<AtomicBool>,
}

/// Runs code of an instance, turning a panic into the status of an internal error.
fn guarded(instance: Instance, body: impl FnOnce() -> i32) -> i32 {
    panics::inside(instance.addr(), || panics::caught(body)).unwrap_or(ErrorKind::Internal as i32)
}

unsafe extern "C" fn create<P: PluginCode>() -> Instance {
    panics::caught(|| instance_of::<P>(P::Seed::default())).unwrap_or(std::ptr::null_mut())
}

/// What `create` of a plugin's table makes, of a seed that may be another than the default one. The table is that of
/// [`plugin_table`]. Null is a failure.
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
        // SAFETY: the host passes what `create` made, and from one thread only during `init`.
        let slot = unsafe { &mut *instance.cast::<Slot<P>>() };
        // SAFETY: the options are readable until we return.
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

/// Writes the reason of a refusal.
fn refuse(reason: String, error: *mut OwnedBytes) -> i32 {
    // SAFETY: the host passes memory that can be written and holds nothing to release.
    unsafe { error.write(reason.into_bytes().into()) };
    ErrorKind::Refused as i32
}

/// Runs `body` on the plugin of an instance whose `init` succeeded.
///
/// # Safety
/// `instance` came from `create::<P>` and was not destroyed.
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
    // SAFETY: the host passes a live instance and a frame that is valid until we return.
    unsafe {
        // A reference to the frame would claim more than an older host's is long.
        let call = RawCall {
            token: (*frame).token,
            method: (*frame).method.as_slice(),
            params: (*frame).params.as_slice(),
            deadline_ms: CallFrame::deadline_ms(frame).filter(|ms| *ms > 0),
        };
        with::<P>(instance, |plugin| status_of(plugin.call(call)))
    }
}

unsafe extern "C" fn cancel<P: PluginCode>(instance: Instance, token: u64) -> i32 {
    // SAFETY: the host passes a live instance.
    unsafe { with::<P>(instance, |plugin| status_of(plugin.cancel(token))) }
}

unsafe extern "C" fn event<P: PluginCode>(instance: Instance, event: Bytes) -> i32 {
    // SAFETY: the host passes a live instance and bytes that are readable until we return.
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
    // SAFETY: the host passes a live instance, and nobody else is inside.
    let status = unsafe { with::<P>(instance, |plugin| status_of(plugin.stop())) };
    // After this the host may not be called any more, also not by what safe code has kept.
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
    // A panic of the plugin's own `drop` is told to nobody, and not to another instance of the library either.
    guarded(instance, || {
        panics::forget(instance.addr());
        // SAFETY: the host destroys an instance once, when no thread is inside it.
        let slot = unsafe { Box::from_raw(instance.cast::<Slot<P>>()) };
        // A reply that is dropped with the plugin must not reach the host, whether it has called `stop` or not.
        slot.ended.store(true, Ordering::Release);
        drop(slot);
        STATUS_OK
    });
}
