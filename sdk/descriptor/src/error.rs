//! The errors of descriptors, with bitcoind's messages where it has the same error.

use std::borrow::Cow;

use super::redact::without_private_keys;

/// Why a text is not a valid descriptor. `Display` yields the message of bitcoind's code -5. It may quote a part of the
/// text, with public keys in place of private ones.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct DescriptorError(Cow<'static, str>);

impl From<&'static str> for DescriptorError {
    fn from(text: &'static str) -> Self {
        Self(text.into())
    }
}

impl From<String> for DescriptorError {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl DescriptorError {
    /// Replaces private keys in quoted text by their public keys.
    pub(super) fn without_private_keys(self) -> Self {
        without_private_keys(&self.0).into()
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
