//! The header of the manifest that a plugin exports as `outrigger_manifest`.

use super::{ABI_MAJOR, ABI_MINOR};

/// The first bytes of the manifest.
pub const MANIFEST_MAGIC: [u8; 8] = *b"OUTRIGMF";

/// The length of the header, in bytes: magic, ABI major, minor needed, minor built with, JSON length. Little-endian.
pub const MANIFEST_HEADER_LEN: usize = 8 + 4 + 4 + 4 + 4;

/// The header before the manifest's JSON.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ManifestHeader {
    /// The major version of the interface.
    pub abi_major: u32,
    /// The least minor version of a host on which the plugin runs.
    pub abi_minor_needed: u32,
    /// The minor version that the plugin was built with.
    pub abi_minor_built: u32,
    /// The length of the JSON that follows, in bytes.
    pub len: u32,
}

impl ManifestHeader {
    /// Parses the header; `None` without [`MANIFEST_MAGIC`], or if it is truncated.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let rest = bytes.strip_prefix(&MANIFEST_MAGIC)?;
        let word = |at: usize| Some(u32::from_le_bytes(rest.get(at..at + 4)?.try_into().ok()?));
        Some(Self { abi_major: word(0)?, abi_minor_needed: word(4)?, abi_minor_built: word(8)?, len: word(12)? })
    }
}

/// The bytes of `outrigger_manifest` for a manifest's JSON and the least minor version of a host. `N` is
/// [`MANIFEST_HEADER_LEN`] plus the JSON's length.
///
/// # Panics
/// At compile time, if `N` is wrong or this SDK does not know the minor version.
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
