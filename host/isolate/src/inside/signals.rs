//! Notifies the host of a fatal signal. Otherwise the host would notice only the end of the process, and writing a core
//! file can delay that by the time that all of its memory takes.
//!
//! A handler may call hardly anything: this one writes a byte to the control socket, which is otherwise unused in that
//! direction once the library is open. Then the previous action is restored: a fault recurs and meets it, and a sent
//! signal ends the process. The host learns only at the end of the process if a plugin sets its own handlers, or if a
//! plugin's thread without a signal stack overflows its stack.

#![expect(unsafe_code, reason = "signal handlers are unsafe by nature")]

use std::ffi::{c_int, c_void};
use std::sync::OnceLock;
use std::{mem, ptr};

use crate::fatal::FATAL;

/// The previous actions for [`FATAL`]: those of Rust's own handler, which reports stack overflows, or of the system.
static FORMER: OnceLock<[libc::sigaction; FATAL.len()]> = OnceLock::new();

/// Installs the handlers. The socket is the standard input. No other thread may set handlers meanwhile.
pub fn tell_before_the_end() {
    // SAFETY: a `sigaction` of zeros is a valid value: the default action with no flags and an empty mask.
    let (mut former, mut action): ([libc::sigaction; FATAL.len()], libc::sigaction) = unsafe { mem::zeroed() };
    for (signal, former) in FATAL.into_iter().zip(&mut former) {
        // SAFETY: the pointer is to a value that lives through the call; no action is set.
        unsafe { libc::sigaction(signal, ptr::null(), former) };
    }
    if FORMER.set(former).is_err() {
        return;
    }
    action.sa_sigaction = on_fatal as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    for signal in FATAL {
        // SAFETY: the handler has the signature that SA_SIGINFO asks for, and calls only what a handler may call.
        unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) };
    }
}

extern "C" fn on_fatal(signal: c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
    let byte = [signal as u8];
    // SAFETY: writes a byte that lives through the call. A failed write is ignored: the host also sees the end.
    unsafe { libc::write(libc::STDIN_FILENO, byte.as_ptr().cast(), byte.len()) };
    // SAFETY: the system gives a valid description.
    let is_sent = unsafe { (*info).si_code } <= 0;
    let place = FATAL.iter().position(|fatal| *fatal == signal);
    let former = place.and_then(|place| FORMER.get()?.get(place)).filter(|_| !is_sent);
    // SAFETY: a `sigaction` of zeros is a valid value: the default action, which ends the process.
    let default = unsafe { mem::zeroed() };
    // SAFETY: restores the previous action; a fault of the code recurs and meets it.
    unsafe { libc::sigaction(signal, former.unwrap_or(&default), ptr::null_mut()) };
    if is_sent {
        // SAFETY: a sent signal would not recur, so it is raised again and stays pending until this handler returns. Not
        // for Rust's handler, which returns if the fault is no stack overflow, so that the fault recurs.
        unsafe { libc::raise(signal) };
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, Stdio};

    use super::*;

    const FAULT: &str = "OUTRIGGER_TEST_FAULT";

    #[expect(unconditional_recursion, reason = "it is to exhaust the stack")]
    fn exhaust(numbers: [u64; 64]) -> u64 {
        std::hint::black_box(exhaust(std::hint::black_box(numbers)) + numbers[0])
    }

    fn fail(fault: &str) {
        match fault {
            // SAFETY: none: this is the intended fault.
            "read" => drop(unsafe { ptr::without_provenance::<u8>(8).read_volatile() }),
            "abort" => std::process::abort(),
            "stack" => drop(exhaust([1; 64])),
            // SAFETY: sends this thread a signal.
            number => drop(unsafe { libc::raise(number.parse().unwrap()) }),
        }
    }

    /// Runs this test in a process of its own that crashes. Returns the bytes on its socket, and its signal.
    fn told_and_ended_by(fault: &str) -> (Vec<u8>, Option<c_int>) {
        let (mut host, control) = UnixStream::pair().unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "inside::signals::tests::signals_are_told_and_then_end_the_process_as_ever"]);
        command.env(FAULT, fault).stdin(OwnedFd::from(control)).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        // Also closes the parent's copy of the child's socket.
        drop(command);
        let mut told = Vec::new();
        host.read_to_end(&mut told).unwrap();
        (told, child.wait().unwrap().signal())
    }

    #[test]
    fn signals_are_told_and_then_end_the_process_as_ever() {
        if let Ok(fault) = std::env::var(FAULT) {
            tell_before_the_end();
            return fail(&fault);
        }
        let once =
            |fault: &str, signal: c_int| assert_eq!(told_and_ended_by(fault), (vec![signal as u8], Some(signal)));
        once("read", libc::SIGSEGV);
        once("abort", libc::SIGABRT);
        FATAL.into_iter().for_each(|signal| once(&signal.to_string(), signal));
        // Rust's own handler names the thread whose stack overflowed, and aborts.
        let both = vec![libc::SIGSEGV as u8, libc::SIGABRT as u8];
        assert_eq!(told_and_ended_by("stack"), (both, Some(libc::SIGABRT)));
        assert_eq!(told_and_ended_by("9"), (vec![], Some(libc::SIGKILL)), "nothing can be told of this one");
    }
}
