//! Raw system calls.
#![allow(unsafe_code, reason = "what a sandbox must refuse has no safe wrapper")]

use std::ffi::c_long;

/// The number of zeros after the bytes of an argument: at least the size of any struct that the tests pass.
const ROOM: usize = 256;

pub enum Argument {
    Number(i64),
    /// The argument is a pointer to these bytes.
    Bytes(Vec<u8>),
}

/// Makes a system call. Returns its `errno`, or 0 for success.
pub fn system_call(number: i64, arguments: &[Argument]) -> i32 {
    let mut memory: Vec<Vec<u8>> = Vec::new();
    let mut words = [0 as c_long; 6];
    for (word, argument) in words.iter_mut().zip(arguments) {
        *word = match argument {
            Argument::Number(number) => *number,
            Argument::Bytes(bytes) => {
                let mut copy = bytes.clone();
                copy.resize(bytes.len() + ROOM, 0);
                // The buffer stays in place when the vector moves.
                let place = copy.as_mut_ptr().expose_provenance();
                memory.push(copy);
                place.cast_signed() as c_long
            }
        };
    }
    let own = std::process::id();
    let [a, b, c, d, e, f] = words;
    // SAFETY: none for calls that change this process's memory: the tests make those alone that a sandbox refuses or that read and
    // write no more than the bytes above. The memory lives until the call has returned.
    let result = unsafe { libc::syscall(number, a, b, c, d, e, f) };
    let error = std::io::Error::last_os_error();
    if std::process::id() != own {
        // A forked child that the sandbox should have refused must not answer for its parent.
        // SAFETY: it ends the child at once.
        unsafe { libc::_exit(0) }
    }
    drop(memory);
    if result < 0 { error.raw_os_error().unwrap_or(-1) } else { 0 }
}

/// Maps this many bytes and reads one of each 2 MiB, so that the system creates a page table for each. Returns the sum.
pub fn read_mapped(bytes: usize) -> usize {
    const STEP: usize = 2 << 20;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping at a place that the system chooses touches nothing that is there.
    let place = unsafe { libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ, flags, -1, 0) };
    if place == libc::MAP_FAILED {
        return usize::MAX;
    }
    // SAFETY: the mapping is of so many bytes.
    unsafe { libc::madvise(place, bytes, libc::MADV_NOHUGEPAGE) };
    let place = place.cast::<u8>();
    // SAFETY: each place is within the mapping, which may be read.
    (0..bytes).step_by(STEP).map(|at| usize::from(unsafe { place.add(at).read_volatile() })).sum()
}

pub fn crash() -> ! {
    // SAFETY: none: it is the end of the process that the test asks for.
    let byte = unsafe { std::ptr::without_provenance::<u8>(8).read_volatile() };
    std::process::exit(i32::from(byte))
}
