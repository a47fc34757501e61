//! Reads a waiting call's arguments from the confined process's memory. Before using them, the caller must check that
//! the call still waits.

use std::ffi::OsString;
use std::fs::File;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// In bytes, with the terminating zero.
const MAX_PATH: usize = 4096;

/// In bytes.
const MAX_ADDRESS: usize = 128;

/// Reads up to `most` bytes; fewer at the end of a mapping.
fn read(memory: &File, at: u64, most: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; most];
    let mut len = 0;
    while len < most {
        match memory.read_at(&mut bytes[len..], at.checked_add(len as u64)?) {
            Ok(0) => break,
            Ok(more) => len += more,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    bytes.truncate(len);
    (len > 0).then_some(bytes)
}

pub(super) fn path(memory: &File, at: u64) -> Option<PathBuf> {
    let mut bytes = read(memory, at, MAX_PATH)?;
    let end = bytes.iter().position(|byte| *byte == 0)?;
    bytes.truncate(end);
    Some(PathBuf::from(OsString::from_vec(bytes)))
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Address {
    Unix(PathBuf),
    /// An abstract name, not a path.
    Abstract(Vec<u8>),
    Tcp(SocketAddr),
    /// An unsupported address family.
    Other(u16),
}

impl std::fmt::Display for Address {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unix(path) => write!(to, "unix:{}", path.display()),
            Self::Abstract(name) => write!(to, "unix:@{}", String::from_utf8_lossy(name)),
            Self::Tcp(address) => write!(to, "tcp:{address}"),
            Self::Other(family) => write!(to, "family {family}"),
        }
    }
}

pub(super) fn address(memory: &File, at: u64, len: u64) -> Option<Address> {
    let len = usize::try_from(len).ok().filter(|len| (2..=MAX_ADDRESS).contains(len))?;
    let bytes = read(memory, at, len)?;
    if bytes.len() < len { None } else { parse(&bytes) }
}

/// Parses a `sockaddr`.
fn parse(bytes: &[u8]) -> Option<Address> {
    let family = u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?);
    let port = || Some(u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?));
    match libc::c_int::from(family) {
        libc::AF_UNIX => {
            let name = &bytes[2..];
            if name.first().is_none_or(|first| *first == 0) {
                return Some(Address::Abstract(name.get(1..).unwrap_or_default().to_vec()));
            }
            let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
            Some(Address::Unix(PathBuf::from(OsString::from_vec(name[..end].to_vec()))))
        }
        libc::AF_INET => {
            let ip: [u8; 4] = bytes.get(4..8)?.try_into().ok()?;
            Some(Address::Tcp(SocketAddr::from((Ipv4Addr::from(ip), port()?))))
        }
        libc::AF_INET6 => {
            let ip: [u8; 16] = bytes.get(8..24)?.try_into().ok()?;
            let scope = bytes.get(24..28).map_or(Some(0), |scope| Some(u32::from_ne_bytes(scope.try_into().ok()?)))?;
            let address = SocketAddrV6::new(Ipv6Addr::from(ip), port()?, 0, scope);
            Some(Address::Tcp(crate::reach::canonical(SocketAddr::V6(address))))
        }
        _ => Some(Address::Other(family)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_whole_or_not_at_all() {
        let family = |family: libc::c_int| u16::try_from(family).unwrap().to_ne_bytes();
        let unix = [&family(libc::AF_UNIX)[..], b"/run/a\0rest"].concat();
        assert_eq!(parse(&unix), Some(Address::Unix("/run/a".into())));
        let hidden = [&family(libc::AF_UNIX)[..], b"\0name"].concat();
        assert_eq!(parse(&hidden).unwrap().to_string(), "unix:@name");
        let four = [&family(libc::AF_INET)[..], &[0x1f, 0x90, 127, 0, 0, 1], &[0; 8]].concat();
        assert_eq!(parse(&four).unwrap().to_string(), "tcp:127.0.0.1:8080");
        assert_eq!(parse(&four[..7]), None);
        let mut mapped =
            [&family(libc::AF_INET6)[..], &[0x1f, 0x90], &[0; 4], &[0; 10], &[0xff, 0xff], &[127, 0, 0, 1]].concat();
        assert_eq!(parse(&mapped), parse(&four));
        mapped.truncate(23);
        assert_eq!(parse(&mapped), None);
        assert_eq!(parse(&family(libc::AF_NETLINK)), Some(Address::Other(16)));
        assert_eq!(parse(&[1]), None);
    }

    #[test]
    fn memory_that_ends_gives_what_there_is() {
        let memory = File::open("/proc/self/mem").unwrap();
        let text = c"/etc/acme";
        assert_eq!(path(&memory, text.as_ptr() as u64), Some("/etc/acme".into()));
        assert_eq!(path(&memory, 0), None);
        assert_eq!(path(&memory, u64::MAX), None);
        assert_eq!(address(&memory, 0, 16), None);
        assert_eq!(address(&memory, text.as_ptr() as u64, 1 << 40), None);
    }
}
