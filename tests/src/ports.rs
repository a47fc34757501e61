//! Ports for programs that cannot report which port the system has given them.

use std::net::TcpListener;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

/// Below the ports that Linux gives to outgoing connections: such a connection could take a port before the program listens, or
/// while it restarts.
const PORTS: Range<u16> = 10_000..32_000;

static TRIED: AtomicU32 = AtomicU32::new(0);

/// A port of the loopback on which nothing listens. Each process begins at another place and gives out no port twice.
pub fn free_port() -> u16 {
    let first = std::process::id().wrapping_mul(7_919);
    let next = || first.wrapping_add(TRIED.fetch_add(1, Ordering::Relaxed)) % PORTS.len() as u32;
    let ports = std::iter::repeat_with(|| PORTS.start + next() as u16);
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    ports.take(PORTS.len()).find(is_free).expect("each port is taken")
}
