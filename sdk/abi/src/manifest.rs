//! The header before the manifest that a plugin exports as `outrigger_manifest`.

use super::{ABI_MAJOR, ABI_MINOR};

/// Begins the manifest's bytes.
pub const MANIFEST_MAGIC: [u8; 8] = *b"OUTRIGMF";

/// The bytes before the manifest's JSON: magic, ABI major, minor needed, minor built with, length; integers little-endian.
pub const MANIFEST_HEADER_LEN: usize = 8 + 4 + 4 + 4 + 4;

/// The header before a manifest's JSON.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ManifestHeader {
    /// The major version of the interface.
    pub abi_major: u32,
    /// The least minor version of a host.
    pub abi_minor_needed: u32,
    /// The minor version it was built with.
    pub abi_minor_built: u32,
    /// The bytes of the JSON that follows.
    pub len: u32,
}

impl ManifestHeader {
    /// Reads the header; none when the bytes do not begin with [`MANIFEST_MAGIC`] or are too few.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let rest = bytes.strip_prefix(&MANIFEST_MAGIC)?;
        let word = |at: usize| Some(u32::from_le_bytes(rest.get(at..at + 4)?.try_into().ok()?));
        Some(Self { abi_major: word(0)?, abi_minor_needed: word(4)?, abi_minor_built: word(8)?, len: word(12)? })
    }
}

/// The bytes of `outrigger_manifest` for a manifest's JSON, and the least minor version of a host that the plugin runs on;
/// `N` is [`MANIFEST_HEADER_LEN`] plus the JSON's length.
///
/// # Panics
/// When another length is asked for, or a minor version that this SDK does not know: while compiling.
pub const fn manifest_bytes<const N: usize>(json: &str, minor_needed: u32) -> [u8; N] {
    let json = json.as_bytes();
    assert!(N == MANIFEST_HEADER_LEN + json.len(), "N must be the header and the JSON");
    assert!(minor_needed <= ABI_MINOR, "this SDK has no such minor version of the plugin ABI");
    let mut out = [0; N];
    let words = [ABI_MAJOR, minor_needed, ABI_MINOR, json.len() as u32];
    let mut at = 0;
    while at < N {
        out[at] = if at < MANIFEST_MAGIC.len() {
            MANIFEST_MAGIC[at]
        } else if at < MANIFEST_HEADER_LEN {
            let word = words[(at - MANIFEST_MAGIC.len()) / 4];
            word.to_le_bytes()[at % 4]
        } else {
            json[at - MANIFEST_HEADER_LEN]
        };
        at += 1;
    }
    out
}
