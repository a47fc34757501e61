//! The two symbols a plugin exports, `outrigger_plugin` and `outrigger_manifest`, and the trampolines behind the first.

use std::ffi::c_void;
use std::mem::offset_of;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use super::bytes::{Bytes, OwnedBytes};
use super::host::HostTable;
use super::panics;
use super::service::RawService;
use super::{ABI_MAJOR, ABI_MINOR, STATUS_OK};
use crate::error::{Code, RpcError};
use crate::plugin::{Call, Host, Plugin, Reply, ReplySink};
use crate::service::{ErrorKind, Scope, chain, events, log, mempool, signer, wallet};
use crate::wire;

/// Begins [`PluginTable`]: `OUTRIGPL`.
pub const PLUGIN_MAGIC: u64 = u64::from_le_bytes(*b"OUTRIGPL");

/// Begins the manifest's bytes.
pub const MANIFEST_MAGIC: [u8; 8] = *b"OUTRIGMF";

/// The bytes before the manifest's JSON: magic, ABI major, minor needed, minor built with, length; integers little-endian.
pub const MANIFEST_HEADER_LEN: usize = 8 + 4 + 4 + 4 + 4;

/// A plugin's instance, as the host passes it around.
pub type Instance = *mut c_void;

/// A call, valid until the `call` function returns.
#[repr(C)]
pub struct CallFrame {
    /// The bytes of this struct.
    pub struct_size: usize,
    /// Names the call: for its reply, and as the scope of services. Never 0.
    pub token: u64,
    /// The method's name.
    pub method: Bytes,
    /// Its arguments: a JSON array in the order of the manifest, `null` where one was left out.
    pub params: Bytes,
    /// When the host answers in the plugin's place, in milliseconds from now; 0 for never. Since minor 1.
    pub deadline_ms: u64,
}

impl CallFrame {
    /// The deadline of a frame, where its host wrote one.
    ///
    /// # Safety
    /// `frame` points to a frame of which as much can be read as its `struct_size` says.
    unsafe fn deadline(frame: *const Self) -> Option<Duration> {
        // SAFETY: the caller's promise; a frame of minor 0 ends before the field, which is then not read.
        unsafe {
            if (*frame).struct_size < offset_of!(Self, deadline_ms) + size_of::<u64>() {
                return None;
            }
            Some((*frame).deadline_ms).filter(|ms| *ms > 0).map(Duration::from_millis)
        }
    }
}

/// What a plugin exports as `outrigger_plugin`.
///
/// The host calls, in this order: `create` once, `init` once, `start` once; then `call`, `cancel` and `event` from several
/// threads at a time; then `quiesce`, `stop` and `destroy` once each. `create` may not call the host.
/// A status other than 0 of `init` or `start` is a failure whose reason is written to `error`, as UTF-8. `create`, `init`,
/// `start`, `call` and `destroy` must be there; the others may be null.
#[repr(C)]
pub struct PluginTable {
    /// [`PLUGIN_MAGIC`].
    pub magic: u64,
    /// The bytes of this struct.
    pub struct_size: usize,
    /// The major version of the interface it was built for.
    pub abi_major: u32,
    /// The least minor version of a host that it runs on.
    pub abi_minor_needed: u32,
    /// The minor version it was built with.
    pub abi_minor_built: u32,
    /// Zero.
    pub reserved: u32,
    /// Makes an instance; null is a failure.
    pub create: Option<unsafe extern "C" fn() -> Instance>,
    /// Gives it the host and its options, a JSON object.
    pub init:
        Option<unsafe extern "C" fn(Instance, host: *const HostTable, options: Bytes, error: *mut OwnedBytes) -> i32>,
    /// All services are ready: calls follow.
    pub start: Option<unsafe extern "C" fn(Instance, error: *mut OwnedBytes) -> i32>,
    /// Runs a call. It may be answered before or after this returns. A status other than 0 is a fault of the plugin.
    pub call: Option<unsafe extern "C" fn(Instance, frame: *const CallFrame) -> i32>,
    /// The call's client is gone or its time is over: an answer will not be read. May come while `call` still runs, and
    /// then comes again when `call` has returned without an answer, so that a plugin that keeps tokens cannot miss it.
    pub cancel: Option<unsafe extern "C" fn(Instance, token: u64) -> i32>,
    /// Something happened; the event's encoding is that of `events/1`.
    pub event: Option<unsafe extern "C" fn(Instance, event: Bytes) -> i32>,
    /// No call will follow; tokens that are still kept should be answered now.
    pub quiesce: Option<unsafe extern "C" fn(Instance) -> i32>,
    /// No host function may be called after this has returned.
    pub stop: Option<unsafe extern "C" fn(Instance) -> i32>,
    /// Frees the instance. No thread of the host is inside it.
    pub destroy: Option<unsafe extern "C" fn(Instance)>,
}

/// The header before a manifest's JSON.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ManifestHeader {
    /// The major version of the interface.
    pub abi_major: u32,
    /// The least minor version of a host.
    pub abi_minor_needed: u32,
    /// The minor version it was built with.
    pub abi_minor_built: u32,
    /// The bytes of the JSON that follows.
    pub len: u32,
}

impl ManifestHeader {
    /// Reads the header; none when the bytes do not begin with [`MANIFEST_MAGIC`] or are too few.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let rest = bytes.strip_prefix(&MANIFEST_MAGIC)?;
        let word = |at: usize| Some(u32::from_le_bytes(rest.get(at..at + 4)?.try_into().ok()?));
        Some(Self { abi_major: word(0)?, abi_minor_needed: word(4)?, abi_minor_built: word(8)?, len: word(12)? })
    }
}

/// The bytes of `outrigger_manifest` for a manifest's JSON; `N` is [`MANIFEST_HEADER_LEN`] plus its length.
pub const fn manifest_bytes<const N: usize>(json: &str) -> [u8; N] {
    let json = json.as_bytes();
    assert!(N == MANIFEST_HEADER_LEN + json.len(), "N must be the header and the JSON");
    let mut out = [0; N];
    let words = [ABI_MAJOR, 0, ABI_MINOR, json.len() as u32];
    let mut at = 0;
    while at < N {
        out[at] = if at < MANIFEST_MAGIC.len() {
            MANIFEST_MAGIC[at]
        } else if at < MANIFEST_HEADER_LEN {
            let word = words[(at - MANIFEST_MAGIC.len()) / 4];
            word.to_le_bytes()[at % 4]
        } else {
            json[at - MANIFEST_HEADER_LEN]
        };
        at += 1;
    }
    out
}

/// The table of a Rust plugin.
pub const fn plugin_table<P: Plugin>() -> PluginTable {
    PluginTable {
        magic: PLUGIN_MAGIC,
        struct_size: size_of::<PluginTable>(),
        abi_major: ABI_MAJOR,
        abi_minor_needed: 0,
        abi_minor_built: ABI_MINOR,
        reserved: 0,
        create: Some(create::<P>),
        init: Some(init::<P>),
        start: Some(start::<P>),
        call: Some(call::<P>),
        cancel: Some(cancel::<P>),
        event: Some(event::<P>),
        quiesce: Some(quiesce::<P>),
        stop: Some(stop::<P>),
        destroy: Some(destroy::<P>),
    }
}

/// What stands behind an [`Instance`] of a Rust plugin.
struct Slot<P> {
    plugin: Option<P>,
    sink: Option<Arc<HostReplies>>,
}

/// Sends replies to the host.
struct HostReplies {
    host: *const HostTable,
}

// SAFETY: the host's functions may be called from any thread, and its table outlives the instance.
unsafe impl Send for HostReplies {}
// SAFETY: as above.
unsafe impl Sync for HostReplies {}

impl ReplySink for HostReplies {
    fn reply(&self, token: u64, outcome: Result<Vec<u8>, RpcError>) -> bool {
        let (code, body) = match outcome {
            Ok(json) => (0, json),
            // 0 would read as success; a plugin that answers an error of code 0 means an unnamed one.
            Err(error) if error.code.0 == 0 => (Code::MISC.0, error.message.into_bytes()),
            Err(error) => (error.code.0, error.message.into_bytes()),
        };
        // SAFETY: the table is the host's and valid until `destroy`.
        unsafe { ((*self.host).reply)((*self.host).ctx, token, code, body.into()) == STATUS_OK }
    }

    fn wanted(&self, token: u64) -> bool {
        // SAFETY: as above; a host of minor 0 has no such function, and its table ends before it.
        unsafe {
            (*self.host).struct_size < size_of::<HostTable>() || ((*self.host).wanted)((*self.host).ctx, token) != 0
        }
    }
}

/// Runs `body`, turning a panic into the status of an internal error.
fn guarded(body: impl FnOnce() -> i32) -> i32 {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(ErrorKind::Internal as i32)
}

unsafe extern "C" fn create<P: Plugin>() -> Instance {
    catch_unwind(|| Box::into_raw(Box::new(Slot::<P> { plugin: None, sink: None })).cast())
        .unwrap_or(std::ptr::null_mut())
}

unsafe extern "C" fn init<P: Plugin>(
    instance: Instance,
    host: *const HostTable,
    options: Bytes,
    error: *mut OwnedBytes,
) -> i32 {
    guarded(|| {
        // SAFETY: the host passes what `create` made, and from one thread only during `init`.
        let slot = unsafe { &mut *instance.cast::<Slot<P>>() };
        // SAFETY: the options are readable until we return.
        let options = unsafe { options.as_slice() };
        let service = |name: &str| {
            // SAFETY: the host's table is valid until `destroy`, and so are the service tables it gives.
            unsafe { RawService::new(((*host).service)((*host).ctx, Bytes::lend(name.as_bytes()))) }
        };
        panics::report_to(log::LogClient::new(service("log/1")));
        let handle = Host {
            chain: Arc::new(chain::ChainClient::new(service("chain/1"))),
            mempool: Arc::new(mempool::MempoolClient::new(service("mempool/1"))),
            wallet: Arc::new(wallet::WalletClient::new(service("wallet/1"))),
            signer: Arc::new(signer::SignerClient::new(service("signer/1"))),
            events: Arc::new(events::EventsClient::new(service("events/1"))),
            log: Arc::new(log::LogClient::new(service("log/1"))),
        };
        slot.sink = Some(Arc::new(HostReplies { host }));
        let options = serde_json::from_slice(options).map_err(|error| error.to_string());
        match options.and_then(|options| P::new(handle, options)) {
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
unsafe fn with<P: Plugin>(instance: Instance, body: impl FnOnce(&P, &Arc<HostReplies>) -> i32) -> i32 {
    guarded(|| {
        // SAFETY: the caller's promise; after `init` the slot is only read.
        let slot = unsafe { &*instance.cast::<Slot<P>>() };
        match (&slot.plugin, &slot.sink) {
            (Some(plugin), Some(sink)) => body(plugin, sink),
            _ => ErrorKind::Stale as i32,
        }
    })
}

unsafe extern "C" fn start<P: Plugin>(instance: Instance, error: *mut OwnedBytes) -> i32 {
    // SAFETY: the host passes a live instance.
    unsafe {
        with::<P>(instance, |plugin, _| match plugin.start() {
            Ok(()) => STATUS_OK,
            Err(reason) => refuse(reason, error),
        })
    }
}

unsafe extern "C" fn call<P: Plugin>(instance: Instance, frame: *const CallFrame) -> i32 {
    // SAFETY: the host passes a live instance and a frame that is valid until we return.
    unsafe {
        // A reference to the frame would claim more than an older host's is long.
        let (token, method, params) = ((*frame).token, (*frame).method.as_slice(), (*frame).params.as_slice());
        let deadline = CallFrame::deadline(frame);
        with::<P>(instance, |plugin, sink| {
            let reply = Reply::new(token, sink.clone());
            let (Ok(method), Ok(params)) = (std::str::from_utf8(method), serde_json::from_slice(params)) else {
                return ErrorKind::Malformed as i32;
            };
            plugin.call(Call { method, params, scope: Scope(token), deadline }, reply);
            STATUS_OK
        })
    }
}

unsafe extern "C" fn cancel<P: Plugin>(instance: Instance, token: u64) -> i32 {
    // SAFETY: the host passes a live instance.
    unsafe {
        with::<P>(instance, |plugin, _| {
            plugin.cancel(token);
            STATUS_OK
        })
    }
}

unsafe extern "C" fn event<P: Plugin>(instance: Instance, event: Bytes) -> i32 {
    // SAFETY: the host passes a live instance and bytes that are readable until we return.
    unsafe {
        let bytes = event.as_slice();
        with::<P>(instance, |plugin, _| {
            // An event of a newer host that this SDK does not know is none of the plugin's concern.
            if let Ok(event) = wire::from_bytes(bytes) {
                plugin.event(event);
            }
            STATUS_OK
        })
    }
}

unsafe extern "C" fn quiesce<P: Plugin>(instance: Instance) -> i32 {
    // SAFETY: the host passes a live instance.
    unsafe {
        with::<P>(instance, |plugin, _| {
            plugin.quiesce();
            STATUS_OK
        })
    }
}

unsafe extern "C" fn stop<P: Plugin>(instance: Instance) -> i32 {
    // SAFETY: the host passes a live instance.
    unsafe {
        with::<P>(instance, |plugin, _| {
            plugin.stop();
            STATUS_OK
        })
    }
}

unsafe extern "C" fn destroy<P: Plugin>(instance: Instance) {
    let _ = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the host destroys an instance once, when no thread is inside it.
        drop(unsafe { Box::from_raw(instance.cast::<Slot<P>>()) });
    }));
}
