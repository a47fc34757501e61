//! Descriptor checksums (BIP 380): eight characters of a BCH code.

use miniscript::descriptor::checksum::Engine;

/// The length of a checksum.
pub const CHECKSUM_LEN: usize = 8;

/// The checksum of `payload`, the text before `#`; `None` if it contains a character that descriptors may not.
pub fn checksum(payload: &str) -> Option<String> {
    let mut engine = Engine::new();
    engine.input(payload).ok()?;
    Some(engine.checksum())
}

/// `payload#checksum`. The text of a [`Descriptor`](super::Descriptor) has only valid characters.
pub(super) fn with_checksum(payload: &str) -> String {
    format!("{payload}#{}", checksum(payload).unwrap_or_default())
}
