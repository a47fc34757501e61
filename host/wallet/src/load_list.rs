//! The file with the wallets to load at startup: JSON with a version, the names and their checksum. Version 1 was a
//! plain list of names; it is read, and replaced at the next change.

use serde::{Deserialize, Serialize};

use outrigger_disk::Checksum;

const VERSION: u32 = 2;
/// The domain of the checksum.
const CHECKED_AS: &str = "the wallets to load";

#[derive(Debug, thiserror::Error)]
pub enum ListError {
    #[error("it is no list of wallets: {0}")]
    Unreadable(#[from] serde_json::Error),
    /// The checksum differs.
    #[error("its names are not those that were written; where they are right, take `check` away")]
    Changed,
    #[error("it has version {0}, and this version of the program reads versions up to {VERSION}: it needs a later one")]
    Newer(u32),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    version: u32,
    wallets: Vec<String>,
    /// Absent in a list written by hand.
    #[serde(default)]
    check: Option<String>,
}

#[derive(Deserialize)]
struct Version {
    version: u32,
}

pub fn read(text: &[u8]) -> Result<Vec<String>, ListError> {
    if let Ok(names) = serde_json::from_slice(text) {
        return Ok(names);
    }
    let Version { version } = serde_json::from_slice(text)?;
    if version > VERSION {
        return Err(ListError::Newer(version));
    }
    let Written { wallets, check, .. } = serde_json::from_slice(text)?;
    match check {
        Some(check) if check != checksum(&wallets) => Err(ListError::Changed),
        _ => Ok(wallets),
    }
}

/// Serialises a list. No error is expected.
pub fn write(names: &[String]) -> serde_json::Result<Vec<u8>> {
    let written = Written { version: VERSION, wallets: names.to_vec(), check: Some(checksum(names)) };
    serde_json::to_vec(&written)
}

fn checksum(names: &[String]) -> String {
    // Names contain no control characters.
    Checksum::of(CHECKED_AS).text(&names.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Vec<String> {
        ["", "a", "b/c"].map(str::to_owned).to_vec()
    }

    #[test]
    fn a_list_is_read_as_it_was_written_and_a_former_one_too() {
        assert_eq!(read(&write(&names()).unwrap()).unwrap(), names());
        assert_eq!(read(br#"["","a","b/c"]"#).unwrap(), names());
        assert_eq!(read(br#"{"version":2,"wallets":["a"]}"#).unwrap(), ["a"]);
    }

    #[test]
    fn no_flipped_bit_of_a_list_gives_other_names() {
        let whole = write(&names()).unwrap();
        for bit in 0..whole.len() * 8 {
            let mut damaged = whole.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(read(&damaged).is_err() || read(&damaged).unwrap() == names(), "bit {bit}");
        }
    }

    #[test]
    fn a_newer_list_is_refused_naming_the_version() {
        let error = read(br#"{"version":7,"folders":[]}"#).unwrap_err();
        assert!(error.to_string().starts_with("it has version 7"), "{error}");
    }
}
