//! The host's table, which a plugin gets at `init`. The plugin finds services and answers calls with it.

use std::ffi::c_void;

#[cfg(doc)]
use super::ErrorKind;
use super::bytes::{Bytes, OwnedBytes};
use super::layout::{abi_functions, abi_struct};
use super::service::ServiceTable;

abi_functions! {
    const FUNCTIONS;
    /// Finds a service by name and revision, such as `chain/1`; null if it is unknown or not granted.
    ///
    /// Threads: any, from `init` until `stop` returns. Later the result is null.
    ///
    /// Ownership: `name` stays the plugin's, the table the host's.
    ///
    /// Lifetime: `name` is read until the function returns; the table stays valid for the life of the process.
    pub type ServiceLookupFn = fn(ctx: *const c_void, name: Bytes) -> *const ServiceTable;
    /// Answers a call, exactly once. With `code` 0, `body` is the result as a line of JSON, else the message as UTF-8.
    ///
    /// The status is 0, or [`ErrorKind::Stale`] if the call was answered, cancelled or timed out before.
    ///
    /// Threads: any, during `call` or later, until `stop` returns. After that the status is
    /// [`ErrorKind::Stale`].
    ///
    /// Ownership: the host takes `body` in every case, and releases it on any thread.
    ///
    /// Lifetime: `body` may be released after `destroy`. After the answer the token is invalid.
    pub type ReplyFn = fn(ctx: *const c_void, token: u64, code: i32, body: OwnedBytes) -> i32;
    /// Whether a call still waits for its answer: 1 if so, 0 once it was answered, cancelled or timed out. A long call
    /// should check this now and then, and stop once the result is 0.
    ///
    /// Threads: any, from `init` until `stop` returns. Later the result is 0.
    ///
    /// Ownership: nothing changes hands.
    ///
    /// Lifetime: any token may be passed, even of a call that has ended.
    #[since(1)]
    pub type WantedFn = fn(ctx: *const c_void, token: u64) -> i32;
    /// Calls a function of a service, given by name and revision. `request` is a JSON object with the arguments by name. If the
    /// status is 0, `response` is the result as JSON; otherwise the status is an [`ErrorKind`], and `response` is an error object
    /// with `code` and `message`, as in bitcoind. `scope` is the token of the call that the plugin serves, or 0.
    ///
    /// Threads: any, from `init` until `stop` returns; one thread at a time per scope. Later the status is
    /// [`ErrorKind::Stale`].
    ///
    /// Ownership: names and request stay the caller's. `response` is written, not read; the caller always releases it.
    ///
    /// Lifetime: names and request are read until the function returns; `response` stays valid until it is released. A scope
    /// ends when `call` returns for its token.
    #[since(1)]
    pub type AskJsonFn = fn(
        ctx: *const c_void,
        service: Bytes,
        function: Bytes,
        scope: u64,
        request: Bytes,
        response: *mut OwnedBytes
    ) -> i32;
    /// Converts an encoded event to JSON. The status and the response are as for [`AskJsonFn`].
    ///
    /// Threads: any, from `init` until `stop` returns. Later the status is [`ErrorKind::Stale`].
    ///
    /// Ownership: `event` stays the caller's. `response` is written, not read; the caller always releases it.
    ///
    /// Lifetime: `event` is read until the function returns; `response` stays valid until it is released.
    #[since(1)]
    pub type EventJsonFn = fn(ctx: *const c_void, event: Bytes, response: *mut OwnedBytes) -> i32;
}

abi_struct! {
    /// The host, as a plugin sees it.
    ///
    /// This table, the service tables and the plugin's library stay in place for the life of the process. A plugin must
    /// end its threads in `stop`. A later call reads no freed memory and has no effect: it finds no service, and its
    /// answer is refused with [`ErrorKind::Stale`].
    pub struct HostTable {
        /// The size of this struct in bytes.
        pub struct_size: usize,
        /// The host's major version of the interface.
        pub abi_major: u32,
        /// The host's minor version.
        pub abi_minor: u32,
        /// The first argument of each function.
        pub ctx: *const c_void,
        /// Finds a service.
        pub service: ServiceLookupFn,
        /// Answers a call.
        pub reply: ReplyFn,
        /// Returns whether a call still waits for its answer.
        #[since(1)]
        pub wanted: WantedFn,
        /// Calls a function of a service with JSON.
        #[since(1)]
        pub ask_json: AskJsonFn,
        /// Converts an encoded event to JSON.
        #[since(1)]
        pub event_json: EventJsonFn,
    }
}

// SAFETY: the host never writes the struct after passing it on, and any thread may call its functions.
unsafe impl Send for HostTable {}
// SAFETY: as above.
unsafe impl Sync for HostTable {}
