//! The addresses that the server listens on: TCP ports and Unix sockets.

use std::fmt;
use std::fs::{self, Permissions};
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::task::{Context, Poll};

use outrigger_base::unix_socket::{bind_unix, is_abandoned};
use rustix::fs::{Access, access};
use thiserror::Error;
use tokio::net::{TcpListener, UnixListener, UnixSocket};

use super::peers::Peer;
use super::socket::Socket;

/// The most connections that wait to be accepted: tokio's value for TCP.
const BACKLOG: u32 = 1024;

/// The system's longest path of a Unix socket, in bytes without the terminating zero.
const MAX_PATH_BYTES: usize = 107;

const UNIX: &str = "unix:";
const PROXY: &str = "proxy:";

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenAddress {
    Tcp(SocketAddr),
    /// A port for trusted proxies only. Each connection begins with a PROXY protocol header.
    Proxy(SocketAddr),
    Unix(PathBuf),
}

#[derive(Debug, Error, PartialEq, Eq)]
#[error(
    "'{0}' is no address: write 127.0.0.1:8337, [::1]:8337, proxy: with such an address, or unix: with an absolute path"
)]
pub struct BadListenAddress(String);

impl ListenAddress {
    /// Whether other machines can connect.
    pub fn is_for_others(&self) -> bool {
        self.socket().is_some_and(|address| !address.ip().is_loopback())
    }

    /// Whether the path of a Unix socket is short enough for the system.
    pub fn is_possible(&self) -> bool {
        !matches!(self, Self::Unix(path) if path.as_os_str().len() > MAX_PATH_BYTES)
    }

    /// The address and port; `None` for a Unix socket.
    pub fn socket(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(address) | Self::Proxy(address) => Some(*address),
            Self::Unix(_) => None,
        }
    }

    pub fn url(&self, has_tls: bool) -> String {
        match self {
            Self::Tcp(address) => format!("http{}://{address}/", if has_tls { "s" } else { "" }),
            Self::Proxy(_) | Self::Unix(_) => self.to_string(),
        }
    }
}

impl From<SocketAddr> for ListenAddress {
    fn from(address: SocketAddr) -> Self {
        Self::Tcp(address)
    }
}

impl FromStr for ListenAddress {
    type Err = BadListenAddress;

    fn from_str(text: &str) -> Result<Self, BadListenAddress> {
        let bad = || BadListenAddress(text.to_owned());
        match text.strip_prefix(UNIX) {
            Some(path) if path.starts_with('/') => Ok(Self::Unix(path.into())),
            Some(_) => Err(bad()),
            None => match text.strip_prefix(PROXY) {
                Some(address) => address.parse().map(Self::Proxy),
                None => text.parse().map(Self::Tcp),
            }
            .map_err(|_| bad()),
        }
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(f, "{address}"),
            Self::Proxy(address) => write!(f, "{PROXY}{address}"),
            Self::Unix(path) => write!(f, "{UNIX}{}", path.display()),
        }
    }
}

#[derive(Debug, Error)]
pub enum ListenError {
    #[error("cannot listen for RPC on {address}: {source}")]
    Bind { address: ListenAddress, source: io::Error },
    #[error("no address to listen for RPC on")]
    Nowhere,
}

/// A listening socket. Dropping it removes the file of a Unix socket.
pub struct Listener {
    socket: ListenSocket,
    /// The bound address, with its actual port.
    pub(super) address: ListenAddress,
}

enum ListenSocket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// A connection that was accepted.
pub(super) struct Arrival {
    pub stream: Socket,
    pub peer: Peer,
    /// Whether it begins with a PROXY protocol header.
    pub is_proxied: bool,
}

impl Listener {
    pub(super) fn poll_accept(&self, context: &mut Context<'_>) -> Poll<io::Result<Arrival>> {
        let is_proxied = matches!(self.address, ListenAddress::Proxy(_));
        match &self.socket {
            ListenSocket::Tcp(listener) => listener.poll_accept(context).map_ok(|(stream, address)| {
                let peer = Peer::Ip(address.ip().to_canonical());
                Arrival { stream: Socket::Tcp(stream), peer, is_proxied }
            }),
            ListenSocket::Unix(listener) => listener.poll_accept(context).map(|accepted| {
                let (stream, _) = accepted?;
                let peer = Peer::Unix(stream.peer_cred()?.uid());
                Ok(Arrival { stream: Socket::Unix(stream), peer, is_proxied })
            }),
        }
    }

    async fn bind(address: &ListenAddress, mode: u32) -> io::Result<Self> {
        let mut address = address.clone();
        let socket = match &mut address {
            ListenAddress::Tcp(address) | ListenAddress::Proxy(address) => {
                let listener = TcpListener::bind(*address).await?;
                *address = listener.local_addr()?;
                ListenSocket::Tcp(listener)
            }
            ListenAddress::Unix(path) => ListenSocket::Unix(listen_unix(path, mode)?),
        };
        Ok(Self { socket, address })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // Removed before the socket closes: a host that starts now must not take the file for an abandoned socket.
        if let ListenAddress::Unix(path) = &self.address
            && let Err(error) = fs::remove_file(path)
        {
            tracing::debug!(%error, path = %path.display(), "a Unix socket cannot be removed");
        }
    }
}

/// Listens on a Unix socket. Clients can connect only after its file has the mode.
fn listen_unix(path: &Path, mode: u32) -> io::Result<UnixListener> {
    let socket = bind_unix(path, || {
        let socket = UnixSocket::new_stream()?;
        socket.bind(path).map(|()| socket)
    })?;
    fs::set_permissions(path, Permissions::from_mode(mode))?;
    socket.listen(BACKLOG)
}

/// Checks whether a Unix socket could be made at `path`, without making it.
///
/// # Errors
/// A path that is too long, is in use or is no socket; a folder that is missing or cannot be written.
pub fn try_unix(path: &Path) -> io::Result<()> {
    if path.as_os_str().len() > MAX_PATH_BYTES {
        return Err(io::Error::other(format!("the path is longer than {MAX_PATH_BYTES} bytes")));
    }
    if path.symlink_metadata().is_ok() && !is_abandoned(path) {
        return Err(io::ErrorKind::AddrInUse.into());
    }
    let folder = path.parent().unwrap_or(path);
    Ok(access(folder, Access::WRITE_OK | Access::EXEC_OK)?)
}

/// Listens on each address; Unix sockets get this mode.
///
/// # Errors
/// The host cannot listen on an address (with `may_lack_ipv6` it skips missing IPv6 addresses), or no address is left.
pub async fn listen(wanted: &[ListenAddress], may_lack_ipv6: bool, mode: u32) -> Result<Vec<Listener>, ListenError> {
    let mut listeners = Vec::new();
    for address in wanted {
        let is_ipv6 = matches!(address, ListenAddress::Tcp(ip) | ListenAddress::Proxy(ip) if ip.is_ipv6());
        match Listener::bind(address, mode).await {
            Err(error) if may_lack_ipv6 && is_ipv6 && is_missing(&error) && !listeners.is_empty() => {
                tracing::info!(%address, %error, "this machine has no IPv6: not listening on this address");
            }
            Err(source) => return Err(ListenError::Bind { address: address.clone(), source }),
            Ok(listener) => listeners.push(listener),
        }
    }
    if listeners.is_empty() { Err(ListenError::Nowhere) } else { Ok(listeners) }
}

/// Whether the machine does not have the address or its family.
fn is_missing(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::AddrNotAvailable
        || error.raw_os_error() == Some(rustix::io::Errno::AFNOSUPPORT.raw_os_error())
}
