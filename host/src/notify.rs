//! Tells the service manager how far the host is: systemd's notification protocol.

use std::ffi::OsStr;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The host serves.
pub const READY: &str = "READY=1";

/// The host begins to stop.
pub const STOPPING: &str = "STOPPING=1";

/// Tells `state` to the service manager, where there is one. That it cannot be told stops nothing.
pub fn tell(state: &str) {
    let Some(socket) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let sent = address(&socket).and_then(|address| UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address));
    if let Err(error) = sent {
        tracing::warn!(%error, "the service manager cannot be told: {state}");
    }
}

fn address(socket: &OsStr) -> std::io::Result<SocketAddr> {
    // A name with `@` is one of the abstract namespace, which only Linux has.
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
