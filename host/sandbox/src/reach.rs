//! Grants of resources outside a confined process; each is a line of the configuration.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The most connections that the host opens for an instance at a time. An isolated plugin has a file descriptor for each.
pub const MAX_CONNECTIONS: usize = 128;

/// In bytes, without the terminating zero.
const MAX_SOCKET_PATH: usize = 107;

/// The longest host name and the longest part of it between dots, in bytes.
const MAX_NAME: usize = 253;
const MAX_LABEL: usize = 63;

/// The prefixes of entries.
const READ: &str = "read:";
const WRITE: &str = "write:";
const UNIX: &str = "connect:unix:";
const TCP: &str = "connect:tcp:";
const TLS: &str = "connect:tls:";
const LISTEN_TCP: &str = "listen:tcp:";
const LISTEN_UNIX: &str = "listen:unix:";

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
    /// Connecting to this name by TCP. The host resolves it.
    TcpName(Endpoint),
    /// Connecting by TLS, with the certificate checked. The host resolves and connects.
    Tls(Endpoint),
    /// Accepting connections at this address. The host makes the socket.
    ListenTcp(SocketAddr),
    /// Accepting connections at this path. The host makes the socket.
    ListenUnix(PathBuf),
}

/// A host by its name, or by its address in the form of [`IpAddr`], and a port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Endpoint {
    pub host: String,
    pub port: u16,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(to, "[{}]:{}", self.host, self.port),
            false => write!(to, "{}:{}", self.host, self.port),
        }
    }
}

impl Endpoint {
    fn parse(text: &str) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        Some(Self { host: name(host)?, port: port.parse().ok().filter(|port| *port != 0)? })
    }
}

/// A valid host name in lower case. Rejects texts that a resolver could read as an address, such as `127.1`.
fn name(text: &str) -> Option<String> {
    let is_label = |label: &str| {
        (1..=MAX_LABEL).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    let last = text.rsplit('.').next()?;
    let is_name =
        text.len() <= MAX_NAME && text.split('.').all(is_label) && !last.starts_with(|c: char| c.is_ascii_digit());
    is_name.then(|| text.to_ascii_lowercase())
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReachError {
    #[error(
        "'{0}' is not a valid reach: it must begin with {READ}, {WRITE}, {UNIX}, {TCP}, {TLS}, {LISTEN_TCP} or {LISTEN_UNIX}"
    )]
    Kind(String),
    #[error("'{0}' is not a valid reach: its path must be absolute, without '.' and '..', and not '/' itself")]
    Path(String),
    #[error("'{0}' is not a valid reach: the path of a Unix socket has at most {MAX_SOCKET_PATH} bytes")]
    SocketPath(String),
    #[error(
        "'{0}' is not a valid reach: it ends with IP:PORT or NAME:PORT, such as 127.0.0.1:8443, [::1]:8443 or \
         hooks.example.com:443, with a port above 0"
    )]
    Address(String),
    #[error(
        "'{0}' is not a valid reach: it ends with IP:PORT, such as 127.0.0.1:8443 or [::1]:8443, with a port above 0"
    )]
    Listen(String),
}

/// The path of a grant, which must be absolute, without `.` and `..`, and not `/`.
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

fn socket_path(text: &str, grant: &str) -> Result<PathBuf, ReachError> {
    let socket = path(text, grant)?;
    match socket.as_os_str().len() {
        ..=MAX_SOCKET_PATH => Ok(socket),
        _ => Err(ReachError::SocketPath(grant.to_owned())),
    }
}

impl FromStr for Reach {
    type Err = ReachError;

    fn from_str(grant: &str) -> Result<Self, ReachError> {
        let address = |text: &str| text.parse::<SocketAddr>().ok().filter(|address| address.port() != 0).map(canonical);
        let wrong = || ReachError::Address(grant.to_owned());
        if let Some(text) = grant.strip_prefix(READ) {
            return Ok(Self::Read(path(text, grant)?));
        }
        if let Some(text) = grant.strip_prefix(WRITE) {
            return Ok(Self::Write(path(text, grant)?));
        }
        if let Some(text) = grant.strip_prefix(UNIX) {
            return Ok(Self::Unix(socket_path(text, grant)?));
        }
        if let Some(text) = grant.strip_prefix(TCP) {
            let name = || Endpoint::parse(text).map(Self::TcpName);
            return address(text).map(Self::Tcp).or_else(name).ok_or_else(wrong);
        }
        if let Some(text) = grant.strip_prefix(TLS) {
            let of_address = |address: SocketAddr| Endpoint { host: address.ip().to_string(), port: address.port() };
            let endpoint = address(text).map(of_address).or_else(|| Endpoint::parse(text));
            return endpoint.map(Self::Tls).ok_or_else(wrong);
        }
        if let Some(text) = grant.strip_prefix(LISTEN_TCP) {
            return address(text).map(Self::ListenTcp).ok_or_else(|| ReachError::Listen(grant.to_owned()));
        }
        let Some(text) = grant.strip_prefix(LISTEN_UNIX) else { return Err(ReachError::Kind(grant.to_owned())) };
        Ok(Self::ListenUnix(socket_path(text, grant)?))
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
            Self::Read(path) => write!(to, "{READ}{}", path.display()),
            Self::Write(path) => write!(to, "{WRITE}{}", path.display()),
            Self::Unix(path) => write!(to, "{UNIX}{}", path.display()),
            Self::Tcp(address) => write!(to, "{TCP}{address}"),
            Self::TcpName(endpoint) => write!(to, "{TCP}{endpoint}"),
            Self::Tls(endpoint) => write!(to, "{TLS}{endpoint}"),
            Self::ListenTcp(address) => write!(to, "{LISTEN_TCP}{address}"),
            Self::ListenUnix(path) => write!(to, "{LISTEN_UNIX}{}", path.display()),
        }
    }
}

impl Reach {
    /// A description for operators, such as `may read /etc/acme`.
    pub fn words(&self) -> String {
        match self {
            Self::Read(path) => format!("may read {}", path.display()),
            Self::Write(path) => format!("may read and write {}", path.display()),
            Self::Unix(path) => format!("may connect to the Unix socket {}", path.display()),
            Self::Tcp(address) => format!("may connect to {address} by TCP"),
            Self::TcpName(endpoint) => format!("may connect to {endpoint} by TCP"),
            Self::Tls(endpoint) => format!("may connect to {endpoint} by TLS"),
            Self::ListenTcp(address) => format!("may accept connections at {address}"),
            Self::ListenUnix(path) => format!("may accept connections at the Unix socket {}", path.display()),
        }
    }

    pub fn is_connect(&self) -> bool {
        matches!(self, Self::Unix(_) | Self::Tcp(_) | Self::TcpName(_) | Self::Tls(_))
    }

    pub fn is_listen(&self) -> bool {
        matches!(self, Self::ListenTcp(_) | Self::ListenUnix(_))
    }

    /// The granted file or folder, and whether writing is granted.
    pub fn files(&self) -> Option<(&Path, bool)> {
        match self {
            Self::Read(path) => Some((path, false)),
            Self::Write(path) => Some((path, true)),
            _ => None,
        }
    }

    /// Whether a grant allows opening `path`, which must be absolute and without `.` and `..`.
    pub fn opens(all: &[Self], path: &Path, writing: bool) -> bool {
        all.iter().filter_map(Self::files).any(|(granted, writes)| path.starts_with(granted) && (writes || !writing))
    }
}

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
            ("connect:tcp:localhost:8080", "may connect to localhost:8080 by TCP"),
            ("connect:tls:hooks.example.com:443", "may connect to hooks.example.com:443 by TLS"),
            ("connect:tls:[::1]:443", "may connect to [::1]:443 by TLS"),
            ("listen:tcp:127.0.0.1:9000", "may accept connections at 127.0.0.1:9000"),
            ("listen:unix:/run/acme.sock", "may accept connections at the Unix socket /run/acme.sock"),
        ] {
            let reach: Reach = text.parse().unwrap();
            assert_eq!((reach.to_string().as_str(), reach.words().as_str()), (text, words));
            let json = serde_json::to_string(&reach).unwrap();
            assert_eq!(json, format!("\"{text}\""));
            assert_eq!(serde_json::from_str::<Reach>(&json).unwrap(), reach);
        }
        assert_eq!("connect:tcp:[::ffff:10.0.0.1]:80".parse(), Ok(Reach::Tcp("10.0.0.1:80".parse().unwrap())));
        let endpoint = Endpoint { host: "hooks.example.com".into(), port: 443 };
        assert_eq!("connect:tls:Hooks.Example.COM:443".parse(), Ok(Reach::Tls(endpoint)));
        assert_eq!("read:/etc//acme/".parse(), Ok(Reach::Read("/etc/acme".into())));
    }

    #[test]
    fn invalid_entries_are_refused() {
        for text in ["", "/etc", "reads:/etc", "connect:udp:127.0.0.1:1", "connect:/run/a"] {
            assert_eq!(text.parse::<Reach>(), Err(ReachError::Kind(text.into())));
        }
        for text in ["read:", "read:/", "read:etc", "write:/a/../b", "read:/a/./b", "read:/a/.", "connect:unix:a.sock"]
        {
            assert_eq!(text.parse::<Reach>(), Err(ReachError::Path(text.into())));
        }
        let label = "a".repeat(MAX_LABEL + 1);
        let name = format!("{}com", "a.".repeat(MAX_NAME / 2));
        let wrong = [
            "localhost",
            "127.0.0.1",
            "127.0.0.1:0",
            "::1:80",
            "127.1:80",
            "a.0x7f:80",
            "0:80",
            "a..b:1",
            ".a:1",
            "a.:1",
        ];
        let wrong = wrong.into_iter().chain([
            "-a:1",
            "a-:1",
            "a/b:1",
            "a b:1",
            "a:0",
            "a:65536",
            "a:b:1",
            ":1",
            "*.example.com:443",
        ]);
        for end in wrong.map(str::to_owned).chain([format!("{label}:1"), format!("{name}:1")]) {
            for text in [format!("connect:tcp:{end}"), format!("connect:tls:{end}")] {
                assert_eq!(text.parse::<Reach>(), Err(ReachError::Address(text)));
            }
        }
        for text in ["listen:tcp:localhost:80", "listen:tcp:127.0.0.1:0", "listen:tcp:9000"] {
            assert_eq!(text.parse::<Reach>(), Err(ReachError::Listen(text.into())));
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
