//! Grants of resources outside a confined process; each is a line of the configuration.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// In bytes, without the terminating zero.
const MAX_SOCKET_PATH: usize = 107;

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Reach {
    /// Reading a file, or a folder and everything below it.
    Read(PathBuf),
    /// Reading and writing a file, or a folder and everything below it: making, renaming and removing files and
    /// folders, locking and truncating files. Linking, changing modes or owners, and executing are denied.
    Write(PathBuf),
    /// Connecting to the Unix socket at this path.
    Unix(PathBuf),
    /// Connecting to this address by TCP.
    Tcp(SocketAddr),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReachError {
    #[error("'{0}' is not a valid reach: it must begin with read:, write:, connect:unix: or connect:tcp:")]
    Kind(String),
    #[error("'{0}' is not a valid reach: its path must be absolute, without '.' and '..', and not '/' itself")]
    Path(String),
    #[error("'{0}' is not a valid reach: the path of a Unix socket has at most {MAX_SOCKET_PATH} bytes")]
    SocketPath(String),
    /// Host names are not resolved: a DNS server would choose the target.
    #[error(
        "'{0}' is not a valid reach: the address is IP:PORT, such as 127.0.0.1:8443 or [::1]:8443, with a port above 0"
    )]
    Address(String),
}

/// The path of a grant, if it is absolute and plain.
fn path(text: &str, grant: &str) -> Result<PathBuf, ReachError> {
    let path = Path::new(text);
    let plain = path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    // `components` drops a `.` in the middle, so the text is checked as well.
    let rebuilt: PathBuf = path.components().collect();
    if !path.is_absolute() || !plain || rebuilt.as_os_str().len() < 2 || text.contains("/./") || text.ends_with("/.") {
        return Err(ReachError::Path(grant.to_owned()));
    }
    Ok(rebuilt)
}

impl FromStr for Reach {
    type Err = ReachError;

    fn from_str(grant: &str) -> Result<Self, ReachError> {
        if let Some(text) = grant.strip_prefix("read:") {
            return Ok(Self::Read(path(text, grant)?));
        }
        if let Some(text) = grant.strip_prefix("write:") {
            return Ok(Self::Write(path(text, grant)?));
        }
        if let Some(text) = grant.strip_prefix("connect:unix:") {
            let socket = path(text, grant)?;
            return match socket.as_os_str().len() {
                ..=MAX_SOCKET_PATH => Ok(Self::Unix(socket)),
                _ => Err(ReachError::SocketPath(grant.to_owned())),
            };
        }
        let Some(text) = grant.strip_prefix("connect:tcp:") else { return Err(ReachError::Kind(grant.to_owned())) };
        match text.parse::<SocketAddr>() {
            Ok(address) if address.port() != 0 => Ok(Self::Tcp(canonical(address))),
            _ => Err(ReachError::Address(grant.to_owned())),
        }
    }
}

impl TryFrom<String> for Reach {
    type Error = ReachError;

    fn try_from(grant: String) -> Result<Self, ReachError> {
        grant.parse()
    }
}

impl From<Reach> for String {
    fn from(reach: Reach) -> Self {
        reach.to_string()
    }
}

impl fmt::Display for Reach {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(path) => write!(to, "read:{}", path.display()),
            Self::Write(path) => write!(to, "write:{}", path.display()),
            Self::Unix(path) => write!(to, "connect:unix:{}", path.display()),
            Self::Tcp(address) => write!(to, "connect:tcp:{address}"),
        }
    }
}

impl Reach {
    /// For an operator, such as `may read /etc/acme`.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::Read(path) => format!("may read {}", path.display()),
            Self::Write(path) => format!("may read and write {}", path.display()),
            Self::Unix(path) => format!("may connect to the Unix socket {}", path.display()),
            Self::Tcp(address) => format!("may connect to {address} by TCP"),
        }
    }

    #[must_use]
    pub fn is_connect(&self) -> bool {
        matches!(self, Self::Unix(_) | Self::Tcp(_))
    }

    /// The granted file or folder, and whether writing is granted.
    #[must_use]
    pub fn files(&self) -> Option<(&Path, bool)> {
        match self {
            Self::Read(path) => Some((path, false)),
            Self::Write(path) => Some((path, true)),
            Self::Unix(_) | Self::Tcp(_) => None,
        }
    }

    /// The path is absolute and plain.
    #[must_use]
    pub fn opens(all: &[Self], path: &Path, writing: bool) -> bool {
        all.iter().filter_map(Self::files).any(|(granted, writes)| path.starts_with(granted) && (writes || !writing))
    }
}

#[must_use]
pub fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => SocketAddr::new(IpAddr::V4(ip), address.port()),
        // A link-local address keeps its scope.
        IpAddr::V6(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_is_read_and_written_as_the_same_text() {
        for (text, words) in [
            ("read:/etc/acme", "may read /etc/acme"),
            ("write:/var/lib/acme", "may read and write /var/lib/acme"),
            ("connect:unix:/run/vault.sock", "may connect to the Unix socket /run/vault.sock"),
            ("connect:tcp:127.0.0.1:8443", "may connect to 127.0.0.1:8443 by TCP"),
            ("connect:tcp:[::1]:8443", "may connect to [::1]:8443 by TCP"),
        ] {
            let reach: Reach = text.parse().unwrap();
            assert_eq!((reach.to_string().as_str(), reach.words().as_str()), (text, words));
            let json = serde_json::to_string(&reach).unwrap();
            assert_eq!(json, format!("\"{text}\""));
            assert_eq!(serde_json::from_str::<Reach>(&json).unwrap(), reach);
        }
        assert_eq!("connect:tcp:[::ffff:10.0.0.1]:80".parse(), Ok(Reach::Tcp("10.0.0.1:80".parse().unwrap())));
        assert_eq!("read:/etc//acme/".parse(), Ok(Reach::Read("/etc/acme".into())));
    }

    #[test]
    fn what_names_no_single_place_is_refused() {
        for text in ["", "/etc", "reads:/etc", "connect:udp:127.0.0.1:1", "connect:/run/a"] {
            assert_eq!(text.parse::<Reach>(), Err(ReachError::Kind(text.into())));
        }
        for text in ["read:", "read:/", "read:etc", "write:/a/../b", "read:/a/./b", "read:/a/.", "connect:unix:a.sock"]
        {
            assert_eq!(text.parse::<Reach>(), Err(ReachError::Path(text.into())));
        }
        for text in
            ["connect:tcp:localhost:80", "connect:tcp:127.0.0.1", "connect:tcp:127.0.0.1:0", "connect:tcp:::1:80"]
        {
            assert_eq!(text.parse::<Reach>(), Err(ReachError::Address(text.into())));
        }
        let long = format!("connect:unix:/{}", "a".repeat(107));
        assert_eq!(long.parse::<Reach>(), Err(ReachError::SocketPath(long.clone())));
        assert!(long[..long.len() - 1].parse::<Reach>().is_ok());
    }

    #[test]
    fn a_file_is_opened_by_the_grant_of_its_folder_and_of_no_other() {
        let all = ["read:/etc/acme", "write:/var/lib/acme"].map(|text| text.parse().unwrap());
        let opens = |path: &str, writing| Reach::opens(&all, Path::new(path), writing);
        assert!(opens("/etc/acme", false) && opens("/etc/acme/a/b", false) && opens("/var/lib/acme/x", false));
        assert!(opens("/var/lib/acme/x", true) && !opens("/etc/acme/a", true));
        assert!(!opens("/etc/acme2", false) && !opens("/etc", false) && !opens("/", false));
    }
}
