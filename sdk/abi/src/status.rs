//! The status codes of the interface's functions.

/// Declares [`ErrorKind`] and describes it for the C header.
macro_rules! error_kinds {
    ($(#[$meta:meta])* pub enum $name:ident { $(#[doc = $doc:literal] $kind:ident = $status:literal,)* }) => {
        $(#[$meta])*
        pub enum $name {
            $(#[doc = $doc] $kind = $status,)*
        }

        impl $name {
            /// All kinds with their names and meanings.
            pub const ALL: &'static [(Self, &'static str, &'static str)] =
                &[$((Self::$kind, stringify!($kind), $doc),)*];
        }
    };
}

error_kinds! {
    /// Why a service failed. The numbers are the status codes of the ABI.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
    #[repr(i32)]
    pub enum ErrorKind {
        /// The call, wallet or cursor of the request is gone.
        Stale = 1,
        /// The request is malformed, or a value in it is out of range.
        Malformed = 2,
        /// The other side lacks this function.
        Unsupported = 3,
        /// The configuration does not grant this.
        NotGranted = 4,
        /// The storage failed; nothing was changed.
        Storage = 5,
        /// The request names something that does not exist.
        NotFound = 6,
        /// A rule forbids it; the detail says why, in the caller's terms.
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
        /// The service failed internally; the log has the details.
        Internal = 18,
        /// No new address can be derived.
        KeypoolRanOut = 19,
        /// The node cannot be reached, or is not ready.
        NodeUnavailable = 20,
        /// The host lost the node's answer. The node may have executed the request, or may still execute it.
        OutcomeUnknown = 21,
        /// The node has no peers, and makes no block templates without any.
        NodeUnconnected = 22,
        /// The node is downloading the chain, and makes no block templates until it has it.
        NodeDownloading = 23,
    }
}

/// The code of a reply that passes the call to the next handler of its chain. The body is empty, or has changed parameters.
pub const PASS_ON: i32 = i32::MIN;

/// The code of a reply for a plugin that crashed or dropped the call. The body is the error message for the client, with the
/// error code -32603.
pub const FAILED: i32 = i32::MIN + 1;

impl ErrorKind {
    /// The kind of a status code. An unknown code, from a newer host, is [`ErrorKind::Internal`].
    pub fn from_status(status: i32) -> Self {
        Self::ALL.iter().map(|(kind, ..)| *kind).find(|kind| *kind as i32 == status).unwrap_or(Self::Internal)
    }
}
