//! The services that a host offers to plugins.
//!
//! Each service is a trait that the host implements and a plugin calls. From one declaration, the macro `service!` generates
//! the trait, the table of C functions for the ABI ([`outrigger_abi`]) and the client that calls the table, so
//! the three cannot differ. A service has a name and a revision (`chain/1`). A revision gets new functions only at its end.
//!
//! Every function takes a [`Scope`]. Within the scope of a call all reads use the snapshots of the call, so they are
//! consistent.

#![warn(missing_docs)]

pub mod about;
pub mod chain;
pub mod events;
mod host;
pub mod json;
pub mod log;
pub mod mempool;
pub mod metrics;
pub mod policy;
mod provided;
pub mod provider;
pub mod rpc;
pub mod signer;
pub mod store;
mod transport;
pub mod wallet;
pub mod wire;

pub use about::HostInfo;
pub use chain::Chain;
pub use events::Events;
pub use host::{Host, SERVICES};
pub use log::Log;
pub use mempool::Mempool;
pub use metrics::Metrics;
pub use outrigger_abi::ErrorKind;
pub use rpc::Rpc;
pub use signer::Signer;
pub use store::Store;
pub use wallet::{WalletAdmin, WalletBook, WalletImport, WalletKeys, WalletPay, WalletRead};

use outrigger_values::{RpcError, RpcErrorCode};

use wire::{ServiceShape, WireError};

/// The services that plugins provide and the host calls.
pub const PROVIDED: [&ServiceShape; 2] = [&provider::SHAPE, &policy::SHAPE];

/// A service whose functions and messages are described.
pub trait Described {
    /// The functions, in the order of the table.
    const SHAPE: &'static ServiceShape;
}

/// The call or wallet for which a plugin uses a service.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Scope(pub u64);

impl Scope {
    /// Outside of any call: each function reads the latest state, and no client has selected a wallet.
    pub const NONE: Scope = Scope(0);
}

/// Why a function of a service failed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{kind:?}{}{detail}", if .detail.is_empty() { "" } else { ": " })]
pub struct ServiceError {
    /// The kind, for programs.
    pub kind: ErrorKind,
    /// Details for people; may be empty if the kind is enough.
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

impl From<WireError> for RpcError {
    fn from(error: WireError) -> Self {
        ServiceError::from(error).into()
    }
}

impl From<ServiceError> for RpcError {
    /// Converts every error of a service to bitcoind's code and message.
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
            ErrorKind::NodeUnavailable => Self::new(RpcErrorCode::IN_WARMUP, or("The node cannot be reached")),
            ErrorKind::NodeUnconnected => {
                Self::new(RpcErrorCode::CLIENT_NOT_CONNECTED, or("The node is not connected"))
            }
            ErrorKind::NodeDownloading => {
                Self::new(RpcErrorCode::CLIENT_IN_INITIAL_DOWNLOAD, or("The node is downloading the chain"))
            }
            // Not -28: clients would repeat the call.
            ErrorKind::OutcomeUnknown => {
                Self::wallet(or("The host lost the node's answer: the node may have executed the request"))
            }
            ErrorKind::NotFound => Self::not_found(or("Not found")),
            ErrorKind::Refused => Self::wallet(error.detail),
            ErrorKind::Storage => Self::new(RpcErrorCode::DATABASE, or("The storage failed; nothing was changed")),
            ErrorKind::NotGranted => Self::internal(or("The plugin lacks the grant for this service")),
            ErrorKind::Stale => {
                Self::internal(or("The scope's call has ended, or nobody waits for its answer any more"))
            }
            ErrorKind::Malformed | ErrorKind::Unsupported | ErrorKind::Internal => Self::internal(or("Internal error")),
        }
    }
}

/// The result of a service function.
pub type Result<T> = std::result::Result<T, ServiceError>;

/// Declares a service: the trait, its name, its description, and the client that calls it through the ABI.
///
/// A function that an implementation omits fails with `Unsupported`.
///
/// A function added after the first version of the ABI is declared at the end, with its minor version as
/// `#[since(MINOR)]`.
macro_rules! service {
    ($(#[doc = $doc:literal])* pub trait $name:ident = $wire_name:literal {
        $($(#[doc = $fn_doc:literal])* $(#[since($since:literal)])?
        fn $function:ident($($arg:ident: $arg_type:ty),*) -> $ret:ty;)*
    }) => {
        $(#[doc = $doc])*
        pub trait $name: Send + Sync {
            $($(#[doc = $fn_doc])* fn $function(&self, scope: $crate::Scope $(, $arg: $arg_type)*) -> $crate::Result<$ret> {
                let _ = (scope, $($arg,)*);
                Err($crate::ErrorKind::Unsupported.into())
            })*
        }

        /// The places of the functions in the table.
        #[allow(non_camel_case_types, non_upper_case_globals, clippy::enum_variant_names)]
        mod places {
            enum Place { $($function,)* }
            $(pub(super) const $function: usize = Place::$function as usize;)*
        }

        impl outrigger_abi::Service for dyn $name {
            const FUNCTIONS: usize = <Self as $crate::Described>::SHAPE.functions.len();

            fn run(&self, place: usize, scope: u64, request: &[u8]) -> outrigger_abi::Response {
                match place {
                    $(places::$function => $crate::transport::answer(request, |($($arg,)*): ($($arg_type,)*)| {
                        self.$function($crate::Scope(scope) $(, $arg)*)
                    }),)*
                    _ => $crate::ErrorKind::Unsupported.into(),
                }
            }
        }

        impl $crate::Described for dyn $name {
            const SHAPE: &'static $crate::wire::ServiceShape = &$crate::wire::ServiceShape {
                name: $wire_name,
                docs: &[$($doc),*],
                functions: &[$($crate::wire::FunctionShape {
                    name: stringify!($function),
                    docs: &[$($fn_doc),*],
                    since: 0 $(+ $since)?,
                    request: &[$($crate::wire::FieldShape::of::<$arg_type>(stringify!($arg), &[], 0)),*],
                    response: <$ret as $crate::wire::Wire>::SHAPE,
                }),*],
            };
        }

        impl $name for $crate::transport::Client<dyn $name> {
            $(fn $function(&self, scope: $crate::Scope $(, $arg: $arg_type)*) -> $crate::Result<$ret> {
                self.ask(places::$function, scope, ($($arg,)*))
            })*
        }
    };
}
pub(crate) use service;
