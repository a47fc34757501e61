//! An instance in the hands of a checker: every function of its table can be called at any moment that the ABI allows, and
//! the host that it sees is a strict one ([`StrictHost`]).
//!
//! A running host has `Instance` of the crate of plugins, which does what is usual and mends what a plugin breaks. Here
//! nothing is mended.
#![allow(unsafe_code)]

mod host;
mod recording_proxy;

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};

use outrigger_abi::{Bytes, CallFrame, OwnedBytes, PluginTable, STATUS_OK};

pub use host::{Answer, CallName, Fault, StrictHost};
use host::{BEYOND, LongFrame};
pub use recording_proxy::Offer;

/// What lent memory is overwritten with when it is taken back.
const TAKEN_BACK: u8 = 0xa5;

/// How long calls may take as their frames say, in milliseconds.
const DEADLINE_MS: u64 = 60_000;

/// The plugin's code that is about to run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entry<'a> {
    /// `create`
    Create,
    /// `init`
    Init,
    /// `start`
    Start,
    /// `call`
    Call {
        /// The method.
        method: &'a str,
        /// Its arguments.
        arguments: &'a str,
    },
    /// `cancel`
    Cancel {
        /// The method of the call.
        method: &'a str,
        /// Its arguments.
        arguments: &'a str,
    },
    /// `event`
    Event,
    /// `quiesce`
    Quiesce,
    /// `stop`
    Stop,
    /// `destroy`
    Destroy,
}

/// Is told on each thread before the plugin's code is entered and after it was left.
pub trait Watch: Send + Sync {
    /// It is entered.
    fn enter(&self, entry: Entry<'_>);
    /// It was left.
    fn leave(&self);
}

/// Why an instance did not come up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// The function that refused.
    pub function: &'static str,
    /// Its status.
    pub status: i32,
    /// The reason it wrote.
    pub reason: String,
}

/// An instance that was started, and not stopped.
pub struct Probe<'a> {
    table: &'static PluginTable,
    handle: *mut c_void,
    /// The host that it sees.
    pub host: &'static StrictHost,
    watch: &'a dyn Watch,
    quiesced: AtomicBool,
}

// SAFETY: the ABI demands that a plugin's functions may be called from any thread.
unsafe impl Send for Probe<'_> {}
// SAFETY: as above.
unsafe impl Sync for Probe<'_> {}

/// Memory that is lent for the time of one function and overwritten afterwards, so that a plugin that keeps a pointer into it
/// reads what nobody wrote there.
struct BorrowedBytes(Vec<u8>);

impl BorrowedBytes {
    fn new(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }

    fn bytes(&self) -> Bytes {
        Bytes::lend(&self.0)
    }

    fn take_back(mut self) {
        self.0.fill(TAKEN_BACK);
        // Kept from being optimised away: the plugin may look.
        std::hint::black_box(&self.0);
    }
}

impl<'a> Probe<'a> {
    /// Makes an instance of an opened plugin and brings it up. One that refuses is taken down as a host does it.
    ///
    /// # Errors
    /// What it refused, and why.
    pub fn bring_up(
        table: &'static PluginTable,
        host: &'static StrictHost,
        options: &str,
        watch: &'a dyn Watch,
    ) -> Result<Self, Refusal> {
        watch.enter(Entry::Create);
        // SAFETY: `create` takes nothing and may be called on any thread.
        let handle = table.create.map_or(std::ptr::null_mut(), |create| unsafe { create() });
        watch.leave();
        if handle.is_null() {
            return Err(Refusal { function: "create", status: 0, reason: "it gave no instance".to_owned() });
        }
        let probe = Self { table, handle, host, watch, quiesced: AtomicBool::new(false) };
        match probe.init(options) {
            Ok(()) => Ok(probe),
            Err(refusal) => {
                // What `stop` says of an instance that did not come up is of no interest.
                probe.take_down();
                Err(refusal)
            }
        }
    }

    fn init(&self, options: &str) -> Result<(), Refusal> {
        let lent = BorrowedBytes::new(options.as_bytes());
        let mut error = OwnedBytes::EMPTY;
        let status = self.inside(Entry::Init, self.table.init, |init| {
            // SAFETY: a fresh handle of this table; the host is never freed, the options outlive the call, and `error` can
            // be written.
            unsafe { init(self.handle, self.host.table(), lent.bytes(), &mut error) }
        });
        lent.take_back();
        check("init", status, &error)?;
        let mut error = OwnedBytes::EMPTY;
        let status = self.inside(Entry::Start, self.table.start, |start| {
            // SAFETY: `init` succeeded.
            unsafe { start(self.handle, &mut error) }
        });
        check("start", status, &error)
    }

    /// Runs a function of the table; one that may be missing and is counts as done.
    fn inside<F>(&self, entry: Entry<'_>, function: Option<F>, run: impl FnOnce(F) -> i32) -> i32 {
        self.watch.enter(entry);
        let status = function.map_or(STATUS_OK, run);
        self.watch.leave();
        status
    }

    /// Makes a call, and gives its token. A fault is noted.
    pub fn call(&self, method: &str, arguments: &str) -> u64 {
        let token = self.host.open(method, arguments);
        self.call_as(token, method, arguments);
        token
    }

    /// Makes a call whose token was opened before.
    pub fn call_as(&self, token: u64, method: &str, arguments: &str) {
        let (lent_method, lent_arguments) =
            (BorrowedBytes::new(method.as_bytes()), BorrowedBytes::new(arguments.as_bytes()));
        let long = LongFrame {
            frame: CallFrame {
                struct_size: self.host.frame_size(),
                token,
                method: lent_method.bytes(),
                params: lent_arguments.bytes(),
                deadline_ms: DEADLINE_MS,
            },
            beyond: [usize::MAX; BEYOND],
        };
        self.host.begin(token);
        let status = self.inside(Entry::Call { method, arguments }, self.table.call, |call| {
            // SAFETY: the instance is started and is not ended while it is borrowed; the frame outlives the call.
            unsafe { call(self.handle, (&raw const long).cast()) }
        });
        self.host.end_call(token, (status != STATUS_OK).then_some(status));
        lent_method.take_back();
        lent_arguments.take_back();
    }

    /// Tells the plugin that nobody waits for a call any more.
    pub fn cancel(&self, token: u64, method: &str, arguments: &str) {
        self.host.give_up(token);
        let status = self.inside(Entry::Cancel { method, arguments }, self.table.cancel, |cancel| {
            // SAFETY: as in `call_as`.
            unsafe { cancel(self.handle, token) }
        });
        if status != STATUS_OK {
            self.host.note_call(token, format!("cancel ended in a fault of the plugin (status {status})"));
        }
    }

    /// Tells the plugin of an event.
    pub fn event(&self, event: &[u8], name: &str) {
        let lent = BorrowedBytes::new(event);
        let status = self.inside(Entry::Event, self.table.event, |deliver| {
            // SAFETY: as in `call_as`; the bytes outlive it.
            unsafe { deliver(self.handle, lent.bytes()) }
        });
        lent.take_back();
        if status != STATUS_OK {
            self.host.note(None, format!("the event {name} ended in a fault of the plugin (status {status})"));
        }
    }

    /// Asks the plugin to answer what it keeps. Only the first time: it is asked once.
    pub fn quiesce(&self) {
        if self.quiesced.swap(true, Ordering::SeqCst) {
            return;
        }
        // SAFETY: as in `call_as`.
        let status = self.inside(Entry::Quiesce, self.table.quiesce, |quiesce| unsafe { quiesce(self.handle) });
        if status != STATUS_OK {
            self.host.note(None, format!("quiesce ended in a fault of the plugin (status {status})"));
        }
    }

    /// Stops the instance and frees it.
    pub fn end(self) {
        let host = self.host;
        let status = self.take_down();
        if status != STATUS_OK {
            host.note(None, format!("stop ended in a fault of the plugin (status {status})"));
        }
    }

    fn take_down(self) -> i32 {
        // SAFETY: the instance is owned here, so nobody is inside, and it is used no more.
        let status = self.inside(Entry::Stop, self.table.stop, |stop| unsafe { stop(self.handle) });
        self.host.end();
        self.inside(Entry::Destroy, self.table.destroy, |destroy| {
            // SAFETY: as above, and after `stop`.
            unsafe { destroy(self.handle) };
            STATUS_OK
        });
        status
    }
}

fn check(function: &'static str, status: i32, error: &[u8]) -> Result<(), Refusal> {
    if status == STATUS_OK {
        return Ok(());
    }
    Err(Refusal { function, status, reason: String::from_utf8_lossy(error).into_owned() })
}
