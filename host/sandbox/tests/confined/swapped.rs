//! A process that changes pointed-to memory while the host reads it. The host must use only checked arguments.
#![allow(unsafe_code)]

use std::fs;
use std::io::Read;
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};

use outrigger_sandbox::{Plan, Reach};

use super::attempts::say;

/// The fewest and the most tries. In between, they stop once one was granted and one was denied.
const TRIES: std::ops::Range<usize> = 1_000..1_000_000;

struct Shared<const N: usize>([AtomicU8; N]);

impl<const N: usize> Shared<N> {
    fn new(text: &[u8]) -> Self {
        Self(std::array::from_fn(|at| AtomicU8::new(text.get(at).copied().unwrap_or(0))))
    }

    fn set(&self, text: &[u8]) {
        for (to, from) in self.0.iter().zip(text.iter().chain(std::iter::repeat(&0))) {
            to.store(*from, Ordering::Relaxed);
        }
    }

    fn pointer(&self) -> *const u8 {
        self.0.as_ptr().cast()
    }
}

/// The outcome of a try with changing bytes.
enum Tried {
    Done,
    Refused,
    /// The bytes changed during a read, and are invalid.
    Neither,
}

impl Tried {
    fn of(done: bool) -> Self {
        match std::io::Error::last_os_error().raw_os_error() {
            _ if done => Self::Done,
            Some(libc::EPERM) => Self::Refused,
            _ => Self::Neither,
        }
    }
}

/// Repeats an action while another thread swaps the bytes.
fn while_changing<const N: usize>(shared: &Shared<N>, texts: [&[u8]; 2], mut run: impl FnMut() -> Tried) {
    let ended = AtomicBool::new(false);
    let turns = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                let turn = turns.fetch_add(1, Ordering::Relaxed);
                shared.set(texts[turn % 2]);
                (0..turn % 997).for_each(|_| std::hint::spin_loop());
            }
        });
        let mut met = [false; 2];
        for at in 0..TRIES.end {
            match run() {
                Tried::Done => met[0] = true,
                Tried::Refused => met[1] = true,
                Tried::Neither => {}
            }
            if met == [true; 2] && at >= TRIES.start {
                break;
            }
        }
        ended.store(true, Ordering::Relaxed);
    });
}

/// `secret` is beside the granted folder, which has `file`. Another server listens on the granted port `^ 1`.
pub fn run(plan: &Plan) {
    for reach in &plan.reach {
        match reach {
            Reach::Read(folder) => {
                let texts = [folder.join("file"), folder.with_file_name("secret")]
                    .map(|path| path.to_str().unwrap().to_owned());
                let shared = Shared::<256>::new(texts[0].as_bytes());
                let (mut opened, mut secrets) = (0, 0);
                while_changing(&shared, [texts[0].as_bytes(), texts[1].as_bytes()], || {
                    // SAFETY: the other thread never writes the last byte, so the bytes always end with a zero.
                    let number = unsafe { libc::open(shared.pointer().cast(), libc::O_RDONLY | libc::O_CLOEXEC) };
                    let tried = Tried::of(number >= 0);
                    if number >= 0 {
                        let mut text = String::new();
                        // SAFETY: the system has just made the descriptor for us.
                        let mut file = fs::File::from(unsafe { OwnedFd::from_raw_fd(number) });
                        file.read_to_string(&mut text).unwrap();
                        opened += i32::from(text == "text");
                        secrets += i32::from(text != "text");
                    }
                    tried
                });
                say("opened", i32::from(opened == 0));
                say("secrets", secrets);
            }
            Reach::Tcp(address) => {
                let at = |port: u16| [&2u16.to_ne_bytes()[..], &port.to_be_bytes(), &[127, 0, 0, 1], &[0; 8]].concat();
                let texts = [at(address.port()), at(address.port() ^ 1)];
                let shared = Shared::<16>::new(&texts[0]);
                let mut connected = 0;
                while_changing(&shared, [&texts[0], &texts[1]], || {
                    // SAFETY: the address has 16 bytes, whatever they are; the descriptor is ours.
                    unsafe {
                        let number = libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0);
                        let result = libc::connect(number, shared.pointer().cast(), 16);
                        let tried = Tried::of(result == 0);
                        connected += i32::from(result == 0);
                        libc::close(number);
                        tried
                    }
                });
                say("connected", i32::from(connected == 0));
            }
            _ => {}
        }
    }
}
