//! Reports the host's state to the service manager, by systemd's notification protocol.

use std::ffi::OsStr;
use std::os::unix::net::{SocketAddr, UnixDatagram};

pub const READY: &str = "READY=1";

pub const STOPPING: &str = "STOPPING=1";

/// Sends `state` to the service manager, if there is one. A failure is logged.
pub fn tell(state: &str) {
    let Some(socket) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let sent = address(&socket).and_then(|address| UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address));
    if let Err(error) = sent {
        tracing::warn!(%error, "the service manager cannot be notified: {state}");
    }
}

fn address(socket: &OsStr) -> std::io::Result<SocketAddr> {
    // A name that starts with `@` is in the abstract namespace, which only Linux has.
    #[cfg(target_os = "linux")]
    {
        use std::os::linux::net::SocketAddrExt;
        use std::os::unix::ffi::OsStrExt;
        if let [b'@', name @ ..] = socket.as_bytes() {
            return SocketAddr::from_abstract_name(name);
        }
    }
    SocketAddr::from_pathname(socket)
}
