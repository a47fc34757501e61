//! The two symbols a plugin exports, `outrigger_plugin` and `outrigger_manifest`, and the trampolines behind the first.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::bytes::{Bytes, OwnedBytes};
use super::host::HostTable;
use super::panics;
use super::plugin::{CallFrame, Instance, PluginTable};
use super::service::RawService;
use super::{ABI_MAJOR, ABI_MINOR, STATUS_OK};
use crate::error::{RpcError, RpcErrorCode};
use crate::plugin::{Call, Host, Plugin, Reply, ReplySink};
use crate::service::{ErrorKind, Scope, chain, events, log, mempool, signer, wallet};
use crate::wire;

/// Begins the manifest's bytes.
pub const MANIFEST_MAGIC: [u8; 8] = *b"OUTRIGMF";

/// The bytes before the manifest's JSON: magic, ABI major, minor needed, minor built with, length; integers little-endian.
pub const MANIFEST_HEADER_LEN: usize = 8 + 4 + 4 + 4 + 4;

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

/// The bytes of `outrigger_manifest` for a manifest's JSON, and the least minor version of a host that the plugin runs on;
/// `N` is [`MANIFEST_HEADER_LEN`] plus the JSON's length.
///
/// # Panics
/// When another length is asked for, or a minor version that this SDK does not know: while compiling.
pub const fn manifest_bytes<const N: usize>(json: &str, minor_needed: u32) -> [u8; N] {
    let json = json.as_bytes();
    assert!(N == MANIFEST_HEADER_LEN + json.len(), "N must be the header and the JSON");
    assert!(minor_needed <= ABI_MINOR, "this SDK has no such minor version of the plugin ABI");
    let mut out = [0; N];
    let words = [ABI_MAJOR, minor_needed, ABI_MINOR, json.len() as u32];
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

/// The table of a Rust plugin that runs on hosts of this minor version and later.
///
/// # Panics
/// As [`manifest_bytes`].
pub const fn plugin_table<P: Plugin>(minor_needed: u32) -> PluginTable {
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
struct Slot<P> {
    plugin: Option<P>,
    sink: Option<Arc<HostReplies>>,
}

/// Sends replies to the host, until the instance has ended.
struct HostReplies {
    host: *const HostTable,
    /// Set when `stop` has returned: safe code may keep a reply or a service for longer, and the host is not to be called then.
    /// Who passes a moment before it is set finds the host's tables in their place, and a host that answers nothing.
    ended: Arc<AtomicBool>,
}

impl HostReplies {
    fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }
}

// SAFETY: the host's functions may be called from any thread, and its table is valid for the life of the process.
unsafe impl Send for HostReplies {}
// SAFETY: as above.
unsafe impl Sync for HostReplies {}

impl ReplySink for HostReplies {
    fn reply(&self, token: u64, outcome: Result<Vec<u8>, RpcError>) -> bool {
        if self.has_ended() {
            return false;
        }
        let (code, body) = match outcome {
            Ok(json) => (0, json),
            // 0 would read as success; a plugin that answers an error of code 0 means an unnamed one.
            Err(error) if error.code.0 == 0 => (RpcErrorCode::MISC.0, error.message.into_bytes()),
            Err(error) => (error.code.0, error.message.into_bytes()),
        };
        // SAFETY: the table is the host's and valid for the life of the process.
        unsafe { ((*self.host).reply)((*self.host).ctx, token, code, body.into()) == STATUS_OK }
    }

    fn reply_shared(&self, token: u64, json: Arc<Vec<u8>>) -> bool {
        if self.has_ended() {
            return false;
        }
        // SAFETY: as above.
        unsafe { ((*self.host).reply)((*self.host).ctx, token, 0, json.into()) == STATUS_OK }
    }

    fn wanted(&self, token: u64) -> bool {
        if self.has_ended() {
            return false;
        }
        // SAFETY: as above; a host of minor 0 has no such function.
        unsafe { HostTable::wanted(self.host).is_none_or(|wanted| wanted((*self.host).ctx, token) != 0) }
    }
}

/// Runs code of an instance, turning a panic into the status of an internal error.
fn guarded(instance: Instance, body: impl FnOnce() -> i32) -> i32 {
    panics::inside(instance, || panics::caught(body)).unwrap_or(ErrorKind::Internal as i32)
}

unsafe extern "C" fn create<P: Plugin>() -> Instance {
    panics::caught(|| Box::into_raw(Box::new(Slot::<P> { plugin: None, sink: None })).cast())
        .unwrap_or(std::ptr::null_mut())
}

unsafe extern "C" fn init<P: Plugin>(
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
        let ended = Arc::new(AtomicBool::new(false));
        let service = |name: &str| {
            // SAFETY: the host's table is valid for the life of the process, and so are the service tables it gives.
            let service = unsafe { RawService::new(((*host).service)((*host).ctx, Bytes::lend(name.as_bytes()))) };
            service.until(ended.clone())
        };
        panics::report_to(instance, log::LogClient::new(service("log/1")));
        let handle = Host {
            chain: Arc::new(chain::ChainClient::new(service("chain/1"))),
            mempool: Arc::new(mempool::MempoolClient::new(service("mempool/1"))),
            wallet: Arc::new(wallet::WalletClient::new(service("wallet/1"))),
            signer: Arc::new(signer::SignerClient::new(service("signer/1"))),
            events: Arc::new(events::EventsClient::new(service("events/1"))),
            log: Arc::new(log::LogClient::new(service("log/1"))),
        };
        slot.sink = Some(Arc::new(HostReplies { host, ended: ended.clone() }));
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
    guarded(instance, || {
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
        let deadline = CallFrame::deadline_ms(frame).filter(|ms| *ms > 0).map(Duration::from_millis);
        with::<P>(instance, |plugin, sink| {
            let reply = Reply::new(token, sink.clone());
            let Ok(method) = std::str::from_utf8(method) else { return ErrorKind::Malformed as i32 };
            let params = match serde_json::from_slice(params) {
                Ok(params) => params,
                Err(error) => {
                    // A client can make this happen, with values that nest too deeply or half of a surrogate pair: it is told,
                    // and the plugin is not at fault.
                    reply.send::<()>(Err(RpcError::new(RpcErrorCode::PARSE, format!("Parse error: {error}"))));
                    return STATUS_OK;
                }
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
    // SAFETY: the host passes a live instance, and nobody else is inside.
    let status = unsafe {
        with::<P>(instance, |plugin, _| {
            plugin.stop();
            STATUS_OK
        })
    };
    // After this the host may not be called any more, also not by what safe code has kept.
    let closed = guarded(instance, || {
        panics::forget(instance);
        // SAFETY: as above; after `init` the slot is only read.
        let slot = unsafe { &*instance.cast::<Slot<P>>() };
        if let Some(sink) = &slot.sink {
            sink.ended.store(true, Ordering::Release);
        }
        STATUS_OK
    });
    if status == STATUS_OK { closed } else { status }
}

unsafe extern "C" fn destroy<P: Plugin>(instance: Instance) {
    // A panic of the plugin's own `drop` is nobody's concern any more.
    let _ = panics::caught(|| {
        // SAFETY: the host destroys an instance once, when no thread is inside it.
        let slot = unsafe { Box::from_raw(instance.cast::<Slot<P>>()) };
        // A reply that is dropped with the plugin must not reach the host, whether it has called `stop` or not.
        if let Some(sink) = &slot.sink {
            sink.ended.store(true, Ordering::Release);
        }
        drop(slot);
    });
}

#[cfg(test)]
mod tests;
