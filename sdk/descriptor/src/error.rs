//! The errors of descriptors, in bitcoind's words if it has such an error.

use super::redact::without_private_keys;

/// Why a text is no descriptor. `Display` yields the message of bitcoind's code -5.
///
/// It may quote a part of the text, with public keys in place of private ones.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[allow(missing_docs, reason = "each variant's message says what it is")]
pub enum DescriptorError {
    #[error("Descriptor has {0} characters, more than {max}", max = super::limits::MAX_LENGTH)]
    TooLong(usize),
    #[error("Descriptor nests deeper than {max} levels", max = super::limits::MAX_NESTING)]
    TooDeep,
    #[error("Descriptor has more than {max} keys", max = super::limits::MAX_KEYS)]
    TooManyKeys,
    #[error("Descriptor has more than {max} derivation steps", max = super::limits::MAX_DERIVATION_STEPS)]
    TooManySteps,
    #[error("Multipath key path specifier has {0} items, more than {max}", max = super::limits::MAX_MULTIPATH)]
    TooManyAlternatives(usize),

    #[error("Multiple '#' symbols")]
    MultipleChecksums,
    #[error("Missing checksum")]
    MissingChecksum,
    #[error("Expected 8 character checksum, not {0} characters")]
    ChecksumLength(usize),
    #[error("Invalid characters in payload")]
    InvalidCharacters,
    #[error("Provided checksum '{provided}' does not match computed checksum '{computed}'")]
    ChecksumMismatch { provided: String, computed: String },

    #[error("'{0}' is not a valid descriptor function")]
    UnknownFunction(String),
    #[error("A function is needed within {0}")]
    FunctionNeeded(&'static str),
    #[error("Can only have {function} {place}")]
    Misplaced { function: &'static str, place: &'static str },
    #[error("Miniscript expressions can only be used in wsh or tr.")]
    MiniscriptMisplaced,
    #[error("Address is not valid")]
    Address,
    #[error("Raw script is not hex")]
    RawNotHex,
    /// Text after a complete expression. bitcoind's message is empty.
    #[error("")]
    Trailing,

    #[error("Multi threshold '{0}' is not valid")]
    Threshold(String),
    #[error("Multi: expected ',', got '{0}'")]
    Separator(char),
    #[error("Cannot have {count} keys in {function}; must have between 1 and {max} keys, inclusive")]
    KeyCount { function: &'static str, count: usize, max: usize },
    #[error("Multisig threshold cannot be 0, must be at least 1")]
    ThresholdZero,
    #[error(
        "Multisig threshold cannot be larger than the number of keys; threshold is {threshold} but only {keys} keys specified"
    )]
    ThresholdTooLarge { threshold: u32, keys: usize },
    #[error("Cannot have {0} pubkeys in bare multisig; only at most 3 pubkeys")]
    BareMultisig(usize),
    #[error("P2SH script is too large, {0} bytes is larger than 520 bytes")]
    RedeemScriptSize(usize),

    #[error("{function}: {error}")]
    KeyOf { function: &'static str, error: Box<Self> },
    #[error("No key provided")]
    NoKey,
    #[error("Pubkey '{0}' is invalid")]
    InvalidPublicKey(String),
    #[error("Hybrid public keys are not allowed")]
    HybridKey,
    #[error("Uncompressed keys are not allowed")]
    Uncompressed,
    #[error("key '{0}' is not valid")]
    InvalidKey(String),
    #[error("Key path value '{0}' is not a valid uint32")]
    PathValue(String),
    #[error("Key path value {0} is out of range")]
    PathRange(u32),
    #[error("Multiple ']' characters found for a single pubkey")]
    MultipleOrigins,
    #[error("Key origin start '[ character expected but not found, got '{0}' instead")]
    OriginStart(char),
    #[error("Fingerprint is not 4 bytes ({0} characters instead of 8 characters)")]
    FingerprintLength(usize),
    #[error("Fingerprint '{0}' is not hex")]
    FingerprintNotHex(String),

    #[error("Key path value '{0}' specifies multipath in a section where multipath is not allowed")]
    MultipathNotAllowed(String),
    #[error("Multiple multipath key path specifiers found")]
    MultipleMultipaths,
    #[error("Multipath key path specifiers must have at least two items")]
    MultipathTooShort,
    #[error("Duplicated key path value {0} in multipath specifier")]
    MultipathDuplicate(u32),
    #[error("{0}(): Multipath derivation paths have mismatched lengths")]
    MultipathMismatch(&'static str),
    #[error("tr(): Multipath internal key mismatches multipath subscripts lengths")]
    MultipathInternalKey,

    #[error("tr: expected ',', got '{0}'")]
    TreeSeparator(char),
    #[error("tr() supports at most 128 nesting levels")]
    TreeTooDeep,
    #[error("tr(): expected '{0}' after script expression")]
    TreeExpected(char),
    #[error("rawtr(): only one key expected.")]
    RawTrKeys,
    /// Valid miniscript that is unsafe to pay to.
    #[error("{expression} is not sane{reason}")]
    Insane { expression: String, reason: &'static str },
    #[error("{0} is invalid")]
    MiniscriptInvalid(String),
    #[error("{0} is not satisfiable")]
    Unsatisfiable(String),
}

impl DescriptorError {
    /// Replaces private keys in quoted text by their public keys.
    pub(super) fn without_private_keys(mut self) -> Self {
        match &mut self {
            Self::KeyOf { error, .. } => **error = std::mem::replace(&mut **error, Self::NoKey).without_private_keys(),
            Self::UnknownFunction(text)
            | Self::Threshold(text)
            | Self::InvalidPublicKey(text)
            | Self::InvalidKey(text)
            | Self::PathValue(text)
            | Self::FingerprintNotHex(text)
            | Self::MultipathNotAllowed(text)
            | Self::MiniscriptInvalid(text)
            | Self::Unsatisfiable(text)
            | Self::Insane { expression: text, .. } => *text = without_private_keys(text),
            _ => {}
        }
        self
    }
}

/// Why a descriptor has no scripts at an index.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ExpandError {
    /// A hardened step needs a private key that the descriptor lacks.
    #[error("a hardened derivation step needs the private key")]
    HardenedWithoutPrivateKey,
    /// The index is 2^31 or more.
    #[error("the index {0} is out of range")]
    Index(u32),
    /// The path exceeds 255 steps below the master key, or leads to no key (probability 2^-127 per step).
    #[error("the derivation path leads to no key")]
    NoSuchKey,
    /// Keys and scripts do not fit together; the parser prevents that.
    #[error("the descriptor does not make a script")]
    Script,
}
