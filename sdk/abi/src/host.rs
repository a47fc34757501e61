//! What the host gives a plugin at `init`: a way to ask for services and a way to answer calls.

use std::ffi::c_void;

use super::bytes::{Bytes, OwnedBytes};
use super::layout::{abi_functions, abi_struct};
use super::service::ServiceTable;

abi_functions! {
    const FUNCTIONS;
    /// Finds a service by name and revision, as `chain/1`; null when it is unknown or not granted.
    ///
    /// Threads: any, from `init` until `stop` has returned. Later it is null.
    ///
    /// Ownership: `name` stays the plugin's, the table the host's.
    ///
    /// Lifetime: `name` is read until the function returns; the table stays valid for the life of the process.
    pub type ServiceLookupFn = fn(ctx: *const c_void, name: Bytes) -> *const ServiceTable;
    /// Answers a call, exactly once: with `code` 0 `body` is the result as one line of JSON, otherwise the error's message as
    /// UTF-8.
    ///
    /// The status is 0, or [`crate::ErrorKind::Stale`] when the call was answered, cancelled or timed out before.
    ///
    /// Threads: any, while `call` runs and after it, until `stop` has returned. Later the status is
    /// [`crate::ErrorKind::Stale`].
    ///
    /// Ownership: the host takes `body` in every case, and releases it, from any thread.
    ///
    /// Lifetime: `body` may be released after `destroy`. The token means nothing once the call was answered.
    pub type ReplyFn = fn(ctx: *const c_void, token: u64, code: i32, body: OwnedBytes) -> i32;
    /// Whether a call still waits for its answer: 1 while it does, 0 once it was answered, cancelled or timed out. A call that
    /// works for long asks now and then, and stops when nobody waits.
    ///
    /// Threads: any, from `init` until `stop` has returned. Later it is 0.
    ///
    /// Ownership: nothing changes hands.
    ///
    /// Lifetime: any token may be asked for, also one of a call that is long over.
    #[since(1)]
    pub type WantedFn = fn(ctx: *const c_void, token: u64) -> i32;
}

abi_struct! {
    /// The host, as a plugin sees it.
    ///
    /// This table, the tables of services and the plugin's library stay where they are for the life of the process. A plugin must
    /// end its threads in `stop`. A later call of the host reads no freed memory and changes nothing: it finds no service, and is
    /// answered with [`crate::ErrorKind::Stale`].
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
        /// Tells whether a call still waits.
        #[since(1)]
        pub wanted: WantedFn,
    }
}

// SAFETY: the host never writes the struct after it was handed out, and its functions may be called from any thread.
unsafe impl Send for HostTable {}
// SAFETY: as above.
unsafe impl Sync for HostTable {}
