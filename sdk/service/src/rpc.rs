//! `rpc/1`: calls methods of other plugins, of the host, or of the bitcoind behind it.
//!
//! With it a plugin wraps a method, filters the answer of a plugin that it replaces, or calls the node. The example `rpc` of the
//! SDK shows it in use.

use outrigger_values::{RpcError, RpcErrorCode};

use super::service;
use crate::wire::{Blob, wire_enum, wire_struct};

/// The longest parameters of a call, in bytes. bitcoind accepts requests of up to 32 MiB, including the method's name.
pub const MAX_PARAMS: usize = (32 << 20) - 1024;

/// The longest result of a call, in bytes.
pub const MAX_RESULT: usize = 64 << 20;

wire_enum! {
    /// The answer of a method.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub enum RpcReply {
        /// Its result.
        Result {
            /// The unchanged JSON text.
            json: Blob,
        } = 0,
        /// Its error.
        Error {
            /// bitcoind's code, for example -8.
            code: i32,
            /// bitcoind's message.
            message: String,
        } = 1,
    }
}

impl RpcReply {
    /// The JSON text of the result.
    ///
    /// # Errors
    /// The method's error, as a client would receive it.
    pub fn into_result(self) -> Result<Blob, RpcError> {
        match self {
            Self::Result { json } => Ok(json),
            Self::Error { code, message } => Err(RpcError::new(RpcErrorCode(code), message)),
        }
    }
}

wire_enum! {
    /// The user whose rights apply to a call.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum As {
        /// The user whose call the plugin answers. The new call ends with that call.
        Caller = 0,
        /// The user `plugin:ID`, who may only call the granted methods.
        Plugin = 1,
    }
}

wire_struct! {
    /// Who made a call.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct CallerInfo {
        /// The user's name; `__cookie__` for the cookie, `plugin:ID` for a plugin.
        pub user: String,
        /// The wallet that the call names, or the user's only one.
        pub wallet: Option<String>,
        /// The ids of the plugins that handled the call before this one.
        pub through: Vec<String>,
    }
}

service! {
    /// Calls of methods.
    ///
    /// The grant `"rpc/1"` allows `caller` and `next`. The configuration grants `call` for methods by name: `{ service = "rpc/1",
    /// methods = ["getblocktemplate"] }`.
    ///
    /// A call takes the same path as a client's: through the plugins of the method's chain to the host or the node. `next` skips the
    /// plugins that the call has already passed. `call` skips the plugins whose nested calls led to it, and passes all other wrappers. A
    /// call passes at most 8 plugins. `call` and `next` wait for the answer while the plugin's own caller waits; outside of calls they
    /// wait for at most 120 seconds.
    pub trait Rpc = "rpc/1" {
        /// The caller of the scope's call. Fails with `Malformed` outside of calls.
        fn caller() -> CallerInfo;

        /// Passes the scope's call to the next plugin of its chain, or after the last one to the host or the node, and returns the answer.
        /// `params` is a JSON array or object as bytes; without it, the host uses the client's. If the plugin does not need the answer,
        /// a reply that passes the call on costs less.
        ///
        /// Fails with `Unsupported` on a thread that serves connections if the next plugin does not answer at once, so a
        /// method that uses it should not be `inline`; with `Stale` if nobody waits any more; with `Malformed` for invalid parameters
        /// and outside of calls; with `NodeUnavailable` if the node is unreachable; with `Refused` for a result of more than 67,108,864
        /// bytes, or if too many calls wait.
        fn next(params: Option<Blob>) -> RpcReply;

        /// Calls a method. `params` is a JSON array or object of at most 33,553,408 bytes. With `As::Caller` the user's lists of
        /// methods and wallets apply, and the wallet is the call's. With `As::Plugin` the wallets of the plugin's grants apply:
        /// the call's wallet if it is one of them, else the only one. An audit log that records the method has a line for each call
        /// with `As::Plugin`.
        ///
        /// Fails as `next`; with `NotGranted` for a method that is not granted, or that the node's list (`rpcwhitelist`)
        /// refuses.
        fn call(method: String, params: Blob, account: As) -> RpcReply;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_those_of_the_documentation() {
        assert_eq!((MAX_PARAMS, MAX_RESULT), (33_553_408, 67_108_864));
    }
}
