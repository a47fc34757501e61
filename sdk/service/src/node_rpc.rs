//! `node-rpc/1`: the methods of the bitcoind that the host stands in front of.
//!
//! A plugin wraps or filters the node's own answer with it. The example `node_rpc` of the SDK shows it in use.

use outrigger_values::{RpcError, RpcErrorCode};

use super::service;
use crate::wire::{Blob, wire_enum};

/// The longest parameters of a call, in bytes. bitcoind takes requests of up to 32 MiB, of which the method's name is a part.
pub const MAX_PARAMS: usize = (32 << 20) - 1024;

/// The longest result of a call, in bytes.
pub const MAX_RESULT: usize = 64 << 20;

wire_enum! {
    /// What a method of the node answered.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub enum NodeReply {
        /// Its result.
        Result {
            /// The JSON text, as the node wrote it.
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

impl NodeReply {
    /// The JSON text of the result.
    ///
    /// # Errors
    /// The method's error, as a client of the node would read it.
    pub fn into_result(self) -> Result<Blob, RpcError> {
        match self {
            Self::Result { json } => Ok(json),
            Self::Error { code, message } => Err(RpcError::new(RpcErrorCode(code), message)),
        }
    }
}

service! {
    /// The methods of the bitcoind that the host stands in front of.
    ///
    /// The configuration grants it for methods by name: `{ service = "node-rpc/1", methods = ["getblocktemplate"] }`. A call is
    /// passed on as a client's would be that no plugin answers: `backend.deny` and the rule for wallet methods hold
    /// (`Error` with code -32601), a `longpollid` waits in the host, and what the call changed has been followed before it
    /// returns. The rights are those of the grant, not those of the user whose call the plugin answers.
    pub trait NodeRpc as NodeRpcClient = "node-rpc/1" {
        /// Calls a method of the node and waits for its answer. `params` is the JSON text of an array or an object, of at most
        /// 33,553,408 bytes.
        ///
        /// Within a call it waits for as long as somebody waits for that call's answer: when its client has gone, its deadline
        /// has passed or it was answered, it fails with `Stale`, and the node may have done what was asked. Outside of calls it
        /// waits for at most 120 seconds. A method that uses it may not be `inline`.
        ///
        /// Fails with `NotGranted` for a method that is not granted, or that the node's own list refuses (`rpcwhitelist`); with
        /// `Unsupported` where the host stands in front of no bitcoind, and in a call of an inline method; with `Malformed` for
        /// other parameters; with `NodeUnavailable` while the node is away, starts, or takes no more work; with `Refused` for a
        /// result of more than 67,108,864 bytes.
        #[since(1)]
        fn call(method: String, params: Blob) -> NodeReply;
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
    fn node_reply_is_a_result_or_the_error_of_the_node() {
        assert_eq!(NodeReply::Result { json: Blob(b"1".to_vec()) }.into_result(), Ok(Blob(b"1".to_vec())));
        let error = NodeReply::Error { code: -8, message: "Block height out of range".into() };
        let expected = RpcError::new(RpcErrorCode(-8), "Block height out of range");
        assert_eq!(error.into_result(), Err(expected));
    }
}
