//! The one error type a call answers with, and bitcoind's table of codes.
//!
//! A plugin keeps its own error enum, one variant per rule it enforces, and turns it into an [`RpcError`] in one
//! place. The host never changes what a plugin answered.

use std::fmt;

/// A JSON-RPC error code as bitcoind uses it (`src/rpc/protocol.h`).
///
/// A newtype and not an enum: a plugin may answer with a code of its own.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Code(pub i32);

impl Code {
    /// An exception in a handler, a wrong JSON type, or a wrong number of arguments.
    pub const MISC: Code = Code(-1);
    /// A declared type was not met.
    pub const TYPE: Code = Code(-3);
    /// The wallet refuses: state or policy.
    pub const WALLET: Code = Code(-4);
    /// A bad key, address or descriptor, or an unknown block or transaction.
    pub const INVALID_ADDRESS_OR_KEY: Code = Code(-5);
    /// Not enough funds for the payment.
    pub const WALLET_INSUFFICIENT_FUNDS: Code = Code(-6);
    /// Memory could not be had.
    pub const OUT_OF_MEMORY: Code = Code(-7);
    /// A value out of its range.
    pub const INVALID_PARAMETER: Code = Code(-8);
    /// Not connected, or shutting down.
    pub const CLIENT_NOT_CONNECTED: Code = Code(-9);
    /// Still downloading the chain.
    pub const CLIENT_IN_INITIAL_DOWNLOAD: Code = Code(-10);
    /// A label that is not allowed.
    pub const WALLET_INVALID_LABEL: Code = Code(-11);
    /// No fresh address can be derived.
    pub const WALLET_KEYPOOL_RAN_OUT: Code = Code(-12);
    /// The wallet is locked.
    pub const WALLET_UNLOCK_NEEDED: Code = Code(-13);
    /// The passphrase is wrong.
    pub const WALLET_PASSPHRASE_INCORRECT: Code = Code(-14);
    /// An encryption command that does not fit the wallet's state.
    pub const WALLET_WRONG_ENC_STATE: Code = Code(-15);
    /// Encrypting the wallet failed.
    pub const WALLET_ENCRYPTION_FAILED: Code = Code(-16);
    /// No such wallet, or none is loaded.
    pub const WALLET_NOT_FOUND: Code = Code(-18);
    /// Several wallets are loaded and none was named.
    pub const WALLET_NOT_SPECIFIED: Code = Code(-19);
    /// Data in the database is damaged.
    pub const DATABASE: Code = Code(-20);
    /// A transaction, block or previous output does not decode.
    pub const DESERIALIZATION: Code = Code(-22);
    /// Verification failed.
    pub const VERIFY: Code = Code(-25);
    /// Verification refused a transaction or block by its rules.
    pub const VERIFY_REJECTED: Code = Code(-26);
    /// The transaction is in the chain already.
    pub const VERIFY_ALREADY_IN_CHAIN: Code = Code(-27);
    /// The host is still starting.
    pub const IN_WARMUP: Code = Code(-28);
    /// There is no connection manager.
    pub const CLIENT_P2P_DISABLED: Code = Code(-31);
    /// There is no mempool.
    pub const CLIENT_MEMPOOL_DISABLED: Code = Code(-33);
    /// The wallet is loaded already.
    pub const WALLET_ALREADY_LOADED: Code = Code(-35);
    /// A wallet of that name exists already.
    pub const WALLET_ALREADY_EXISTS: Code = Code(-36);
    /// Not a request object (HTTP 400).
    pub const INVALID_REQUEST: Code = Code(-32600);
    /// Unknown method (HTTP 404).
    pub const METHOD_NOT_FOUND: Code = Code(-32601);
    /// Parameters that contradict what is stored.
    pub const INVALID_PARAMS: Code = Code(-32602);
    /// The host or a plugin failed inside.
    pub const INTERNAL: Code = Code(-32603);
    /// The body is not JSON.
    pub const PARSE: Code = Code(-32700);
}

/// What a failed call is answered with: a code and a message in the caller's terms.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RpcError {
    /// Tells programs what went wrong.
    pub code: Code,
    /// Tells people what went wrong, and what was found.
    pub message: String,
}

impl RpcError {
    /// An error of `code` that reads `message`.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// -1, what bitcoind answers where a handler threw a plain exception.
    pub fn misc(message: impl Into<String>) -> Self {
        Self::new(Code::MISC, message)
    }

    /// -3, a declared type was not met.
    pub fn type_error(message: impl Into<String>) -> Self {
        Self::new(Code::TYPE, message)
    }

    /// -8, a value out of its range.
    pub fn invalid_parameter(message: impl Into<String>) -> Self {
        Self::new(Code::INVALID_PARAMETER, message)
    }

    /// -4, the wallet refuses.
    pub fn wallet(message: impl Into<String>) -> Self {
        Self::new(Code::WALLET, message)
    }

    /// -5, a bad key or address, or an unknown block or transaction.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(Code::INVALID_ADDRESS_OR_KEY, message)
    }

    /// -32603, a failure that is not the caller's.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Code::INTERNAL, message)
    }
}

impl fmt::Display for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (code {})", self.message, self.code.0)
    }
}

impl std::error::Error for RpcError {}
