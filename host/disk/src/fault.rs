//! Names the file of a failed memory access. If a mapped file is damaged, truncated or unavailable, LMDB's access to it
//! kills the process, which cannot be prevented.
//!
//! The kernel sends SIGBUS or SIGSEGV to the accessing thread. A handler looks up the address in `/proc/self/maps`. For
//! an LMDB file, it writes the name to standard error and ends the process. Otherwise it restores the previous handler:
//! Rust's, which reports stack overflows, and then the default.
//!
//! A signal handler may call hardly anything, so it opens, reads and writes by system calls, into preallocated memory.

#![expect(unsafe_code, reason = "signal handlers are unsafe by nature")]

use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::mem;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use super::environment::{DATA_FILE, LOCK_FILE};

/// The signals of a failed access.
const SIGNALS: [c_int; 2] = [libc::SIGBUS, libc::SIGSEGV];
/// The exit status of other failures.
const EXIT_FAILED: c_int = 1;
/// The longest reported path, in bytes.
const MAX_PATH: usize = 4096;
/// The size of a read from the list of maps, in bytes.
const PIECE: usize = 1024;
/// The fields between addresses and path: permissions, offset, device, inode.
const FIELDS_BETWEEN: u32 = 4;

/// The previous handlers.
static FORMER: OnceLock<[libc::sigaction; 2]> = OnceLock::new();

/// A buffer for a path, outside the handler's small stack. Only one thread uses it.
struct Room {
    taken: AtomicBool,
    path: UnsafeCell<[u8; MAX_PATH]>,
}

// SAFETY: only the thread that set `taken` from false accesses `path`, and `taken` is never reset.
unsafe impl Sync for Room {}

static ROOM: Room = Room { taken: AtomicBool::new(false), path: UnsafeCell::new([0; MAX_PATH]) };

/// Installs the handler, once per process.
pub fn name_files_of_failed_accesses() {
    // SAFETY: a zeroed `sigaction` is valid: the default action, no flags, an empty mask.
    let mut former: [libc::sigaction; 2] = unsafe { mem::zeroed() };
    for (signal, former) in SIGNALS.into_iter().zip(&mut former) {
        // SAFETY: the pointer is valid during the call, and no action is set.
        unsafe { libc::sigaction(signal, ptr::null(), former) };
    }
    if FORMER.set(former).is_err() {
        return;
    }
    // SAFETY: as above.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    action.sa_sigaction = on_failed_access as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    for signal in SIGNALS {
        // SAFETY: the handler has the signature that SA_SIGINFO requires, and is async-signal-safe.
        unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) };
    }
}

extern "C" fn on_failed_access(signal: c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
    // SAFETY: the kernel passes a valid `siginfo_t`, with an address unless a process sent the signal.
    let (sent, address) = unsafe { ((*info).si_code <= 0, (*info).si_addr() as usize) };
    if !sent {
        if ROOM.taken.swap(true, Ordering::Acquire) {
            // Another thread is handling its failure and ends the process.
            loop {
                // SAFETY: waits for a signal and touches no memory.
                unsafe { libc::pause() };
            }
        }
        // SAFETY: `taken` was false and is never reset.
        let path = unsafe { &mut *ROOM.path.get() };
        if let Some(length) = find(address, path)
            && let Some(path) = path.get(..length)
            && is_ours(path)
        {
            tell(path);
            // SAFETY: any thread may end the process at any time.
            unsafe { libc::_exit(EXIT_FAILED) };
        }
    }
    let place = usize::from(signal != libc::SIGBUS);
    if let Some(former) = FORMER.get().and_then(|former| former.get(place)) {
        // SAFETY: restores the previous action. The access fails again and meets it.
        unsafe { libc::sigaction(signal, former, ptr::null_mut()) };
    }
    if sent {
        // SAFETY: a signal sent by a process would not recur. The raised one is delivered when this handler returns.
        unsafe { libc::raise(signal) };
    }
}

/// Whether the path of a map is an LMDB file, deleted or not.
fn is_ours(path: &[u8]) -> bool {
    let path = path.strip_suffix(b" (deleted)").unwrap_or(path);
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    name == DATA_FILE.as_bytes() || name == LOCK_FILE.as_bytes()
}

fn tell(path: &[u8]) {
    let pieces: [&[u8]; 3] = [
        b"outrigger: the file ",
        path,
        b" cannot be read where it is mapped: it was damaged or cut while it was open, or its disk fails. The process ends.\n",
    ];
    for piece in pieces {
        // SAFETY: writes bytes that are valid during the call. A failure does not matter.
        unsafe { libc::write(libc::STDERR_FILENO, piece.as_ptr().cast(), piece.len()) };
    }
}

/// Writes the path of the map at `address` into `path`. Returns its length.
fn find(address: usize, path: &mut [u8; MAX_PATH]) -> Option<usize> {
    // SAFETY: the path is a NUL-terminated string.
    let file = unsafe { libc::open(c"/proc/self/maps".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    if file < 0 {
        return None;
    }
    let mut lines = Lines::new(address);
    let mut piece = [0_u8; PIECE];
    loop {
        // SAFETY: reads into exclusive memory of that length.
        let read = unsafe { libc::read(file, piece.as_mut_ptr().cast(), PIECE) };
        let read = usize::try_from(read).ok().filter(|read| *read > 0)?;
        for byte in piece.iter().take(read) {
            if let Some(length) = lines.take(*byte, path) {
                return Some(length);
            }
        }
    }
}

/// A parser of the list of maps, byte by byte: `start-end permissions offset device inode   path`, numbers in
/// hexadecimal.
struct Lines {
    address: usize,
    bounds: [usize; 2],
    /// The current field; 0 and 1 are the bounds.
    field: u32,
    length: usize,
}

impl Lines {
    fn new(address: usize) -> Self {
        Self { address, bounds: [0; 2], field: 0, length: 0 }
    }

    /// Parses a byte. At the end of the line with the address, returns the path's length.
    fn take(&mut self, byte: u8, path: &mut [u8; MAX_PATH]) -> Option<usize> {
        match byte {
            b'\n' => {
                let [start, end] = self.bounds;
                let length = self.length;
                let found = (start..end).contains(&self.address);
                *self = Self::new(self.address);
                return found.then_some(length);
            }
            b'-' if self.field == 0 => self.field = 1,
            b' ' if self.field >= 1 && self.field <= FIELDS_BETWEEN + 1 => self.field += 1,
            // Several spaces precede the path.
            b' ' if self.length == 0 => {}
            byte if self.field <= 1 => {
                let digit = (byte as char).to_digit(16).unwrap_or_default() as usize;
                if let Some(bound) = self.bounds.get_mut(self.field as usize) {
                    *bound = (*bound << 4) | digit;
                }
            }
            byte if self.field > FIELDS_BETWEEN + 1 => {
                if let Some(place) = path.get_mut(self.length) {
                    *place = byte;
                    self.length += 1;
                }
            }
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(list: &str, address: usize) -> Option<String> {
        let (mut lines, mut path) = (Lines::new(address), [0; MAX_PATH]);
        let length = list.bytes().find_map(|byte| lines.take(byte, &mut path))?;
        Some(String::from_utf8_lossy(&path[..length]).into_owned())
    }

    #[test]
    fn map_fault_names_the_path_of_the_map() {
        let list = "7f00-7f10 r--p 00000000 fe:00 12    /a b/wallets/w 1/data.mdb\n7f10-7f20 rw-p 00000000 00:00 0\n7f30-7f40 r--s 00000000 fe:00 9 /c/lock.mdb (deleted)\n";
        assert_eq!(found(list, 0x7f08).as_deref(), Some("/a b/wallets/w 1/data.mdb"));
        assert_eq!(found(list, 0x7f10).as_deref(), Some(""));
        assert_eq!(found(list, 0x7f25), None);
        assert_eq!(found(list, 0x7f3f).as_deref(), Some("/c/lock.mdb (deleted)"));
        assert!(
            is_ours(b"/c/lock.mdb (deleted)")
                && is_ours(b"/data.mdb")
                && !is_ours(b"/usr/lib/libc.so")
                && !is_ours(b"")
        );
    }

    #[test]
    fn map_fault_finds_the_map_of_an_own_address() {
        let mut path = [0; MAX_PATH];
        let length = find(found as *const () as usize, &mut path).unwrap();
        let own = std::env::current_exe().unwrap();
        assert_eq!(&path[..length], own.as_os_str().as_encoded_bytes());
    }
}
