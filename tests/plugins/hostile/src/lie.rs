//! Messages that no runner sends: written into the memory that this process shares with its host, or to the sockets that it has
//! instead.
#![allow(unsafe_code)]

use std::fs;
use std::io;
use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// The places of lanes, of which the first are those of a plugin's own threads; and the bytes of their counters and of a slot.
const LANES: usize = 64;
const FIRST: usize = 4;
const COUNTERS: usize = 4096;
const SLOT: usize = 64 << 10;
const SLOTS: u32 = 8;

/// The numbers of some kinds of messages.
const HELLO: u64 = 1;
const REPLY: u64 = 14;
const RETURNED: u64 = 15;
const UNKNOWN: u64 = 99;

/// The head of a message: its kind, a call, what belongs to the kind, and its length.
type Head = [u64; 4];

fn head(kind: u64, token: u64, extra: u64, len: u64) -> Head {
    [kind, token, extra, len << 32]
}

/// Lies to the host in this way. Comes back only where that cannot be.
pub fn lie(how: &str, token: u64) -> io::Result<()> {
    match how {
        "count" => lanes()?.iter().for_each(|lane| lane.count(2 * SLOTS)),
        "kind" => publish(&[head(UNKNOWN, token, 0, 0)])?,
        "turn" => publish(&[head(HELLO, token, 0, 0)])?,
        "token" => publish(&[head(RETURNED, token ^ 1, 0, 0)])?,
        "length" => publish(&[head(REPLY, token, 0, u64::from(u32::MAX))])?,
        // Where an earlier call's function returns after it, that ends this message: it answers nobody then.
        "half" => send(&bytes(&[head(REPLY, token ^ 1, 0, 0)])[..20]),
        "part" => send(&bytes(&[head(REPLY, token ^ 1, 0, 9)])),
        "word" => say(99)?,
        "closed" => (0..64).for_each(close),
        "asleep" => keep_asleep()?,
        _ => return Err(io::ErrorKind::InvalidInput.into()),
    }
    loop {
        thread::sleep(Duration::from_secs(3600));
    }
}

/// The part of a lane in the memory that this process writes.
struct Lane(usize);

/// Those on which the host may wait for a function of the plugin.
fn lanes() -> io::Result<Vec<Lane>> {
    let maps = fs::read_to_string("/proc/self/maps")?;
    let ours = maps.lines().filter(|line| line.contains("memfd:outrigger") && line.contains(" rw-s "));
    let range = |line: &str| {
        let (from, to) = line.split(' ').next()?.split_once('-')?;
        Some((usize::from_str_radix(from, 16).ok()?, usize::from_str_radix(to, 16).ok()?))
    };
    let bytes = COUNTERS + SLOTS as usize * SLOT;
    let region = ours.filter_map(range).find(|(from, to)| to - from == LANES * bytes);
    let (from, _) = region.ok_or(io::ErrorKind::NotFound)?;
    Ok((FIRST..LANES).map(|place| Lane(from + place * bytes)).collect())
}

/// Says the same on every lane.
fn publish(heads: &[Head]) -> io::Result<()> {
    match lanes() {
        Ok(lanes) => lanes.iter().for_each(|lane| heads.iter().for_each(|head| lane.say(head))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => send(&bytes(heads)),
        Err(error) => return Err(error),
    }
    Ok(())
}

fn bytes(heads: &[Head]) -> Vec<u8> {
    heads.iter().flatten().flat_map(|word| word.to_le_bytes()).collect()
}

/// Sends the same on every lane's socket: all but the one beside them, which is standard input.
fn send(bytes: &[u8]) {
    let of = |socket: i32| {
        // SAFETY: what is nothing yet is valid, and outlives the call.
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

/// Ends in a way that nobody who sleeps on a lane is woken by: they are moved to a word of this process before.
fn keep_asleep() -> io::Result<()> {
    static ELSEWHERE: AtomicU32 = AtomicU32::new(0);
    let first = lanes()?.first().map_or(0, |lane| lane.0 - FIRST * (COUNTERS + SLOTS as usize * SLOT));
    let mut moved = 0;
    // Those of this process's own threads, and that of this call.
    while moved <= FIRST as i64 {
        for place in 0..LANES {
            let lane = Lane(first + place * (COUNTERS + SLOTS as usize * SLOT));
            let (from, to) = (ptr::from_ref(lane.published()), ptr::from_ref(&ELSEWHERE));
            // SAFETY: two words that outlive the call.
            moved += unsafe { libc::syscall(libc::SYS_futex, from, libc::FUTEX_REQUEUE, 0, i32::MAX as i64, to) };
        }
        thread::yield_now();
    }
    std::process::abort()
}

impl Lane {
    fn published(&self) -> &AtomicU32 {
        // SAFETY: the counter of a lane, in memory that is mapped for the life of the process.
        unsafe { &*(self.0 as *const AtomicU32) }
    }

    fn say(&self, head: &Head) {
        let slot = self.0 + COUNTERS + (self.published().load(Ordering::SeqCst) % SLOTS) as usize * SLOT;
        for (place, word) in head.iter().enumerate() {
            // SAFETY: as above, within a slot.
            unsafe { &*((slot + 8 * place) as *const AtomicU64) }.store(*word, Ordering::SeqCst);
        }
        self.count(1);
    }

    fn count(&self, messages: u32) {
        self.published().fetch_add(messages, Ordering::SeqCst);
        // SAFETY: wakes whoever sleeps on the counter.
        unsafe { libc::syscall(libc::SYS_futex, ptr::from_ref(self.published()), libc::FUTEX_WAKE, i32::MAX) };
    }
}

/// Says a word on the socket beside the lanes.
fn say(word: u8) -> io::Result<()> {
    // SAFETY: one byte that outlives the call.
    let sent = unsafe { libc::send(0, ptr::from_ref(&word).cast(), 1, 0) };
    if sent == 1 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn close(socket: i32) {
    // SAFETY: ends a connection, where the descriptor is one.
    unsafe { libc::shutdown(socket, libc::SHUT_RDWR) };
}
