//! The PROXY protocol, version 2: a binary header in which a TCP proxy names the address of its client.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::timeout;

/// How long a proxy may take to send the header.
pub(super) const HEADER_TIMEOUT: Duration = Duration::from_secs(5);

/// The longest part after the header's first 16 bytes. Addresses have at most 216 bytes; extensions follow them.
const MAX_REST: usize = 2048;

const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";

/// The bytes for version 2 with the command LOCAL (the proxy's own connection) or PROXY.
const LOCAL: u8 = 0x20;
const PROXY: u8 = 0x21;

/// The families: unspecified, TCP over IPv4 and IPv6, and a Unix socket.
const UNSPECIFIED: u8 = 0;
const TCP4: u8 = 0x11;
const TCP6: u8 = 0x21;
const UNIX_STREAM: u8 = 0x31;

/// Reads the header and nothing after it. `None`: the connection is the proxy's own, or has no IP address.
pub(super) async fn read(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<IpAddr>> {
    timeout(HEADER_TIMEOUT, async {
        let mut head = [0; 16];
        stream.read_exact(&mut head).await?;
        let length = rest_length(&head).ok_or(io::ErrorKind::InvalidData)?;
        let mut rest = vec![0; length];
        stream.read_exact(&mut rest).await?;
        source(&head, &rest).ok_or_else(|| io::ErrorKind::InvalidData.into())
    })
    .await?
}

/// The header at the beginning of these bytes: the client's address and the header's length, for the fuzzer.
pub fn read_proxy_header(bytes: &[u8]) -> Option<(Option<IpAddr>, usize)> {
    let (head, rest) = bytes.split_first_chunk()?;
    let length = rest_length(head)?;
    Some((source(head, rest.get(..length)?)?, head.len() + length))
}

/// How many bytes follow the first 16; `None` if they are no header.
fn rest_length(head: &[u8; 16]) -> Option<usize> {
    let length = usize::from(u16::from_be_bytes([head[14], head[15]]));
    (head.starts_with(&SIGNATURE) && matches!(head[12], LOCAL | PROXY) && length <= MAX_REST).then_some(length)
}

/// The source address in a header; the outer `None` if it is malformed.
fn source(head: &[u8; 16], rest: &[u8]) -> Option<Option<IpAddr>> {
    match (head[12], head[13]) {
        (LOCAL, _) | (PROXY, UNSPECIFIED | UNIX_STREAM) => Some(None),
        // Two addresses and two ports.
        (PROXY, TCP4) if rest.len() >= 12 => Some(Some(Ipv4Addr::from(*rest.first_chunk::<4>()?).into())),
        (PROXY, TCP6) if rest.len() >= 36 => {
            Some(Some(IpAddr::from(Ipv6Addr::from(*rest.first_chunk::<16>()?)).to_canonical()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
        let length = u16::try_from(rest.len()).unwrap().to_be_bytes();
        [&SIGNATURE[..], &[command, family], &length, rest].concat()
    }

    /// The result of reading these bytes, and how many are left.
    fn read_all(bytes: &[u8]) -> (Result<Option<IpAddr>, io::ErrorKind>, usize) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let mut left = bytes;
        let outcome = runtime.block_on(read(&mut left)).map_err(|error| error.kind());
        (outcome, left.len())
    }

    const V4: [u8; 12] = [192, 0, 2, 1, 127, 0, 0, 1, 0x12, 0x34, 0x20, 0x8d];

    #[test]
    fn proxy_header_names_the_source_and_ends_before_the_request() {
        let v4: IpAddr = "192.0.2.1".parse().unwrap();
        let mut v6 = [0; 36];
        v6[..2].copy_from_slice(&[0x20, 1]);
        v6[15] = 7;
        let mut mapped = [0; 36];
        mapped[10..16].copy_from_slice(&[0xff, 0xff, 192, 0, 2, 1]);
        let cases = [
            (header(PROXY, TCP4, &V4), Some(v4)),
            (header(PROXY, TCP4, &[&V4[..], &[4, 0, 1, 0]].concat()), Some(v4)),
            (header(PROXY, TCP6, &v6), Some("2001::7".parse().unwrap())),
            (header(PROXY, TCP6, &mapped), Some(v4)),
            (header(LOCAL, UNSPECIFIED, &[]), None),
            (header(LOCAL, TCP4, &V4), None),
            (header(PROXY, UNSPECIFIED, &[1, 2, 3]), None),
            (header(PROXY, UNIX_STREAM, &[0; 216]), None),
        ];
        for (bytes, source) in cases {
            assert_eq!(read_all(&[&bytes[..], b"POST"].concat()), (Ok(source), 4), "{bytes:?}");
        }
    }

    #[test]
    fn proxy_header_that_is_cut_off_or_malformed_is_refused() {
        let good = header(PROXY, TCP4, &V4);
        for end in 0..good.len() {
            assert_eq!(read_all(&good[..end]).0, Err(io::ErrorKind::UnexpectedEof), "{end}");
        }
        let malformed = [
            b"PROXY TCP4 192.0.2.1 127.0.0.1 4660 8333\r\n".to_vec(),
            b"POST / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(),
            header(0x11, TCP4, &V4),
            header(0x22, TCP4, &V4),
            header(PROXY, 0x12, &V4),
            header(PROXY, TCP4, &V4[..11]),
            header(PROXY, TCP6, &[0; 35]),
            header(PROXY, TCP4, &[0; MAX_REST + 1]),
        ];
        for bytes in malformed {
            assert_eq!(read_all(&bytes).0, Err(io::ErrorKind::InvalidData), "{bytes:?}");
        }
    }
}
