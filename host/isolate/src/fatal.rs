//! The signals that the faults of code end a process by.

use std::ffi::c_int;

/// These: wild and misaligned accesses, instructions that are none, divisions by zero, `abort`.
pub const FATAL: [c_int; 5] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGABRT];
