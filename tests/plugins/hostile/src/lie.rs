//! Messages that no correct runner sends, written to the sockets that this process shares with its host.
#![allow(unsafe_code)]

use std::io;
use std::thread;
use std::time::Duration;

/// The numbers of some kinds of messages.
const HELLO: u64 = 1;
const REPLY: u64 = 13;
const RETURNED: u64 = 14;
const UNKNOWN: u64 = 99;

/// The head of a message: its kind, a call's token, a value that depends on the kind, and its length.
type Head = [u64; 4];

fn head(kind: u64, token: u64, len: u64) -> Head {
    [kind, token, 0, len << 32]
}

/// Sends the host this kind of false message. Returns only for an unknown kind.
pub fn lie(how: &str, token: u64) -> io::Result<()> {
    match how {
        "kind" => send(&bytes(&head(UNKNOWN, token, 0))),
        "turn" => send(&bytes(&head(HELLO, token, 0))),
        "token" => send(&bytes(&head(RETURNED, token ^ 1, 0))),
        "length" => send(&bytes(&head(REPLY, token, u64::from(u32::MAX)))),
        // If an earlier call's function then returns, its message completes this one, which answers no call.
        "half" => send(&bytes(&head(REPLY, token ^ 1, 0))[..20]),
        "part" => send(&bytes(&head(REPLY, token ^ 1, 9))),
        "closed" => (0..64).for_each(close),
        _ => return Err(io::ErrorKind::InvalidInput.into()),
    }
    loop {
        thread::sleep(Duration::from_secs(3600));
    }
}

fn bytes(head: &Head) -> Vec<u8> {
    head.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Sends the bytes on every channel: all sockets but standard input.
fn send(bytes: &[u8]) {
    let of = |socket: i32| {
        // SAFETY: a zeroed `stat` is valid, and outlives the call.
        let mut about: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: as above.
        unsafe { libc::fstat(socket, &raw mut about) };
        about.st_ino
    };
    let beside = of(0);
    for socket in (3..64).filter(|socket| of(*socket) != beside) {
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        // SAFETY: bytes that outlive the call, to a descriptor that refuses them unless it is a connected socket.
        unsafe { libc::send(socket, bytes.as_ptr().cast(), bytes.len(), flags) };
    }
}

fn close(socket: i32) {
    // SAFETY: ends a connection, where the descriptor is one.
    unsafe { libc::shutdown(socket, libc::SHUT_RDWR) };
}
