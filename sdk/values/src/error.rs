//! The one error type a call answers with, and bitcoind's table of codes.
//!
//! A plugin keeps its own error enum, one variant per rule it enforces, and turns it into an [`RpcError`] in one
//! place. The host never changes what a plugin answered.

use std::fmt;

/// A JSON-RPC error code as bitcoind uses it (`src/rpc/protocol.h`).
///
/// A newtype and not an enum: a plugin may answer with a code of its own.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RpcErrorCode(pub i32);

/// Declares the constants of [`RpcErrorCode`] and describes them for the C header.
macro_rules! codes {
    ($(#[doc = $doc:literal] $name:ident = $code:literal,)*) => {
        impl RpcErrorCode {
            $(#[doc = $doc] pub const $name: RpcErrorCode = RpcErrorCode($code);)*

            /// Every code, with its name and what it means.
            pub const ALL: &'static [(Self, &'static str, &'static str)] =
                &[$((Self::$name, stringify!($name), $doc),)*];
        }
    };
}

codes! {
    /// An exception in a handler, a wrong JSON type, or a wrong number of arguments.
    MISC = -1,
    /// A declared type was not met.
    TYPE = -3,
    /// The wallet refuses: state or policy.
    WALLET = -4,
    /// A bad key, address or descriptor, or an unknown block or transaction.
    INVALID_ADDRESS_OR_KEY = -5,
    /// Not enough funds for the payment.
    WALLET_INSUFFICIENT_FUNDS = -6,
    /// Memory could not be had.
    OUT_OF_MEMORY = -7,
    /// A value out of its range.
    INVALID_PARAMETER = -8,
    /// Not connected, or shutting down.
    CLIENT_NOT_CONNECTED = -9,
    /// Still downloading the chain.
    CLIENT_IN_INITIAL_DOWNLOAD = -10,
    /// A label that is not allowed.
    WALLET_INVALID_LABEL = -11,
    /// No fresh address can be derived.
    WALLET_KEYPOOL_RAN_OUT = -12,
    /// The wallet is locked.
    WALLET_UNLOCK_NEEDED = -13,
    /// The passphrase is wrong.
    WALLET_PASSPHRASE_INCORRECT = -14,
    /// An encryption command that does not fit the wallet's state.
    WALLET_WRONG_ENC_STATE = -15,
    /// Encrypting the wallet failed.
    WALLET_ENCRYPTION_FAILED = -16,
    /// No such wallet, or none is loaded.
    WALLET_NOT_FOUND = -18,
    /// Several wallets are loaded and none was named.
    WALLET_NOT_SPECIFIED = -19,
    /// Data in the database is damaged.
    DATABASE = -20,
    /// A transaction, block or previous output does not decode.
    DESERIALIZATION = -22,
    /// A node or an address that was added or banned before.
    CLIENT_NODE_ALREADY_ADDED = -23,
    /// A node that was not added.
    CLIENT_NODE_NOT_ADDED = -24,
    /// Verification failed.
    VERIFY = -25,
    /// Verification refused a transaction or block by its rules.
    VERIFY_REJECTED = -26,
    /// The transaction is in the chain already.
    VERIFY_ALREADY_IN_CHAIN = -27,
    /// The host is still starting.
    IN_WARMUP = -28,
    /// A node that is not connected.
    CLIENT_NODE_NOT_CONNECTED = -29,
    /// An address of a node, or a range of them, that is none or was not banned.
    CLIENT_INVALID_IP_OR_SUBNET = -30,
    /// There is no connection manager.
    CLIENT_P2P_DISABLED = -31,
    /// There is no mempool.
    CLIENT_MEMPOOL_DISABLED = -33,
    /// The wallet is loaded already.
    WALLET_ALREADY_LOADED = -35,
    /// A wallet of that name exists already.
    WALLET_ALREADY_EXISTS = -36,
    /// Not a request object (HTTP 400).
    INVALID_REQUEST = -32600,
    /// Unknown method (HTTP 404).
    METHOD_NOT_FOUND = -32601,
    /// Parameters that contradict what is stored.
    INVALID_PARAMS = -32602,
    /// The host or a plugin failed inside.
    INTERNAL = -32603,
    /// The body is not JSON.
    PARSE = -32700,
}

/// What a failed call is answered with: a code and a message in the caller's terms.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RpcError {
    /// Tells programs what went wrong.
    pub code: RpcErrorCode,
    /// Tells people what went wrong, and what was found.
    pub message: String,
}

impl RpcError {
    /// An error of `code` that reads `message`.
    pub fn new(code: RpcErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// -1, what bitcoind answers where a handler threw a plain exception.
    pub fn misc(message: impl Into<String>) -> Self {
        Self::new(RpcErrorCode::MISC, message)
    }

    /// -3, a declared type was not met.
    pub fn type_error(message: impl Into<String>) -> Self {
        Self::new(RpcErrorCode::TYPE, message)
    }

    /// -8, a value out of its range.
    pub fn invalid_parameter(message: impl Into<String>) -> Self {
        Self::new(RpcErrorCode::INVALID_PARAMETER, message)
    }

    /// -4, the wallet refuses.
    pub fn wallet(message: impl Into<String>) -> Self {
        Self::new(RpcErrorCode::WALLET, message)
    }

    /// -5, a bad key or address, or an unknown block or transaction.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(RpcErrorCode::INVALID_ADDRESS_OR_KEY, message)
    }

    /// -32601, for a method that the manifest lists and the plugin does not have. A client never sees it: `outrigger plugin check`
    /// finds it first.
    pub fn no_method(method: &str) -> Self {
        Self::new(RpcErrorCode::METHOD_NOT_FOUND, format!("The plugin has no method {method}"))
    }

    /// -32603, a failure that is not the caller's.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(RpcErrorCode::INTERNAL, message)
    }
}

impl fmt::Display for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (code {})", self.message, self.code.0)
    }
}

impl std::error::Error for RpcError {}
