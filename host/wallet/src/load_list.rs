//! The file with the wallets that are loaded at every start, as JSON: its version, the names, and a checksum of them. The former
//! version was the names alone; it is read, and replaced with the next change.

use serde::{Deserialize, Serialize};

use outrigger_disk::Checksum;

/// The version that this code writes.
const VERSION: u32 = 2;
/// What the checksum is over, beside the names.
const CHECKED_AS: &str = "the wallets to load";

/// Why a list cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// It is no list.
    #[error("it is no list of wallets: {0}")]
    Unreadable(#[from] serde_json::Error),
    /// It is not what was written.
    #[error("its names are not those that were written; where they are right, take `check` away")]
    Changed,
    /// A later version of the program wrote it.
    #[error("it has version {0}, and this version of the program reads versions up to {VERSION}: it needs a later one")]
    Newer(u32),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    version: u32,
    wallets: Vec<String>,
    /// Absent where somebody has written the list by hand.
    #[serde(default)]
    check: Option<String>,
}

#[derive(Deserialize)]
struct Version {
    version: u32,
}

/// The names of a list.
///
/// # Errors
/// When it cannot be used.
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

/// The list of these names.
///
/// # Errors
/// None that is known: texts can be written.
pub fn write(names: &[String]) -> serde_json::Result<Vec<u8>> {
    let written = Written { version: VERSION, wallets: names.to_vec(), check: Some(checksum(names)) };
    serde_json::to_vec(&written)
}

fn checksum(names: &[String]) -> String {
    // No name holds a control character.
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
