//! The services that a host offers to plugins.
//!
//! Each service is a trait that the host implements and a plugin calls. The macro `service!` derives from one
//! declaration the trait, the table of C functions of the ABI ([`crate::abi`]) and the client that speaks it, so that
//! the three cannot differ. A service has a name and a revision (`chain/1`); functions are only ever added at the end of a
//! revision.
//!
//! Every function takes a [`Scope`]: within a call its snapshots are those of the call, so that two reads of one call
//! never disagree.

pub mod chain;
pub mod events;
pub mod log;
pub mod mempool;
pub mod signer;
pub mod wallet;

pub use chain::Chain;
pub use events::Events;
pub use log::Log;
pub use mempool::Mempool;
pub use signer::Signer;
pub use wallet::Wallet;

use crate::error::{RpcError, RpcErrorCode};
use crate::wire::WireError;

/// On whose behalf a service is asked.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Scope(pub u64);

impl Scope {
    /// Outside of any call: each function sees the newest state and there is no wallet selected by a client.
    pub const NONE: Scope = Scope(0);
}

/// Declares [`ErrorKind`] and describes it for the C header.
macro_rules! error_kinds {
    ($(#[$meta:meta])* pub enum $name:ident { $(#[doc = $doc:literal] $kind:ident = $status:literal,)* }) => {
        $(#[$meta])*
        pub enum $name {
            $(#[doc = $doc] $kind = $status,)*
        }

        impl $name {
            /// Every kind, with its name and what it means.
            pub(crate) const ALL: &'static [(Self, &'static str, &'static str)] =
                &[$((Self::$kind, stringify!($kind), $doc),)*];
        }
    };
}

error_kinds! {
    /// Which kind of trouble a service had. The numbers are the status codes of the ABI.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
    #[repr(i32)]
    pub enum ErrorKind {
        /// The handle's call, wallet or cursor is gone.
        Stale = 1,
        /// The request's bytes are damaged, or a value in them is out of range.
        Malformed = 2,
        /// The other side does not have this function.
        Unsupported = 3,
        /// The configuration does not grant this.
        NotGranted = 4,
        /// The storage failed; nothing was changed.
        Storage = 5,
        /// The request names a thing that does not exist.
        NotFound = 6,
        /// The rules refuse; the detail says why, in the caller's terms.
        Refused = 7,
        /// The named wallet is not loaded.
        WalletNotLoaded = 8,
        /// No wallet is loaded at all.
        NoWallet = 9,
        /// Several wallets are loaded and the call names none.
        WalletNotSpecified = 10,
        /// The wallet is encrypted and locked.
        WalletLocked = 11,
        /// A rescan of the wallet is running.
        WalletRescanning = 12,
        /// The host is stopping.
        ShuttingDown = 13,
        /// The wallet is loaded already.
        WalletAlreadyLoaded = 14,
        /// A wallet of that name exists.
        WalletExists = 15,
        /// The passphrase is wrong.
        PassphraseIncorrect = 16,
        /// The wallet is not in the encryption state that the request needs.
        WrongEncryptionState = 17,
        /// The service failed inside; the details are in the log.
        Internal = 18,
        /// No fresh address can be derived.
        KeypoolRanOut = 19,
    }
}

impl ErrorKind {
    /// The kind of a status code; one that a newer host invented reads as [`ErrorKind::Internal`].
    pub fn from_status(status: i32) -> Self {
        Self::ALL.iter().map(|(kind, ..)| *kind).find(|kind| *kind as i32 == status).unwrap_or(Self::Internal)
    }
}

/// Why a service did not do what it was asked.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{kind:?}: {detail}")]
pub struct ServiceError {
    /// The kind, for programs.
    pub kind: ErrorKind,
    /// What was found, for people; may be empty where the kind says it all.
    pub detail: String,
}

impl ServiceError {
    /// An error of `kind` with `detail`.
    pub fn new(kind: ErrorKind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into() }
    }
}

impl From<ErrorKind> for ServiceError {
    fn from(kind: ErrorKind) -> Self {
        Self { kind, detail: String::new() }
    }
}

impl From<WireError> for ServiceError {
    fn from(error: WireError) -> Self {
        Self::new(ErrorKind::Malformed, error.to_string())
    }
}

impl From<ServiceError> for RpcError {
    /// The one place where a service's trouble becomes a code and a message of bitcoind.
    fn from(error: ServiceError) -> Self {
        let or = |text: &str| if error.detail.is_empty() { text.to_owned() } else { error.detail.clone() };
        match error.kind {
            ErrorKind::WalletNotLoaded => {
                Self::new(RpcErrorCode::WALLET_NOT_FOUND, or("Requested wallet does not exist or is not loaded"))
            }
            ErrorKind::NoWallet => Self::new(
                RpcErrorCode::WALLET_NOT_FOUND,
                "No wallet is loaded. Load a wallet using loadwallet or create a new one with createwallet. (Note: A default wallet is no longer automatically created)",
            ),
            ErrorKind::WalletNotSpecified => Self::new(
                RpcErrorCode::WALLET_NOT_SPECIFIED,
                "Multiple wallets are loaded. Please select which wallet to use by requesting the RPC through the /wallet/<walletname> URI path.",
            ),
            ErrorKind::WalletLocked => Self::new(
                RpcErrorCode::WALLET_UNLOCK_NEEDED,
                "Error: Please enter the wallet passphrase with walletpassphrase first.",
            ),
            ErrorKind::WalletRescanning => {
                Self::wallet("Wallet is currently rescanning. Abort existing rescan or wait.")
            }
            ErrorKind::ShuttingDown => Self::new(RpcErrorCode::CLIENT_NOT_CONNECTED, "Shutting down"),
            ErrorKind::WalletAlreadyLoaded => Self::new(RpcErrorCode::WALLET_ALREADY_LOADED, error.detail),
            ErrorKind::WalletExists => Self::wallet(error.detail),
            ErrorKind::PassphraseIncorrect => Self::new(
                RpcErrorCode::WALLET_PASSPHRASE_INCORRECT,
                or("Error: The wallet passphrase entered was incorrect."),
            ),
            ErrorKind::WrongEncryptionState => Self::new(RpcErrorCode::WALLET_WRONG_ENC_STATE, error.detail),
            ErrorKind::KeypoolRanOut => Self::new(
                RpcErrorCode::WALLET_KEYPOOL_RAN_OUT,
                or("Error: Keypool ran out, please call keypoolrefill first"),
            ),
            ErrorKind::NotFound => Self::not_found(or("Not found")),
            ErrorKind::Refused => Self::wallet(error.detail),
            ErrorKind::Storage => Self::new(RpcErrorCode::DATABASE, or("The storage failed; nothing was changed")),
            ErrorKind::NotGranted => Self::internal(or("The plugin lacks the grant for this service")),
            ErrorKind::Stale | ErrorKind::Malformed | ErrorKind::Unsupported | ErrorKind::Internal => {
                Self::internal(or("Internal error"))
            }
        }
    }
}

/// What a service function answers.
pub type Result<T> = std::result::Result<T, ServiceError>;

/// Declares a service: the trait, its name, its description, and the client that reaches it through the ABI.
///
/// A function that was added after the first version of the ABI stands at the end and says with `#[since(MINOR)]` which
/// minor version has it.
macro_rules! service {
    ($(#[doc = $doc:literal])* pub trait $name:ident as $client:ident = $wire_name:literal {
        $($(#[doc = $fn_doc:literal])* $(#[since($since:literal)])?
        fn $function:ident($($arg:ident: $arg_type:ty),*) -> $ret:ty;)*
    }) => {
        $(#[doc = $doc])*
        pub trait $name: Send + Sync {
            $($(#[doc = $fn_doc])* fn $function(&self, scope: $crate::service::Scope $(, $arg: $arg_type)*) -> $crate::service::Result<$ret>;)*
        }

        #[allow(non_camel_case_types)]
        mod methods {
            $(pub(super) struct $function;)*
        }
        $(impl $crate::abi::Method for methods::$function {
            type Service = dyn $name;
            type Request = ($($arg_type,)*);
            type Response = $ret;
            fn run(
                service: &dyn $name,
                scope: $crate::service::Scope,
                ($($arg,)*): ($($arg_type,)*),
            ) -> $crate::service::Result<$ret> {
                service.$function(scope $(, $arg)*)
            }
        })*

        impl $crate::abi::Service for dyn $name {
            const NAME: &'static str = $wire_name;
            const FUNCTIONS: &'static [(&'static str, $crate::abi::ServiceFn)] =
                &[$((stringify!($function), $crate::abi::shim::<methods::$function>),)*];
            const SHAPE: &'static $crate::wire::ServiceShape = &$crate::wire::ServiceShape {
                name: $wire_name,
                docs: &[$($doc),*],
                functions: &[$($crate::wire::FunctionShape {
                    name: stringify!($function),
                    docs: &[$($fn_doc),*],
                    since: 0 $(+ $since)?,
                    request: &[$($crate::wire::FieldShape {
                        name: stringify!($arg),
                        docs: &[],
                        since: 0,
                        shape: <$arg_type as $crate::wire::Wire>::SHAPE,
                    }),*],
                    response: <$ret as $crate::wire::Wire>::SHAPE,
                }),*],
            };
        }

        #[doc = concat!("Speaks `", $wire_name, "` to a host across the ABI.")]
        pub struct $client($crate::abi::RawService);

        impl $client {
            /// A client of the service behind `raw`.
            pub(crate) fn new(raw: $crate::abi::RawService) -> Self {
                Self(raw)
            }
        }

        impl $name for $client {
            $(fn $function(&self, scope: $crate::service::Scope $(, $arg: $arg_type)*) -> $crate::service::Result<$ret> {
                const INDEX: usize = $crate::abi::function_index(<dyn $name as $crate::abi::Service>::FUNCTIONS, stringify!($function));
                self.0.call::<methods::$function>(INDEX, scope, ($($arg,)*))
            })*
        }
    };
}
pub(crate) use service;
