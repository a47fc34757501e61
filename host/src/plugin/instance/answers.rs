//! The host's functions as one instance sees them: its services, and where its answers go.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes as SharedBytes;
use outrigger_sdk::abi::{
    ABI_MAJOR, ABI_MINOR, Bytes, ExportedService, HostTable, OwnedBytes, STATUS_OK, ServiceTable,
};
use outrigger_sdk::service::ErrorKind;
use outrigger_sdk::{Code, RpcError};

use super::release;
use crate::plugin::calls::{Answer, Calls};
use crate::plugin::health::Health;

/// The largest answer that is copied, in bytes.
const SMALL_ANSWER: usize = 64 << 10;

/// What `HostTable::ctx` points to.
pub(super) struct Context {
    pub id: u64,
    pub calls: Arc<Calls>,
    pub health: Arc<Health>,
    pub trusted: bool,
    pub services: HashMap<String, Arc<ExportedService>>,
}

/// The table for an instance.
pub(super) fn host_table(context: &'static Context) -> HostTable {
    HostTable {
        struct_size: size_of::<HostTable>(),
        abi_major: ABI_MAJOR,
        abi_minor: ABI_MINOR,
        ctx: (&raw const *context).cast(),
        service: find_service,
        reply,
        wanted,
    }
}

/// A large answer, which is sent from where the plugin wrote it. It is given back on a thread that may wait.
struct Lent(Option<OwnedBytes>);

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(body) = self.0.take() {
            release::give_back(body);
        }
    }
}

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
        0 if !is_json(&body, context.trusted) => Err(RpcError::internal("The plugin's answer is not JSON")),
        // Released on this thread, which is the plugin's to hold up.
        0 if body.len() <= SMALL_ANSWER => Ok(SharedBytes::copy_from_slice(&body)),
        0 => Ok(SharedBytes::from_owner(Lent(Some(body)))),
        code => Err(RpcError::new(Code(code), String::from_utf8_lossy(&body).into_owned())),
    };
    let counted = if answer.is_err() { &context.health.errors } else { &context.health.answers };
    // Before the client can ask.
    counted.fetch_add(1, Ordering::Relaxed);
    if context.calls.answer(context.id, token, answer) {
        STATUS_OK
    } else {
        counted.fetch_sub(1, Ordering::Relaxed);
        context.health.stale.fetch_add(1, Ordering::Relaxed);
        ErrorKind::Stale as i32
    }
}

unsafe extern "C" fn wanted(ctx: *const c_void, token: u64) -> i32 {
    // SAFETY: as above.
    let context = unsafe { &*ctx.cast::<Context>() };
    i32::from(context.calls.is_waiting(context.id, token))
}

/// Whether bytes have an end of a line in them. Whole chunks are tested without a branch per byte: a template has millions.
fn has_line_end(bytes: &[u8]) -> bool {
    let (chunks, rest) = bytes.as_chunks::<64>();
    let found = |bytes: &[u8]| bytes.iter().fold(0, |found, byte| found | u8::from(*byte == b'\n')) != 0;
    chunks.iter().any(|chunk| found(chunk)) || found(rest)
}

/// Whether an answer is one JSON value on one line, as clients take it. Of a plugin that is trusted only what would break a
/// client's framing is looked for.
fn is_json(answer: &[u8], trusted: bool) -> bool {
    !has_line_end(answer) && (trusted || serde_json::from_slice::<&serde_json::value::RawValue>(answer).is_ok())
}
