//! The loader's cache of library names and files: glibc's format since 2.2, alone or after the older one.

use std::path::{Path, PathBuf};

use super::MAX_CACHE_BYTES;

const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
const OLD_MAGIC: &[u8] = b"ld.so-1.7.0";

/// Sizes in bytes.
const HEADER: usize = 48;
const ENTRY: usize = 24;
const OLD_HEADER: usize = 16;
const OLD_ENTRY: usize = 12;

pub(super) struct Cache(Vec<u8>);

/// Reads a `u32` in native byte order.
fn number(bytes: &[u8], at: usize) -> Option<usize> {
    let four: [u8; 4] = bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
    usize::try_from(u32::from_ne_bytes(four)).ok()
}

/// Reads a zero-terminated string, without the zero.
fn text(bytes: &[u8], at: usize) -> Option<&[u8]> {
    let rest = bytes.get(at..)?;
    Some(&rest[..rest.iter().position(|byte| *byte == 0)?])
}

impl Cache {
    pub(super) fn open(path: &Path) -> Option<Self> {
        let len = std::fs::metadata(path).ok()?.len();
        if len > MAX_CACHE_BYTES {
            return None;
        }
        Self::parse(std::fs::read(path).ok()?)
    }

    fn parse(mut bytes: Vec<u8>) -> Option<Self> {
        if bytes.starts_with(OLD_MAGIC) {
            let entries = number(&bytes, 12)?.checked_mul(OLD_ENTRY)?;
            let start = entries.checked_add(OLD_HEADER)?.checked_next_multiple_of(8)?;
            bytes = bytes.get(start..)?.to_vec();
        }
        bytes.starts_with(MAGIC).then_some(Self(bytes))
    }

    /// The files of a library: several if there are variants for different processors.
    pub(super) fn paths(&self, name: &str) -> Vec<PathBuf> {
        let count = number(&self.0, MAGIC.len()).unwrap_or(0);
        let entries = self.0.get(HEADER..).unwrap_or_default().chunks_exact(ENTRY).take(count);
        let named = entries.filter(|entry| {
            number(entry, 4).and_then(|key| text(&self.0, key)).is_some_and(|key| key == name.as_bytes())
        });
        let paths = named.filter_map(|entry| text(&self.0, number(entry, 8)?));
        paths.filter_map(|path| Some(PathBuf::from(std::str::from_utf8(path).ok()?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cache of two files with one name.
    fn written() -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(2u32.to_ne_bytes());
        bytes.resize(HEADER, 0);
        let strings = b"libz.so.1\0/lib/libz.so.1\0/lib/v3/libz.so.1\0";
        let start = u32::try_from(HEADER + 2 * ENTRY).unwrap();
        for path in [10, 25] {
            bytes.extend(0x0303u32.to_ne_bytes());
            bytes.extend(start.to_ne_bytes());
            bytes.extend((start + path).to_ne_bytes());
            bytes.extend([0; 12]);
        }
        bytes.extend(strings);
        bytes
    }

    #[test]
    fn a_name_has_all_its_files_in_both_formats() {
        let new = written();
        let mut old = OLD_MAGIC.to_vec();
        old.resize(12, 0);
        old.extend(1u32.to_ne_bytes());
        old.extend([0; 12]);
        old.resize(32, 0);
        old.extend(&new);
        for bytes in [new, old] {
            let cache = Cache::parse(bytes).unwrap();
            assert_eq!(cache.paths("libz.so.1"), ["/lib/libz.so.1", "/lib/v3/libz.so.1"].map(PathBuf::from));
            assert_eq!(cache.paths("libz.so"), [""; 0].map(PathBuf::from));
        }
    }

    #[test]
    fn a_damaged_cache_has_no_files() {
        let whole = written();
        for len in 0..whole.len() {
            if let Some(cache) = Cache::parse(whole[..len].to_vec()) {
                assert!(cache.paths("libz.so.1").len() < 2);
            }
        }
        let mut wild = whole;
        wild[MAGIC.len()..].fill(0xff);
        assert_eq!(Cache::parse(wild).unwrap().paths("libz.so.1").len(), 0);
    }
}
