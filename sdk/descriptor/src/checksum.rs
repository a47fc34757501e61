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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_match_bip_380_and_bitcoind() {
        assert_eq!(checksum("raw(deadbeef)").as_deref(), Some("89f8spxm"));
        assert_eq!(checksum("raw(00)").as_deref(), Some("qwfjgwf6"));
        assert_eq!(checksum("raw(Ü)"), None);
    }

    #[test]
    fn every_changed_character_changes_the_checksum() {
        let text = "wpkh(0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798)";
        let right = checksum(text);
        for at in 0..text.len() {
            let mut changed = text.to_owned().into_bytes();
            changed[at] ^= 1;
            assert_ne!(checksum(std::str::from_utf8(&changed).unwrap()), right, "position {at}");
        }
    }
}
