//! What the host gives a plugin at `init`: a way to ask for services and a way to answer calls.

use std::ffi::c_void;

use super::bytes::{Bytes, OwnedBytes};
use super::service::ServiceTable;

/// Finds a service by name and revision; null when it is unknown or not granted.
///
/// The table stays valid until `destroy` has returned. May be called from any thread.
pub type ServiceLookupFn = unsafe extern "C" fn(ctx: *const c_void, name: Bytes) -> *const ServiceTable;

/// Answers a call, exactly once, from any thread.
///
/// With `code` 0 `body` is the result as JSON, otherwise the error's message as UTF-8. The host takes `body` in every case.
/// The status is 0, or `Stale` when the call was answered, cancelled or timed out before.
pub type ReplyFn = unsafe extern "C" fn(ctx: *const c_void, token: u64, code: i32, body: OwnedBytes) -> i32;

/// Whether a call still waits for its answer: 1 while it does, 0 once it was answered, cancelled or timed out.
///
/// May be called from any thread. A call that works for long asks now and then, and stops when nobody waits.
pub type WantedFn = unsafe extern "C" fn(ctx: *const c_void, token: u64) -> i32;

/// The host, as a plugin sees it. It stays valid until `destroy` has returned.
#[repr(C)]
pub struct HostTable {
    /// The bytes of this struct.
    pub struct_size: usize,
    /// The host's major version of the interface.
    pub abi_major: u32,
    /// The host's minor version.
    pub abi_minor: u32,
    /// To be passed to each function.
    pub ctx: *const c_void,
    /// Finds a service.
    pub service: ServiceLookupFn,
    /// Answers a call.
    pub reply: ReplyFn,
    /// Tells whether a call still waits. Since minor 1.
    pub wanted: WantedFn,
}

// SAFETY: the host never writes the struct after it was handed out, and its functions may be called from any thread.
unsafe impl Send for HostTable {}
// SAFETY: as above.
unsafe impl Sync for HostTable {}
