//! The host's credentials for the node.

use std::fs;
use std::io;
use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use parking_lot::RwLock;
use zeroize::Zeroizing;

const COOKIE_USER: &str = "__cookie__";

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Login {
    /// The path of the file that bitcoind writes at each start (`-rpccookiefile`), with `__cookie__:` and a password.
    Cookie(PathBuf),
    /// A user of the node (`-rpcauth`, `-rpcuser`), and the path of a file whose first line is the password.
    Password { user: String, file: PathBuf },
}

#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", .file.display())]
pub struct CredentialsError {
    file: PathBuf,
    source: io::Error,
}

impl Login {
    fn file(&self) -> &PathBuf {
        match self {
            Self::Cookie(file) | Self::Password { file, .. } => file,
        }
    }

    /// The user's name. A cookie's is read from its file, or is `__cookie__` if that is impossible.
    pub fn user(&self) -> String {
        match self {
            Self::Password { user, .. } => user.clone(),
            Self::Cookie(file) => {
                let text = Zeroizing::new(fs::read_to_string(file).unwrap_or_default());
                text.split_once(':').map_or(COOKIE_USER, |(user, _)| user).to_owned()
            }
        }
    }

    /// Reads the credentials as the value of an Authorization header.
    pub fn read(&self) -> Result<HeaderValue, CredentialsError> {
        let failed = |source| CredentialsError { file: self.file().clone(), source };
        let text = Zeroizing::new(fs::read_to_string(self.file()).map_err(failed)?);
        let line = text.lines().next().unwrap_or_default().trim_end();
        let pair = Zeroizing::new(match self {
            Self::Cookie(_) => line.to_owned(),
            Self::Password { user, .. } => format!("{user}:{line}"),
        });
        let empty = || failed(io::Error::new(io::ErrorKind::InvalidData, "it holds no credentials"));
        if line.is_empty() {
            return Err(empty());
        }
        let basic = Zeroizing::new(format!("Basic {}", STANDARD.encode(pair.as_bytes())));
        let mut value = HeaderValue::from_str(&basic).map_err(|_| empty())?;
        value.set_sensitive(true);
        Ok(value)
    }
}

pub(crate) struct Credentials {
    login: Login,
    last: RwLock<Option<HeaderValue>>,
}

impl Credentials {
    pub(crate) fn new(login: Login) -> Self {
        Self { login, last: RwLock::new(None) }
    }

    /// The cached credentials, or else those read from the file.
    pub(crate) fn get(&self) -> Result<HeaderValue, CredentialsError> {
        if let Some(last) = &*self.last.read() {
            return Ok(last.clone());
        }
        self.reread()
    }

    fn reread(&self) -> Result<HeaderValue, CredentialsError> {
        let read = self.login.read()?;
        *self.last.write() = Some(read.clone());
        Ok(read)
    }

    /// The current credentials, after the node refused `refused`; `None` if they are the same or unreadable.
    pub(crate) fn other_than(&self, refused: &HeaderValue) -> Option<HeaderValue> {
        let last = self.last.read().clone();
        // Another request may have read them meanwhile.
        last.filter(|last| last != refused).or_else(|| self.reread().ok().filter(|read| read != refused))
    }

    /// Drops a cached cookie, since a restarted node has a new one.
    pub(crate) fn forget(&self) {
        if matches!(self.login, Login::Cookie(_)) {
            *self.last.write() = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn login_reads_cookies_and_passwords_and_says_which_file_fails() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secret");
        let cookie = Login::Cookie(file.clone());
        assert!(cookie.read().unwrap_err().to_string().starts_with(&file.display().to_string()));
        fs::write(&file, "\n").unwrap();
        assert!(cookie.read().unwrap_err().to_string().ends_with("it holds no credentials"));
        fs::write(&file, "__cookie__:abc\n").unwrap();
        assert_eq!(cookie.read().unwrap(), "Basic X19jb29raWVfXzphYmM=");
        let password = Login::Password { user: "u".into(), file: file.clone() };
        fs::write(&file, "p\nrest").unwrap();
        assert_eq!(password.read().unwrap(), "Basic dTpw");
        assert!(password.read().unwrap().is_sensitive());
    }

    #[test]
    fn credentials_are_read_again_when_they_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("cookie");
        fs::write(&file, "__cookie__:one").unwrap();
        let credentials = Credentials::new(Login::Cookie(file.clone()));
        let first = credentials.get().unwrap();
        assert_eq!(credentials.other_than(&first), None);
        fs::write(&file, "__cookie__:two").unwrap();
        assert_eq!(credentials.get().unwrap(), first, "a cookie is not read for every request");
        let second = credentials.other_than(&first).unwrap();
        assert_ne!(second, first);
        assert_eq!(credentials.other_than(&first), Some(second));
        fs::remove_file(&file).unwrap();
        credentials.forget();
        assert!(credentials.get().is_err());
    }
}
