//! `rpc/1`: calls of methods of other plugins, of the host, or of the bitcoind behind it.
//!
//! A plugin wraps a method with it, filters the answer of the plugin that it has replaced, or asks the node. The example `rpc` of the
//! SDK shows it in use.

use outrigger_values::{RpcError, RpcErrorCode};

use super::service;
use crate::wire::{Blob, wire_enum, wire_struct};

/// The longest parameters of a call, in bytes. bitcoind takes requests of up to 32 MiB, of which the method's name is a part.
pub const MAX_PARAMS: usize = (32 << 20) - 1024;

/// The longest result of a call, in bytes.
pub const MAX_RESULT: usize = 64 << 20;

wire_enum! {
    /// What a method answered.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub enum RpcReply {
        /// Its result.
        Result {
            /// The JSON text, as it was written.
            json: Blob,
        } = 0,
        /// Its error.
        Error {
            /// bitcoind's code, as -8.
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
    /// The method's error, as a client would read it.
    pub fn into_result(self) -> Result<Blob, RpcError> {
        match self {
            Self::Result { json } => Ok(json),
            Self::Error { code, message } => Err(RpcError::new(RpcErrorCode(code), message)),
        }
    }
}

wire_enum! {
    /// With whose rights a method is called.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum As {
        /// Those of the user whose call the plugin answers. The call ends with that call.
        Caller = 0,
        /// Those of the user `plugin:ID`, who may call the granted methods alone.
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
        /// The plugins that the call went through before this one, by their ids.
        pub through: Vec<String>,
    }
}

service! {
    /// Calls of methods.
    ///
    /// The grant `"rpc/1"` allows `caller` and `next`. The configuration grants `call` for methods by name: `{ service = "rpc/1",
    /// methods = ["getblocktemplate"] }`.
    ///
    /// A call goes the way of a client's: through the plugins of the method's chain, to the host or the node. `next` leaves out the plugins
    /// that the call went through. `call` leaves out the plugins that make calls within one another, and asks all other wrappers. A call
    /// goes through at most 8 plugins. `call` and `next` wait for the
    /// answer while somebody waits for the plugin's own answer, and outside of calls for at most 120 seconds.
    pub trait Rpc as RpcClient = "rpc/1" {
        /// Who made the call of the scope. Fails with `Malformed` outside of calls.
        #[since(1)]
        fn caller() -> CallerInfo;

        /// Passes the call of the scope to the next plugin of its chain, or after the last one to the host or the node, and gives their answer.
        /// `params` is the bytes of a JSON array or object; without it, the client's. To leave the call to them altogether, a reply that
        /// passes it on costs less.
        ///
        /// Fails with `Unsupported` on a thread that serves connections if the next one does not answer at once, so a
        /// method that uses it is not `inline` as a rule; with `Stale` when nobody waits any more; with `Malformed` for other parameters
        /// and outside of calls; with `NodeUnavailable` while the node is away; with `Refused` for a result of more than 67,108,864
        /// bytes, or when too many calls wait.
        #[since(1)]
        fn next(params: Option<Blob>) -> RpcReply;

        /// Calls a method. `params` is the bytes of a JSON array or object, of at most 33,553,408 bytes. With `As::Caller` the user's
        /// lists of methods and wallets hold, and the wallet is that of the call. The user of `As::Plugin` has the wallets of the
        /// plugin's grants: the call's wallet if it is one of them, else the only one. The audit log has a line for each of its calls.
        ///
        /// Fails as `next`; with `NotGranted` for a method that is not granted, or that the node's own list refuses
        /// (`rpcwhitelist`).
        #[since(1)]
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

    #[test]
    fn reply_is_a_result_or_an_error() {
        assert_eq!(RpcReply::Result { json: Blob(b"1".to_vec()) }.into_result(), Ok(Blob(b"1".to_vec())));
        let error = RpcReply::Error { code: -8, message: "Block height out of range".into() };
        let expected = RpcError::new(RpcErrorCode(-8), "Block height out of range");
        assert_eq!(error.into_result(), Err(expected));
    }
}
