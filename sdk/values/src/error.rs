//! The error of a call, and bitcoind's error codes.
//!
//! A plugin returns an error where it checks a rule. The host passes the error on unchanged.

/// A JSON-RPC error code as in bitcoind's `src/rpc/protocol.h`. A plugin may define codes of its own.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, serde::Serialize)]
pub struct RpcErrorCode(pub i32);

/// Declares the constants of [`RpcErrorCode`], with descriptions for the C header.
macro_rules! codes {
    ($(#[doc = $doc:literal] $name:ident = $code:literal,)*) => {
        impl RpcErrorCode {
            $(#[doc = $doc] pub const $name: RpcErrorCode = RpcErrorCode($code);)*

            /// All codes with their names and meanings.
            pub const ALL: &'static [(Self, &'static str, &'static str)] =
                &[$((Self::$name, stringify!($name), $doc),)*];
        }
    };
}

codes! {
    /// An exception in a handler, a wrong JSON type, or a wrong number of arguments.
    MISC = -1,
    /// A value is not of its declared type.
    TYPE = -3,
    /// The wallet refuses, for its state or policy.
    WALLET = -4,
    /// An invalid key, address or descriptor, or an unknown block or transaction.
    INVALID_ADDRESS_OR_KEY = -5,
    /// Not enough funds for the payment.
    WALLET_INSUFFICIENT_FUNDS = -6,
    /// Out of memory.
    OUT_OF_MEMORY = -7,
    /// A value is out of range.
    INVALID_PARAMETER = -8,
    /// Not connected, or shutting down.
    CLIENT_NOT_CONNECTED = -9,
    /// Still downloading the chain.
    CLIENT_IN_INITIAL_DOWNLOAD = -10,
    /// A label is not allowed.
    WALLET_INVALID_LABEL = -11,
    /// No new address can be derived.
    WALLET_KEYPOOL_RAN_OUT = -12,
    /// The wallet is locked.
    WALLET_UNLOCK_NEEDED = -13,
    /// The passphrase is wrong.
    WALLET_PASSPHRASE_INCORRECT = -14,
    /// An encryption command does not fit the wallet's state.
    WALLET_WRONG_ENC_STATE = -15,
    /// Encrypting the wallet failed.
    WALLET_ENCRYPTION_FAILED = -16,
    /// No such wallet, or none is loaded.
    WALLET_NOT_FOUND = -18,
    /// Several wallets are loaded, and the call names none.
    WALLET_NOT_SPECIFIED = -19,
    /// The database is corrupt.
    DATABASE = -20,
    /// A transaction, block or previous output cannot be decoded.
    DESERIALIZATION = -22,
    /// A node was added, or an address banned, before.
    CLIENT_NODE_ALREADY_ADDED = -23,
    /// A node was not added.
    CLIENT_NODE_NOT_ADDED = -24,
    /// Verification failed.
    VERIFY = -25,
    /// The rules refuse a transaction or block.
    VERIFY_REJECTED = -26,
    /// The transaction is in the chain already.
    VERIFY_ALREADY_IN_CHAIN = -27,
    /// The host is still starting.
    IN_WARMUP = -28,
    /// A node is not connected.
    CLIENT_NODE_NOT_CONNECTED = -29,
    /// An IP address or subnet is invalid, or was not banned.
    CLIENT_INVALID_IP_OR_SUBNET = -30,
    /// The connection manager is missing.
    CLIENT_P2P_DISABLED = -31,
    /// The method is deprecated.
    METHOD_DEPRECATED = -32,
    /// The mempool is missing.
    CLIENT_MEMPOOL_DISABLED = -33,
    /// The wallet is loaded already.
    WALLET_ALREADY_LOADED = -35,
    /// A wallet of that name exists.
    WALLET_ALREADY_EXISTS = -36,
    /// The request is no request object (HTTP 400).
    INVALID_REQUEST = -32600,
    /// The method is unknown (HTTP 404).
    METHOD_NOT_FOUND = -32601,
    /// Parameters contradict stored data.
    INVALID_PARAMS = -32602,
    /// The host or a plugin failed internally.
    INTERNAL = -32603,
    /// The body is not JSON.
    PARSE = -32700,
}

/// The error of a call, in the caller's terms.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, thiserror::Error)]
#[error("{message} (code {})", .code.0)]
pub struct RpcError {
    /// The code, for programs.
    pub code: RpcErrorCode,
    /// The message, for people.
    pub message: String,
}

impl RpcError {
    /// An error with this code and message.
    pub fn new(code: RpcErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// Code -1. bitcoind uses it for plain exceptions in handlers.
    pub fn misc(message: impl Into<String>) -> Self {
        Self::new(RpcErrorCode::MISC, message)
    }

    /// Code -3: a value is not of its declared type.
    pub fn type_error(message: impl Into<String>) -> Self {
        Self::new(RpcErrorCode::TYPE, message)
    }

    /// Code -8: a value is out of range.
    pub fn invalid_parameter(message: impl Into<String>) -> Self {
        Self::new(RpcErrorCode::INVALID_PARAMETER, message)
    }

    /// Code -4: the wallet refuses.
    pub fn wallet(message: impl Into<String>) -> Self {
        Self::new(RpcErrorCode::WALLET, message)
    }

    /// Code -5: an invalid key or address, or an unknown block or transaction.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(RpcErrorCode::INVALID_ADDRESS_OR_KEY, message)
    }

    /// Code -22: a transaction, block or previous output cannot be decoded.
    pub fn undecodable(message: impl Into<String>) -> Self {
        Self::new(RpcErrorCode::DESERIALIZATION, message)
    }

    /// Code -32601: the plugin lacks a method of its manifest. `outrigger plugin check` finds it before a client does.
    pub fn no_method(method: &str) -> Self {
        Self::new(RpcErrorCode::METHOD_NOT_FOUND, format!("The plugin has no method {method}"))
    }

    /// Code -32603: a failure that is not the caller's.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(RpcErrorCode::INTERNAL, message)
    }
}
