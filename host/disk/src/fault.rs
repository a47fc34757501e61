//! What cannot be caught: a file that is damaged, cut or withdrawn while it is mapped ends the process when LMDB reads it there. At
//! least the file is named.
//!
//! The system sends SIGBUS or SIGSEGV to the thread that touched the map. A handler looks up in `/proc/self/maps` whose address it
//! was. Where it is a file of LMDB, its name goes to standard error and the process ends; everything else is left to who was asked
//! before: Rust's own handler, which tells of exhausted stacks, and then the system.
//!
//! A handler may call next to nothing, so this opens, reads and writes by system calls alone, into memory that was there before.

#![expect(unsafe_code, reason = "signal handlers are unsafe by nature")]

use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::mem;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use super::environment::{DATA_FILE, LOCK_FILE};

/// The signals of an access that fails.
const SIGNALS: [c_int; 2] = [libc::SIGBUS, libc::SIGSEGV];
/// How the process ends: as after any other failure.
const EXIT_FAILED: c_int = 1;
/// The longest path that is told, in bytes.
const MAX_PATH: usize = 4096;
/// How much of the list of maps is read at a time, in bytes.
const PIECE: usize = 1024;
/// The fields of a line between its addresses and the path: permissions, offset, device, inode.
const FIELDS_BETWEEN: u32 = 4;

/// Who was asked before, of each signal.
static FORMER: OnceLock<[libc::sigaction; 2]> = OnceLock::new();

/// Room for a path, outside of the handler's small stack. One thread has it.
struct Room {
    taken: AtomicBool,
    path: UnsafeCell<[u8; MAX_PATH]>,
}

// SAFETY: only who has set `taken` from false looks at `path`, and it is never given back.
unsafe impl Sync for Room {}

static ROOM: Room = Room { taken: AtomicBool::new(false), path: UnsafeCell::new([0; MAX_PATH]) };

/// Installs the handler, once for the process.
pub fn name_files_of_failed_accesses() {
    // SAFETY: a `sigaction` of zeros is a valid value: the default action with no flags and an empty mask.
    let mut former: [libc::sigaction; 2] = unsafe { mem::zeroed() };
    for (signal, former) in SIGNALS.into_iter().zip(&mut former) {
        // SAFETY: the pointer is to a value that lives through the call; no action is set.
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
        // SAFETY: the handler has the signature that SA_SIGINFO asks for, and calls only what a handler may call.
        unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) };
    }
}

extern "C" fn on_failed_access(signal: c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
    // SAFETY: the system gives a valid description; where the signal was not sent by another process it has an address.
    let (sent, address) = unsafe { ((*info).si_code <= 0, (*info).si_addr() as usize) };
    if !sent {
        if ROOM.taken.swap(true, Ordering::Acquire) {
            // Another thread is at it, and ends the process.
            loop {
                // SAFETY: waits for a signal, and touches no memory.
                unsafe { libc::pause() };
            }
        }
        // SAFETY: `taken` was false, and is not set back.
        let path = unsafe { &mut *ROOM.path.get() };
        if let Some(length) = find(address, path)
            && let Some(path) = path.get(..length)
            && is_ours(path)
        {
            tell(path);
            // SAFETY: ends the process at once, which any thread may do at any time.
            unsafe { libc::_exit(EXIT_FAILED) };
        }
    }
    let place = usize::from(signal != libc::SIGBUS);
    if let Some(former) = FORMER.get().and_then(|former| former.get(place)) {
        // SAFETY: what was set before is set again. The access fails again, and meets it.
        unsafe { libc::sigaction(signal, former, ptr::null_mut()) };
    }
    if sent {
        // SAFETY: what was sent once would not come again. It waits until this handler has returned.
        unsafe { libc::raise(signal) };
    }
}

/// Whether a map's path is that of a file of LMDB, deleted or not.
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
        // SAFETY: writes bytes that live through the call. Whether they arrive changes nothing.
        unsafe { libc::write(libc::STDERR_FILENO, piece.as_ptr().cast(), piece.len()) };
    }
}

/// Puts the path of the map that an address lies in into `path`, and gives its length.
fn find(address: usize, path: &mut [u8; MAX_PATH]) -> Option<usize> {
    // SAFETY: the path is a text with an end; nothing else is passed.
    let file = unsafe { libc::open(c"/proc/self/maps".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    if file < 0 {
        return None;
    }
    let mut lines = Lines::new(address);
    let mut piece = [0_u8; PIECE];
    loop {
        // SAFETY: reads into memory of that length, which nobody else has.
        let read = unsafe { libc::read(file, piece.as_mut_ptr().cast(), PIECE) };
        let read = usize::try_from(read).ok().filter(|read| *read > 0)?;
        for byte in piece.iter().take(read) {
            if let Some(length) = lines.take(*byte, path) {
                return Some(length);
            }
        }
    }
}

/// The list of maps, byte by byte: `start-end permissions offset device inode   path`, numbers in hexadecimal.
struct Lines {
    address: usize,
    bounds: [usize; 2],
    /// Which bound is read; behind both, which field.
    field: u32,
    length: usize,
}

impl Lines {
    fn new(address: usize) -> Self {
        Self { address, bounds: [0; 2], field: 0, length: 0 }
    }

    /// Takes a byte. Gives the path's length at the end of the line with the address.
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
            // The path is set off by several spaces.
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
