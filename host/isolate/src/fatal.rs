//! The signals of crashes.

use std::ffi::c_int;

/// Invalid memory accesses, illegal instructions, arithmetic errors, `abort`.
pub const FATAL: [c_int; 5] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGABRT];
