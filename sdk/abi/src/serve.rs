//! The host's table for a host that implements a trait.

use std::ffi::c_void;

use super::bytes::{Bytes, OwnedBytes};
use super::host::HostTable;
use super::panics::caught;
use super::service::ServiceTable;
use super::{ABI_MAJOR, ABI_MINOR, ErrorKind};

/// The host behind the functions of its table.
pub trait HostCode: Send + Sync + 'static {
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
    }
}

unsafe extern "C" fn service<H: HostCode>(ctx: *const c_void, name: Bytes) -> *const ServiceTable {
    let found = caught(|| {
        // SAFETY: `ctx` is the host of `host_table`, which is never freed.
        let host = unsafe { &*ctx.cast::<H>() };
        // SAFETY: the plugin lends the name until this function returns.
        host.service(unsafe { name.as_slice() })
    });
    found.unwrap_or(std::ptr::null())
}

unsafe extern "C" fn reply<H: HostCode>(ctx: *const c_void, token: u64, code: i32, body: OwnedBytes) -> i32 {
    let status = caught(|| {
        // SAFETY: as above.
        let host = unsafe { &*ctx.cast::<H>() };
        host.reply(token, code, body)
    });
    status.unwrap_or(ErrorKind::Internal as i32)
}

unsafe extern "C" fn wanted<H: HostCode>(ctx: *const c_void, token: u64) -> i32 {
    let wanted = caught(|| {
        // SAFETY: as above.
        let host = unsafe { &*ctx.cast::<H>() };
        host.is_wanted(token)
    });
    i32::from(wanted.unwrap_or(false))
}
