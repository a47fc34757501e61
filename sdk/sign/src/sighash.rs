//! The signature hash type of a signing request.

use outrigger_script::{SIGHASH_ALL, SIGHASH_ANYONECANPAY, SIGHASH_NONE, SIGHASH_SINGLE};
use outrigger_values::error::RpcError;

/// The hash type of a taproot signature without a type byte (BIP341).
const DEFAULT_TYPE: u8 = 0;
const ALL: u8 = SIGHASH_ALL as u8;
const NONE: u8 = SIGHASH_NONE as u8;
const SINGLE: u8 = SIGHASH_SINGLE as u8;
const ANYONECANPAY: u8 = SIGHASH_ANYONECANPAY as u8;

/// The types' names in RPCs.
const NAMES: [(&str, u8); 7] = [
    ("DEFAULT", DEFAULT_TYPE),
    ("ALL", ALL),
    ("NONE", NONE),
    ("SINGLE", SINGLE),
    ("ALL|ANYONECANPAY", ALL | ANYONECANPAY),
    ("NONE|ANYONECANPAY", NONE | ANYONECANPAY),
    ("SINGLE|ANYONECANPAY", SINGLE | ANYONECANPAY),
];

/// A signature hash type: the parts of the transaction that a signature covers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sighash(u8);

impl Sighash {
    /// All inputs and outputs. Taproot signatures have no type byte; ECDSA signatures are as for [`Sighash::ALL`].
    pub const DEFAULT: Self = Self(DEFAULT_TYPE);
    /// All inputs and outputs, with a type byte.
    pub const ALL: Self = Self(ALL);

    /// The type of an RPC name such as `SINGLE|ANYONECANPAY`. Case matters. Error -8 for another name.
    pub fn from_name(name: &str) -> Result<Self, RpcError> {
        let found = NAMES.iter().find(|(known, _)| *known == name);
        let unknown = || RpcError::invalid_parameter(format!("'{name}' is not a valid sighash parameter."));
        found.map(|(_, value)| Self(*value)).ok_or_else(unknown)
    }

    /// The type of an ECDSA signature's last byte; `None` if undefined.
    pub fn from_ecdsa_byte(byte: u8) -> Option<Self> {
        let named = byte != DEFAULT_TYPE && NAMES.iter().any(|(_, value)| *value == byte);
        named.then_some(Self(byte))
    }

    /// The name in RPCs.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(_, value)| *value == self.0).map_or("DEFAULT", |(name, _)| name)
    }

    /// The type as a PSBT field.
    pub fn to_i32(self) -> i32 {
        self.0.into()
    }

    /// The last byte of an ECDSA signature.
    pub(super) fn ecdsa(self) -> u8 {
        if self.0 == DEFAULT_TYPE { ALL } else { self.0 }
    }

    /// The type for a taproot signature hash; 0 without a type byte.
    pub(super) fn taproot(self) -> u8 {
        self.0
    }

    /// Whether a signature covers only its own input.
    pub fn is_anyone_can_pay(self) -> bool {
        self.0 & ANYONECANPAY != 0
    }

    /// Whether a signature covers only the output with its input's index.
    pub(super) fn is_single(self) -> bool {
        self.0 & !ANYONECANPAY == SINGLE
    }
}
