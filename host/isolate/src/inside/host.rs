//! The host table in a runner: each function sends a message.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

use outrigger_abi::{
    ErrorKind, ExportedService, HostCode, HostTable, OwnedBytes, PluginTable, Response, STATUS_OK, ServiceTable,
    UsedPlugin, host_table,
};
use outrigger_service::json::Json;
use parking_lot::{Condvar, Mutex};

use crate::body::{DiscardedBody, Message};
use crate::channel::Channel;
use crate::frame::{FrameError, Head, INLINE, INTERNAL_ERROR, Kind, place_of};
use crate::greeting::Begin;

thread_local! {
    /// The channel of a thread that runs functions of the plugin for the host.
    static CHANNEL: RefCell<Option<Channel>> = const { RefCell::new(None) };
    /// The token of the inline call that this thread runs.
    static INLINE_CALL: Cell<Option<u64>> = const { Cell::new(None) };
    /// That call's answer, sent when its function returns.
    static HELD: RefCell<Option<(Head, OwnedBytes)>> = const { RefCell::new(None) };
}

/// The state of the process, shared by its threads.
pub struct Inside {
    pub(super) table: &'static PluginTable,
    pub(super) host_table: OnceLock<HostTable>,
    pub(super) instance: OnceLock<UsedPlugin>,
    services: OnceLock<HashMap<String, ExportedService>>,
    /// The calls that were neither answered nor cancelled.
    open: Mutex<HashSet<u64>>,
    /// Idle channels for threads that the plugin started.
    own: Mutex<Vec<Channel>>,
    /// Notified when a channel is added to `own`.
    returned: Condvar,
}

impl Inside {
    /// Allocates the state, which lives as long as the process.
    pub fn new(table: &'static PluginTable) -> &'static Self {
        Box::leak(Box::new(Self {
            table,
            host_table: OnceLock::new(),
            instance: OnceLock::new(),
            services: OnceLock::new(),
            open: Mutex::default(),
            own: Mutex::default(),
            returned: Condvar::new(),
        }))
    }

    pub fn add_own(&self, channel: Channel) {
        self.own.lock().push(channel);
        self.returned.notify_one();
    }

    /// The host table for the plugin's instance.
    pub(super) fn host(&'static self, begin: &Begin) -> &'static HostTable {
        let service = |(place, (name, count)): (usize, &(String, usize))| {
            let ask = move |index, scope, request: &[u8]| {
                let head = Head { token: scope, place: place_of(place, index), ..Head::new(Kind::Ask) };
                let (status, bytes) = self.ask(head, request);
                Response { status, bytes: bytes.into() }
            };
            (name.clone(), ExportedService::of(*count, ask))
        };
        self.services.get_or_init(|| begin.services.iter().enumerate().map(service).collect());
        self.host_table.get_or_init(|| host_table(self))
    }

    /// Runs the functions that the host calls on a channel, on this thread. Never returns.
    pub fn serve(&'static self, channel: Channel) {
        CHANNEL.with_borrow_mut(|own| *own = Some(channel));
        loop {
            let (head, body) = self.on_channel(|channel| channel.receive(usize::MAX));
            INLINE_CALL.set((head.kind == Kind::Call && head.code & INLINE != 0).then_some(head.token));
            let (status, reason) = match body {
                Ok(body) => self.run(&head, &body),
                Err(discarded) => (ErrorKind::Refused as i32, discarded.to_string().into_bytes().into()),
            };
            INLINE_CALL.set(None);
            let returned = Head { token: head.token, code: status, ..Head::new(Kind::Returned) };
            match HELD.take() {
                Some((reply, answer)) if status == STATUS_OK => {
                    self.answer(Head { kind: Kind::Done, ..reply }, &answer)
                }
                held => {
                    if let Some((reply, answer)) = held {
                        self.answer(reply, &answer);
                    }
                    self.on_channel(|channel| channel.send(returned, &[&reason]));
                }
            }
        }
    }

    pub(super) fn open(&self, token: u64) {
        self.open.lock().insert(token);
    }

    /// Closes a call. Returns whether it was open.
    pub(super) fn close(&self, token: u64) -> bool {
        self.open.lock().remove(&token)
    }

    fn ask(&self, head: Head, body: &[u8]) -> (i32, Vec<u8>) {
        let refused = |len| Ok((ErrorKind::Refused as i32, DiscardedBody { len }.to_string().into_bytes()));
        self.on_channel(|channel| match channel.send(head, &[body]).and_then(|()| answer(channel)) {
            Ok((Head { code, .. }, Ok(bytes))) => Ok((code, bytes)),
            Ok((_, Err(DiscardedBody { len }))) | Err(FrameError::TooLong { len }) => refused(len),
            Err(error) => Err(error),
        })
    }

    fn answer(&self, head: Head, body: &[u8]) {
        self.on_channel(|channel| match channel.send(head, &[body]) {
            Err(FrameError::TooLong { len }) => {
                channel.send(Head { code: INTERNAL_ERROR, ..head }, &[&DiscardedBody { len }.as_answer()])
            }
            sent => sent,
        });
    }

    /// Runs `work` on this thread's channel. A thread without a channel waits for an idle shared one. The process ends if
    /// its host is gone.
    fn on_channel<T>(&self, mut work: impl FnMut(&mut Channel) -> Result<T, FrameError>) -> T {
        let gone = |_| std::process::exit(0);
        // On a thread that is ending, the thread-local may be destroyed already.
        let own = CHANNEL.try_with(|own| own.borrow_mut().as_mut().map(&mut work));
        if let Some(done) = own.ok().flatten() {
            return done.unwrap_or_else(gone);
        }
        let mut channel = {
            let mut own = self.own.lock();
            loop {
                match own.pop() {
                    Some(channel) => break channel,
                    None => self.returned.wait(&mut own),
                }
            }
        };
        let done = work(&mut channel).unwrap_or_else(gone);
        self.add_own(channel);
        done
    }
}

/// Waits for the answer of a service.
fn answer(channel: &mut Channel) -> Result<Message, FrameError> {
    match channel.receive(usize::MAX)? {
        answer if answer.0.kind == Kind::Answer => Ok(answer),
        (head, _) => Err(FrameError::OutOfTurn(head.kind)),
    }
}

impl HostCode for Inside {
    type Json = Json;

    fn service(&self, name: &[u8]) -> *const ServiceTable {
        let name = std::str::from_utf8(name).ok();
        let service = name.and_then(|name| self.services.get()?.get(name));
        service.map_or(std::ptr::null(), ExportedService::table)
    }

    fn reply(&self, token: u64, code: i32, body: OwnedBytes) -> i32 {
        let head = Head { token, code, ..Head::new(Kind::Reply) };
        if self.close(token) {
            match INLINE_CALL.try_with(|call| call.get() == Some(token)) {
                Ok(true) => HELD.set(Some((head, body))),
                _ => self.answer(head, &body),
            }
            return STATUS_OK;
        }
        // The host counts and classifies answers to closed calls.
        self.ask(Head { extra: 1, ..head }, &body).0
    }

    fn is_wanted(&self, token: u64) -> bool {
        self.open.lock().contains(&token)
    }
}

/// The status for an unknown function.
pub(super) const UNKNOWN: i32 = ErrorKind::Unsupported as i32;
