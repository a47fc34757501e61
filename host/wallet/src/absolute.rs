//! Folders of wallets that clients name by an absolute path, as bitcoind allows. The host never writes to that path. It
//! keeps these folders side by side in [`ABSOLUTE`], each named after its wallet's escaped name.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use bitcoin::hashes::{Hash, sha256};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// The parent of these folders, inside the wallets' folder. The names of other wallets cannot contain it.
pub const ABSOLUTE: &str = "outrigger.absolute";
/// The file with a wallet's name, in a folder whose own name is a hash.
pub const NAME_FILE: &str = "wallet-name";
/// The longest escaped name, in bytes. Most systems allow 255.
const MAX_ESCAPED: usize = 200;
/// The characters that are not escaped. All others are invalid in file names on some system, or part of an escape.
const UNESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The name of a wallet's folder: the wallet's name with `%` escapes, or its SHA-256 if that is too long. Two wallets
/// never share a folder: escaped names begin with `%2F`, hashes do not.
pub fn folder_name(name: &str) -> String {
    let escaped = utf8_percent_encode(name, UNESCAPED).to_string();
    if escaped.len() <= MAX_ESCAPED { escaped } else { sha256::Hash::hash(name.as_bytes()).to_string() }
}

/// Creates a wallet's folder, with the wallet's name in it if the folder's own name is a hash.
pub fn make_folder(folder: &Path, name: &str) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    if utf8_percent_encode(name, UNESCAPED).to_string().len() > MAX_ESCAPED {
        let mut file = fs::File::create(folder.join(NAME_FILE))?;
        file.write_all(name.as_bytes())?;
        file.sync_all()?;
        fs::File::open(folder)?.sync_all()?;
    }
    Ok(())
}

/// The name of the wallet in a folder named `called`. `None` if the file with the name is missing or does not match.
pub fn name_of(folder: &Path, called: &str) -> Option<String> {
    let decoded = || percent_decode_str(called).decode_utf8().ok().map(String::from);
    let name = fs::read_to_string(folder.join(NAME_FILE)).ok().or_else(decoded)?;
    // A hash decodes to itself, without a leading slash.
    (name.starts_with('/') && folder_name(&name) == called).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_give_the_names_back_and_no_two_names_share_one() {
        let dir = tempfile::tempdir().unwrap();
        let long = format!("/home/{}", "é/".repeat(100));
        let names = ["/a/b", "/a%2Fb", "/a%252Fb", "/a b", "/é", &long, &format!("{long}x")];
        for name in names {
            let called = folder_name(name);
            assert!(called.len() <= MAX_ESCAPED && !called.contains('/'), "{called}");
            let folder = dir.path().join(&called);
            assert!(!folder.exists(), "{name}");
            make_folder(&folder, name).unwrap();
            assert_eq!(name_of(&folder, &called).as_deref(), Some(name));
        }
    }

    #[test]
    fn a_folder_whose_name_was_lost_or_changed_has_none() {
        let dir = tempfile::tempdir().unwrap();
        let name = format!("/{}", "a".repeat(300));
        let called = folder_name(&name);
        assert_eq!(name_of(dir.path(), &called), None);
        make_folder(dir.path(), &name).unwrap();
        assert_eq!(name_of(dir.path(), &called), Some(name));
        fs::write(dir.path().join(NAME_FILE), "/another").unwrap();
        assert_eq!(name_of(dir.path(), &called), None);
    }
}
