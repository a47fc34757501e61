//! Tells the host of a signal that is about to end the process. The host would learn it once the process is no more, and taking
//! one down lasts: where it leaves a core, for as long as all of its memory takes to be written.
//!
//! A handler may call next to nothing: this one writes a byte to the control socket, which has no other use in that direction
//! once the library is open. Then a fault meets what was set before, and a signal that was sent ends the process. A plugin that
//! sets handlers of its own is left to them, and so is a thread that a plugin made without a stack for signals and that has
//! exhausted its own: the host learns of these at the end of the process.

#![expect(unsafe_code, reason = "signal handlers are unsafe by nature")]

use std::ffi::{c_int, c_void};
use std::sync::OnceLock;
use std::{mem, ptr};

use crate::fatal::FATAL;

/// What was done before on each of [`FATAL`]: by Rust's own handler, which tells of exhausted stacks, or by the system.
static FORMER: OnceLock<[libc::sigaction; FATAL.len()]> = OnceLock::new();

/// Has the host, at the other end of the standard input, be told from now on. To be called while nobody else sets handlers.
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
    // SAFETY: writes a byte that lives through the call. Whether it arrives changes nothing: the host sees the end as well.
    unsafe { libc::write(libc::STDIN_FILENO, byte.as_ptr().cast(), byte.len()) };
    // SAFETY: the system gives a valid description.
    let is_sent = unsafe { (*info).si_code } <= 0;
    let place = FATAL.iter().position(|fatal| *fatal == signal);
    let former = place.and_then(|place| FORMER.get()?.get(place)).filter(|_| !is_sent);
    // SAFETY: a `sigaction` of zeros is a valid value: the default action, which ends the process.
    let default = unsafe { mem::zeroed() };
    // SAFETY: what was set before is set again: where the code itself has failed it fails again, and meets it.
    unsafe { libc::sigaction(signal, former.unwrap_or(&default), ptr::null_mut()) };
    if is_sent {
        // SAFETY: what was sent once would not come again. It waits until this handler has returned. Not for Rust's handler: it
        // returns from what is no fault of the stack, for the fault to come again.
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

    /// Ends this process by a fault.
    fn fail(fault: &str) {
        match fault {
            // SAFETY: none: it is the fault that is asked for.
            "read" => drop(unsafe { ptr::without_provenance::<u8>(8).read_volatile() }),
            "abort" => std::process::abort(),
            "stack" => drop(exhaust([1; 64])),
            // SAFETY: sends this thread a signal.
            number => drop(unsafe { libc::raise(number.parse().unwrap()) }),
        }
    }

    /// Runs this test again in a process of its own, which ends by a fault: what it told, and the signal that it ended by.
    fn told_and_ended_by(fault: &str) -> (Vec<u8>, Option<c_int>) {
        let (mut host, control) = UnixStream::pair().unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "inside::signals::tests::signals_are_told_and_then_end_the_process_as_ever"]);
        command.env(FAULT, fault).stdin(OwnedFd::from(control)).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        // With its end of the socket, which is then the child's alone.
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
        // Rust's own handler names the thread whose stack is exhausted, and aborts.
        let both = vec![libc::SIGSEGV as u8, libc::SIGABRT as u8];
        assert_eq!(told_and_ended_by("stack"), (both, Some(libc::SIGABRT)));
        assert_eq!(told_and_ended_by("9"), (vec![], Some(libc::SIGKILL)), "nothing can be told of this one");
    }
}
