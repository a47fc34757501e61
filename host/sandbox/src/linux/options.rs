//! The socket options that the host copies to connections that it makes.

use std::os::fd::BorrowedFd;

use libc::c_int;

use super::raw;

/// Level and name of each option that a confined process may set.
pub(super) const COPIED: &[(c_int, c_int)] = &[
    (libc::SOL_SOCKET, libc::SO_KEEPALIVE),
    (libc::SOL_SOCKET, libc::SO_LINGER),
    (libc::SOL_SOCKET, libc::SO_RCVTIMEO),
    (libc::SOL_SOCKET, libc::SO_SNDTIMEO),
    (libc::SOL_SOCKET, libc::SO_RCVBUF),
    (libc::SOL_SOCKET, libc::SO_SNDBUF),
    (libc::SOL_SOCKET, libc::SO_OOBINLINE),
    (libc::SOL_SOCKET, libc::SO_REUSEADDR),
    (libc::IPPROTO_TCP, libc::TCP_NODELAY),
    (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE),
    (libc::IPPROTO_TCP, libc::TCP_KEEPINTVL),
    (libc::IPPROTO_TCP, libc::TCP_KEEPCNT),
    (libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT),
];

/// Copies the options. Options that the new socket refuses are skipped: no option is a restriction.
pub(super) fn copy(from: BorrowedFd<'_>, to: BorrowedFd<'_>) {
    for (level, name) in COPIED {
        let (Some(mut value), Some(new)) = (raw::option(from, *level, *name), raw::option(to, *level, *name)) else {
            continue;
        };
        if value == new {
            continue;
        }
        // The kernel reports twice the buffer size that was set.
        if *level == libc::SOL_SOCKET && [libc::SO_RCVBUF, libc::SO_SNDBUF].contains(name) {
            let Ok(bytes) = <[u8; 4]>::try_from(value.as_slice()) else { continue };
            value = (i32::from_ne_bytes(bytes) / 2).to_ne_bytes().to_vec();
        }
        let _ = raw::set_option(to, *level, *name, &value);
    }
}
