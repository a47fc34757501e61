//! The status codes that functions of the interface answer.

/// Declares [`ErrorKind`] and describes it for the C header.
macro_rules! error_kinds {
    ($(#[$meta:meta])* pub enum $name:ident { $(#[doc = $doc:literal] $kind:ident = $status:literal,)* }) => {
        $(#[$meta])*
        pub enum $name {
            $(#[doc = $doc] $kind = $status,)*
        }

        impl $name {
            /// Every kind, with its name and what it means.
            pub const ALL: &'static [(Self, &'static str, &'static str)] =
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
        /// The node cannot be reached, or is not ready yet.
        NodeUnavailable = 20,
    }
}

impl ErrorKind {
    /// The kind of a status code; one that a newer host invented reads as [`ErrorKind::Internal`].
    pub fn from_status(status: i32) -> Self {
        Self::ALL.iter().map(|(kind, ..)| *kind).find(|kind| *kind as i32 == status).unwrap_or(Self::Internal)
    }
}
