//! The host, as the plugin finds it in a runner: each of its functions is a message.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use outrigger_abi::{
    ErrorKind, Forward, ForwardedService, HostCode, HostTable, OwnedBytes, PluginTable, Response, STATUS_OK,
    ServiceTable, UsedPlugin, host_table,
};
use parking_lot::{Condvar, Mutex};

use super::lane::RunnerLane;
use super::told;
use crate::body::{Body, Left};
use crate::frame::{FrameError, Head, INTERNAL_ERROR, Kind, place_of};
use crate::greeting::Begin;

thread_local! {
    /// The lane of a thread that runs a function of the plugin for the host.
    static LANE: RefCell<Option<RunnerLane>> = const { RefCell::new(None) };
}

/// The process, as its threads share it.
pub struct Inside {
    pub(super) table: &'static PluginTable,
    pub(super) host_table: OnceLock<HostTable>,
    pub(super) instance: OnceLock<UsedPlugin>,
    services: OnceLock<HashMap<String, ForwardedService<Remote>>>,
    /// The calls that have come, and were neither answered nor given up.
    open: Mutex<HashSet<u64>>,
    /// Lanes for threads of the plugin's own.
    own: Mutex<Vec<RunnerLane>>,
    given_back: Condvar,
    /// The highest number of what the plugin was told.
    seen: AtomicU64,
}

/// One service of the host.
struct Remote {
    inside: &'static Inside,
    place: usize,
}

impl Forward for Remote {
    fn ask(&self, index: usize, scope: u64, request: &[u8]) -> Response {
        let (place, seen) = (place_of(self.place, index), self.inside.seen.load(Ordering::SeqCst));
        if let Some(known) = told::take(place, scope, request, seen) {
            self.inside.learned(known.number);
            return Response { status: known.status, bytes: known.bytes.into() };
        }
        let head = Head { token: scope, place, ..Head::new(Kind::Ask) };
        let (status, bytes) = self.inside.ask(head, request);
        Response { status, bytes: bytes.into() }
    }
}

impl Inside {
    /// A process with this plugin. It lasts as long as the process.
    pub fn new(table: &'static PluginTable) -> &'static Self {
        Box::leak(Box::new(Self {
            table,
            host_table: OnceLock::new(),
            instance: OnceLock::new(),
            services: OnceLock::new(),
            open: Mutex::default(),
            own: Mutex::default(),
            given_back: Condvar::new(),
            seen: AtomicU64::new(0),
        }))
    }

    /// A lane for threads of the plugin's own.
    pub fn add_own(&self, lane: RunnerLane) {
        self.own.lock().push(lane);
        self.given_back.notify_one();
    }

    /// What the plugin's instance gets as its host.
    pub(super) fn host(&'static self, begin: &Begin) -> &'static HostTable {
        let service = |(place, (name, count)): (usize, &(String, usize))| {
            (name.clone(), ForwardedService::new(Arc::new(Remote { inside: self, place }), *count))
        };
        self.services.get_or_init(|| begin.services.iter().enumerate().map(service).collect());
        self.host_table.get_or_init(|| host_table(self))
    }

    /// Serves one lane on this thread, for as long as the process is there.
    pub fn serve(&'static self, lane: RunnerLane) {
        LANE.with_borrow_mut(|own| *own = Some(lane));
        loop {
            let received = on_own_lane(|lane| Ok((lane.next()?, lane.answer_waits()))).unwrap_or(Err(out_of_turn()));
            let ((head, body), is_timed) = received.unwrap_or_else(|error| gone(&error));
            let began = is_timed.then(Instant::now);
            let (status, reason) = match body {
                Ok(body) => self.run(&head, &body),
                Err(left) => (ErrorKind::Refused as i32, left.to_string().into_bytes().into()),
            };
            let took = began.map(|began| began.elapsed()).unwrap_or_default();
            let told = on_own_lane(|lane| lane.returned(head.token, status, took, &reason));
            told.unwrap_or(Err(out_of_turn())).unwrap_or_else(|error| gone(&error));
        }
    }

    /// A call has come.
    pub(super) fn open(&self, token: u64) {
        self.open.lock().insert(token);
    }

    /// Nobody waits for a call any more. Whether somebody did.
    pub(super) fn close(&self, token: u64) -> bool {
        self.open.lock().remove(&token)
    }

    /// The plugin gets to know what has this number.
    pub(super) fn learned(&self, number: u64) {
        self.seen.fetch_max(number, Ordering::SeqCst);
    }

    /// Asks the host on the lane of this thread, or on one of those for threads that have none.
    fn ask(&self, head: Head, body: &[u8]) -> (i32, Body) {
        self.on_any_lane(|lane| match lane.ask(head, body) {
            Ok((Head { code, extra, .. }, bytes)) => {
                self.learned(extra);
                Ok(bytes.map_or((ErrorKind::Refused as i32, Body::default()), |bytes| (code, bytes)))
            }
            Err(FrameError::TooLong { .. }) => Ok((ErrorKind::Refused as i32, Body::default())),
            Err(error) => Err(error),
        })
    }

    /// Sends an answer that somebody waits for.
    fn answer(&self, head: Head, body: &[u8]) {
        self.on_any_lane(|lane| match lane.answer(head, body) {
            Err(FrameError::TooLong { len }) => {
                lane.answer(Head { code: INTERNAL_ERROR, ..head }, &Left { len }.of_answer())
            }
            sent => sent,
        });
    }

    fn on_any_lane<T>(&self, mut work: impl FnMut(&mut RunnerLane) -> Result<T, FrameError>) -> T {
        if let Some(done) = on_own_lane(&mut work) {
            return done.unwrap_or_else(|error| gone(&error));
        }
        let mut lane = {
            let mut own = self.own.lock();
            loop {
                match own.pop() {
                    Some(lane) => break lane,
                    None => self.given_back.wait(&mut own),
                }
            }
        };
        let done = work(&mut lane).unwrap_or_else(|error| gone(&error));
        self.add_own(lane);
        done
    }
}

/// Does something with the lane of this thread, where it has one.
fn on_own_lane<T>(work: impl FnOnce(&mut RunnerLane) -> T) -> Option<T> {
    // The thread-local is gone while a thread of the plugin's ends.
    LANE.try_with(|own| own.borrow_mut().as_mut().map(work)).ok().flatten()
}

fn out_of_turn() -> FrameError {
    FrameError::OutOfTurn(Kind::Returned)
}

/// Without its host the process has nothing to do. Where it has only ended a lane, the process is at its end already, by a signal
/// that is to be seen.
fn gone(error: &FrameError) -> ! {
    if matches!(error, FrameError::Closed) {
        loop {
            std::thread::park();
        }
    }
    std::process::exit(0)
}

impl HostCode for Inside {
    fn service(&self, name: &[u8]) -> *const ServiceTable {
        let name = std::str::from_utf8(name).ok();
        let service = name.and_then(|name| self.services.get()?.get(name));
        service.map_or(std::ptr::null(), ForwardedService::table)
    }

    fn reply(&self, token: u64, code: i32, body: OwnedBytes) -> i32 {
        let head = Head { token, code, ..Head::new(Kind::Reply) };
        if self.close(token) {
            self.answer(head, &body);
            return STATUS_OK;
        }
        // The host counts answers that nobody waits for, and says what they are.
        self.ask(Head { extra: 1, ..head }, &body).0
    }

    fn is_wanted(&self, token: u64) -> bool {
        self.open.lock().contains(&token)
    }
}

/// What a function that there is not answers.
pub(super) const UNKNOWN: i32 = ErrorKind::Unsupported as i32;
