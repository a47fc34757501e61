//! Builds the host's table from a [`HostCode`].

use std::ffi::c_void;

use super::bytes::{Bytes, OwnedBytes};
use super::host::HostTable;
use super::panics::caught;
use super::service::{RawService, Response, ServiceTable, respond};
use super::{ABI_MAJOR, ABI_MINOR, ErrorKind};

/// Converts messages to JSON and back. The service crate implements it.
pub trait JsonCode {
    /// Calls a function of the service `name` with JSON.
    fn ask(service: &RawService, name: &[u8], function: &[u8], scope: u64, request: &[u8]) -> Response;

    /// Converts an encoded event to JSON.
    fn event(event: &[u8]) -> Response;
}

/// The host that the functions of its table call.
pub trait HostCode: Send + Sync + 'static {
    /// The conversion of its messages to JSON.
    type Json: JsonCode;

    /// Whether `stop` has returned. If so, the functions of the table have no effect.
    fn has_stopped(&self) -> bool {
        false
    }

    /// The table of a service, valid for the life of the process; null if it is not granted.
    fn service(&self, name: &[u8]) -> *const ServiceTable;

    /// Takes the answer of a call. Returns the status of [`crate::ReplyFn`].
    fn reply(&self, token: u64, code: i32, body: OwnedBytes) -> i32;

    /// Whether a call still waits for its answer.
    fn is_wanted(&self, token: u64) -> bool;
}

/// The table of a host that lives as long as the process.
pub fn host_table<H: HostCode>(host: &'static H) -> HostTable {
    HostTable {
        struct_size: size_of::<HostTable>(),
        abi_major: ABI_MAJOR,
        abi_minor: ABI_MINOR,
        ctx: (&raw const *host).cast(),
        service: service::<H>,
        reply: reply::<H>,
        wanted: wanted::<H>,
        ask_json: ask_json::<H>,
        event_json: event_json::<H>,
    }
}

/// The host of a table; [`ErrorKind::Stale`] once it has stopped.
///
/// # Safety
/// `ctx` is from [`host_table`].
unsafe fn host<H: HostCode>(ctx: *const c_void) -> Result<&'static H, ErrorKind> {
    // SAFETY: the host of `host_table` is never freed.
    let host = unsafe { &*ctx.cast::<H>() };
    if host.has_stopped() { Err(ErrorKind::Stale) } else { Ok(host) }
}

unsafe extern "C" fn service<H: HostCode>(ctx: *const c_void, name: Bytes) -> *const ServiceTable {
    // SAFETY: `ctx` is from the same table; the plugin lends the name until this function returns.
    let found = caught(|| unsafe { Some(host::<H>(ctx).ok()?.service(name.as_slice())) });
    found.flatten().unwrap_or(std::ptr::null())
}

unsafe extern "C" fn reply<H: HostCode>(ctx: *const c_void, token: u64, code: i32, body: OwnedBytes) -> i32 {
    // SAFETY: `ctx` is from the same table.
    let status = caught(|| match unsafe { host::<H>(ctx) } {
        Ok(host) => host.reply(token, code, body),
        Err(kind) => kind as i32,
    });
    status.unwrap_or(ErrorKind::Internal as i32)
}

unsafe extern "C" fn wanted<H: HostCode>(ctx: *const c_void, token: u64) -> i32 {
    // SAFETY: `ctx` is from the same table.
    let wanted = caught(|| unsafe { host::<H>(ctx) }.is_ok_and(|host| host.is_wanted(token)));
    i32::from(wanted.unwrap_or(false))
}

unsafe extern "C" fn ask_json<H: HostCode>(
    ctx: *const c_void,
    service: Bytes,
    function: Bytes,
    scope: u64,
    request: Bytes,
    response: *mut OwnedBytes,
) -> i32 {
    // SAFETY: `ctx` is from the same table, whose services are valid for the life of the process; the plugin lends the bytes
    // until this function returns, and `response` is writable.
    unsafe {
        respond(response, || {
            let name = service.as_slice();
            let service = RawService::new(host::<H>(ctx)?.service(name));
            Ok(H::Json::ask(&service, name, function.as_slice(), scope, request.as_slice()))
        })
    }
}

unsafe extern "C" fn event_json<H: HostCode>(ctx: *const c_void, event: Bytes, response: *mut OwnedBytes) -> i32 {
    // SAFETY: as above.
    unsafe { respond(response, || host::<H>(ctx).map(|_| H::Json::event(event.as_slice()))) }
}
