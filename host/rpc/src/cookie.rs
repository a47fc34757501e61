//! The cookie file: a password for this run. Users who may read the file may log in.
//!
//! Its one line is `__cookie__:PASSWORD` without a line end, as in bitcoind. The file is renamed into place complete and
//! with mode 0600, and is removed at an orderly stop.

use std::fs;
use std::io;
use std::path::PathBuf;

use bitcoin::hex::DisplayHex;
use bitcoin::secp256k1::rand::{RngCore, rngs::OsRng};
use outrigger_base::replace::replace_file;
use thiserror::Error;
use zeroize::{Zeroize, Zeroizing};

pub const COOKIE_USER: &str = "__cookie__";

const PASSWORD_BYTES: usize = 32;

#[derive(Debug, Error)]
#[error("cannot write the RPC cookie file {path}: {source}")]
pub struct CookieError {
    pub path: PathBuf,
    pub source: io::Error,
}

/// The cookie of this run. Dropping it removes the file. It has no `Debug`, since it holds a password.
pub struct CookieFile {
    path: PathBuf,
    credentials: Zeroizing<String>,
}

impl CookieFile {
    /// Writes a new password to `path` and replaces an older file.
    pub fn create(path: PathBuf) -> Result<Self, CookieError> {
        let mut password = [0_u8; PASSWORD_BYTES];
        OsRng.fill_bytes(&mut password);
        let hex = Zeroizing::new(password.to_lower_hex_string());
        password.zeroize();
        let credentials = Zeroizing::new(format!("{COOKIE_USER}:{}", hex.as_str()));
        replace_file(&path, credentials.as_bytes()).map_err(|source| CookieError { path: path.clone(), source })?;
        Ok(Self { path, credentials })
    }

    /// `__cookie__:PASSWORD`.
    pub(super) fn credentials(&self) -> &Zeroizing<String> {
        &self.credentials
    }
}

impl Drop for CookieFile {
    fn drop(&mut self) {
        // Another host may have replaced the file.
        let found = fs::read(&self.path).map(Zeroizing::new);
        if found.is_ok_and(|found| found.as_slice() != self.credentials.as_bytes()) {
            return;
        }
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "cannot remove the RPC cookie file");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn cookie_is_complete_private_and_fresh() {
        let dir = tempfile::tempdir().expect("dir");
        let path = dir.path().join(".cookie");
        fs::write(&path, "stale").expect("stale file");
        fs::write(dir.path().join(".cookie.new"), "stale").expect("stale file");

        let cookie = CookieFile::create(path.clone()).expect("cookie");
        let text = fs::read_to_string(&path).expect("read");
        assert_eq!(text, *cookie.credentials().as_str());
        let password = text.strip_prefix("__cookie__:").expect("user");
        assert_eq!(password.len(), 2 * PASSWORD_BYTES);
        assert!(password.bytes().all(|byte| byte.is_ascii_hexdigit()));
        assert_eq!(fs::read_dir(dir.path()).expect("dir").count(), 1);
        assert_eq!(fs::metadata(&path).expect("metadata").mode() & 0o777, 0o600);

        let again = CookieFile::create(path.clone()).expect("cookie");
        assert_ne!(again.credentials(), cookie.credentials());
    }

    #[test]
    fn cookie_of_another_host_is_not_removed() {
        let dir = tempfile::tempdir().expect("dir");
        let path = dir.path().join(".cookie");
        let first = CookieFile::create(path.clone()).expect("cookie");
        let second = CookieFile::create(path.clone()).expect("cookie");
        drop(first);
        assert_eq!(fs::read_to_string(&path).expect("read"), *second.credentials().as_str());
    }

    #[test]
    fn cookie_in_a_place_that_cannot_be_written_is_an_error() {
        let dir = tempfile::tempdir().expect("dir");
        let path = dir.path().join("missing").join(".cookie");
        let error = CookieFile::create(path.clone()).err().expect("no such folder");
        assert_eq!(error.path, path);
        assert_eq!(error.source.kind(), io::ErrorKind::NotFound);
        assert!(error.to_string().contains("missing"));
    }
}
