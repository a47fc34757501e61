//! One runner, as the host sees it: its process, its lanes, and the calls that it has.

mod calls;
mod lanes;

use std::ffi::c_int;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use self::lanes::{Entry, Lanes, MAX_ENTRIES, Shared, Taken};
use outrigger_abi::{ErrorKind, HostHandle, OwnedBytes, RawService, Response, STATUS_OK};
use outrigger_base::contain::contain;
use parking_lot::Mutex;

use crate::ahead::Ahead;
use crate::body::{Body, Left, Received};
use crate::budget::Budget;
use crate::cgroup::Group;
use crate::fatal::FATAL;
use crate::frame::{FrameError, Head, INTERNAL_ERROR, Kind, function_at, place_of};
use crate::greeting::Hello;
use crate::lane::Lane;
use crate::launch::{Launch, Transport};
use crate::memory::LANES;
use crate::open::OpenCalls;
use crate::output;
use crate::passing::{self, Parcel, Purpose, Way};
use crate::process::{Process, Sign};
use crate::socket::SocketLane;
use crate::status::Ending;
use crate::usage::{self, Bounds, Excess, Watch};
use crate::watch;
use outrigger_sandbox::Notifier;

/// How many threads of the plugin's own can ask the host at a time.
const OWN_LANES: usize = 4;
const _: () = assert!(MAX_ENTRIES + OWN_LANES <= LANES);

/// How long a runner may take to open its library.
const READY_PATIENCE: Duration = Duration::from_secs(30);

/// How long it may take to free its instance.
const DESTROY_PATIENCE: Duration = Duration::from_secs(1);

/// How long a process may take to end by itself once one of its lanes has broken: what runs at its exit closes them first.
const EXIT_PATIENCE: Duration = Duration::from_millis(250);

/// The longest request of a service, in bytes.
const MAX_REQUEST: usize = 64 << 20;

/// How much memory the long messages of one runner may take at a time in the host, in bytes.
const LONG_MESSAGES: usize = 256 << 20;

/// The longest message of a runner that is not up yet, in bytes, and how much of a reason is told.
const MAX_GREETING: usize = 64 << 10;
const MAX_REASON: usize = 1000;

/// The host, as its runners reach it: what the plugin's instance was given.
pub struct Backend {
    /// Where answers go.
    pub host: HostHandle,
    /// The granted services, by name.
    pub services: Vec<(String, RawService)>,
}

impl Backend {
    /// Where the functions of the granted services are.
    fn places(&self, functions: &[(&str, usize)]) -> Vec<u32> {
        let place = |(name, index): &(&str, usize)| {
            let service = self.services.iter().position(|(granted, _)| granted == name)?;
            Some(place_of(service, *index))
        };
        functions.iter().filter_map(place).collect()
    }

    fn ask(&self, head: &Head, request: &[u8]) -> Response {
        let (service, function) = function_at(head.place);
        let service = self.services.get(service).map_or(&RawService::NOT_GRANTED, |(_, service)| service);
        service.call(function, head.token, request)
    }
}

/// The runner has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gone {
    /// Whether it may have begun what it was sent.
    pub begun: bool,
}

/// What a plugin says of why it refuses, as it is told.
pub fn reason_of(bytes: &[u8]) -> String {
    output::printable(bytes.get(..MAX_REASON).unwrap_or(bytes))
}

/// A runner.
pub struct Runner {
    plugin: String,
    /// Its process.
    pub process: Arc<Process>,
    control: Mutex<Option<UnixStream>>,
    /// None where the lanes are sockets alone.
    shared: Option<Shared>,
    lanes: Lanes,
    /// How many lanes there are, of both purposes.
    places: AtomicU8,
    budget: Arc<Budget>,
    /// The calls that it has.
    pub open: OpenCalls,
    ahead: Ahead,
    has_answered: AtomicBool,
    gone: AtomicBool,
    /// When the first of its lanes broke.
    broken: OnceLock<Instant>,
    /// By when the function that has a bound must have returned.
    due: Mutex<Option<Instant>>,
    /// Answers for what it may not do by itself.
    _notifier: Option<Notifier>,
    backend: Arc<Backend>,
    max_answer: usize,
}

impl Runner {
    /// Starts a process in this control group, and waits until it has opened the library. The calling thread must outlive it: the
    /// system ends a runner with the thread that started it.
    ///
    /// # Errors
    /// Why it did not come so far.
    pub fn spawn(launch: &Launch, backend: &Arc<Backend>, group: Option<&Group>) -> Result<(Arc<Self>, Child), String> {
        let system = |error: std::io::Error| error.to_string();
        let (control, theirs) = UnixStream::pair().map_err(system)?;
        let (out, written) = std::io::pipe().map_err(system)?;
        let mut command = launch.executable.command(&launch.plugin).map_err(system)?;
        command.stdin(Stdio::from(OwnedFd::from(theirs)));
        command.stdout(Stdio::from(written.try_clone().map_err(system)?)).stderr(Stdio::from(written));
        let mut child = command.spawn().map_err(system)?;
        // Its ends of the sockets are the child's alone from here on.
        drop(command);
        let plugin = launch.plugin.clone();
        let copy = move || {
            contain("copying what a runner writes", || output::copy(&plugin, out));
        };
        let started = std::thread::Builder::new().name(format!("output-{}", launch.plugin)).spawn(copy);
        // Before it is told what to run: what it uses from there on is bounded.
        let grouped = group.map_or(Ok(()), |group| group.take(child.id()).map_err(|error| error.to_string()));
        let outcome = started.map_err(system).and(grouped).and_then(|()| Self::meet(launch, backend, &child, control));
        match outcome {
            Ok(runner) => Ok((runner, child)),
            Err(reason) => {
                let _ = child.kill();
                // What the kill above ended says nothing more.
                let ended = child.wait().map(Ending::from).ok().filter(|ended| *ended != Ending::Signal(libc::SIGKILL));
                Err(match ended {
                    Some(ended) => format!("{reason} ({ended})"),
                    None => reason,
                })
            }
        }
    }

    /// Tells a fresh process what to run, and waits until it is ready.
    fn meet(launch: &Launch, backend: &Arc<Backend>, child: &Child, control: UnixStream) -> Result<Arc<Self>, String> {
        let process = Arc::new(Process::of(child).map_err(|error| error.to_string())?);
        let until = Instant::now() + READY_PATIENCE;
        control.set_read_timeout(Some(READY_PATIENCE)).map_err(|error| error.to_string())?;
        let plan = watch::plan(launch)?;
        let sandbox = plan.clone().map(|plan| (plan, watch::support().clone()));
        let hello = Hello { host: std::process::id(), library: launch.library.clone(), sandbox };
        let hello = serde_json::to_vec(&hello).map_err(|error| error.to_string())?;
        let mut lane = SocketLane::new(control.try_clone().map_err(|error| error.to_string())?);
        lane.send(Head::new(Kind::Hello), &[&hello]).map_err(|error| error.to_string())?;
        let notifier = match &plan {
            Some(plan) => watch::begin(&control, plan, launch).map_err(|error| error.to_string())?,
            None => None,
        };
        let mut hear = || {
            let heard = lane.receive_until(MAX_GREETING, until);
            heard.map_err(|error| match error {
                FrameError::Io(_) => "its runner ended before its library was open".to_owned(),
                FrameError::Silent => format!("its library was not open within {} s", READY_PATIENCE.as_secs()),
                error => error.to_string(),
            })
        };
        match hear()? {
            (Head { kind: Kind::Confined, .. }, enforced) => {
                let enforced = enforced.map_err(|left| left.to_string())?;
                launch.status.confined(serde_json::from_slice(&enforced).ok());
            }
            (head, _) => return Err(FrameError::OutOfTurn(head.kind).to_string()),
        }
        match hear()? {
            (Head { kind: Kind::Ready, code: STATUS_OK, .. }, _) => {}
            (Head { kind: Kind::Ready, .. }, reason) => {
                return Err(reason.map_or_else(|left| left.to_string(), |reason| reason_of(&reason)));
            }
            (head, _) => return Err(FrameError::OutOfTurn(head.kind).to_string()),
        }
        let shared = match launch.transport {
            Transport::Memory if cfg!(target_os = "linux") => {
                Some(Shared::new(&control).map_err(|error| error.to_string())?)
            }
            Transport::Memory | Transport::Socket => None,
        };
        let runner = Arc::new(Self {
            plugin: launch.plugin.clone(),
            process,
            control: Mutex::new(Some(control)),
            shared,
            lanes: Lanes::default(),
            places: AtomicU8::new(0),
            budget: Budget::new(LONG_MESSAGES),
            open: OpenCalls::default(),
            ahead: Ahead::new(backend.places(launch.moments)),
            has_answered: AtomicBool::new(false),
            gone: AtomicBool::new(false),
            broken: OnceLock::new(),
            due: Mutex::default(),
            _notifier: notifier,
            backend: backend.clone(),
            max_answer: launch.max_answer,
        });
        for _ in 0..OWN_LANES {
            runner.serve_own().map_err(|error| error.to_string())?;
        }
        Ok(runner)
    }

    /// Serves one lane of the plugin's own threads, on a thread that ends with the runner.
    fn serve_own(self: &Arc<Self>) -> std::io::Result<()> {
        let mut lane = self.new_lane(Purpose::Own)?;
        let runner = self.clone();
        let serve = move || {
            contain("serving a plugin's own threads", || {
                loop {
                    let heard = lane.receive(runner.limit());
                    if let Err(error) = heard.and_then(|received| runner.serve(&mut lane, received)) {
                        runner.blame(&error);
                        break;
                    }
                }
            });
        };
        std::thread::Builder::new().name(format!("own-{}", self.plugin)).spawn(serve).map(drop)
    }

    fn limit(&self) -> usize {
        self.max_answer.max(MAX_REQUEST)
    }

    fn new_lane(&self, purpose: Purpose) -> std::io::Result<Lane> {
        let control = self.control.lock();
        let control = control.as_ref().ok_or(std::io::ErrorKind::NotConnected)?;
        let pass = |way| passing::send(control, &Parcel::Lane(purpose, way));
        let budget = self.budget.clone();
        Ok(match &self.shared {
            Some(shared) => {
                let place = self.places.fetch_add(1, Ordering::Relaxed);
                let lane = shared.lane(place, budget)?;
                pass(Way::Memory(place))?;
                Lane::Memory(Box::new(lane))
            }
            None => {
                let (ours, theirs) = UnixStream::pair()?;
                pass(Way::Socket(theirs.as_fd()))?;
                Lane::Socket(SocketLane::to_runner(ours, budget)?)
            }
        })
    }

    fn take_lane(&self, entry: Entry) -> Result<Lane, Gone> {
        match self.lanes.take(entry, || self.is_gone()) {
            None => Err(Gone { begun: false }),
            Some(Taken::Free(lane)) => Ok(lane),
            Some(Taken::New) => self.new_lane(Purpose::Entry).map_err(|error| {
                self.lost(&error.into());
                Gone { begun: false }
            }),
        }
    }

    /// Enters the plugin: sends a message, answers what it asks meanwhile, and gives the status and the bytes with which its
    /// function returns.
    ///
    /// # Errors
    /// The runner ends before that.
    pub fn enter(&self, head: Head, body: &[u8]) -> Result<(i32, Body), Gone> {
        let extra = if head.kind == Kind::Event { self.ahead.number() } else { head.extra };
        let mut lane = self.take_lane(Entry::Control)?;
        let gone = |error: FrameError, begun| {
            self.lost(&error);
            Gone { begun }
        };
        // What was not sent whole is not begun.
        lane.send(Head { extra, ..head }, &[body]).map_err(|error| gone(error, false))?;
        let returned = self.serve_until_returned(&mut lane, head.token, |_| {});
        let (Head { code, .. }, reason) = returned.map_err(|error| gone(error, true))?;
        self.lanes.give_back(lane, Entry::Control);
        Ok((code, reason))
    }

    /// The same for a function that must have returned within this time: else the process is ended.
    ///
    /// # Errors
    /// As [`Self::enter`].
    pub fn enter_within(&self, head: Head, body: &[u8], time: Duration) -> Result<(i32, Body), Gone> {
        *self.due.lock() = Some(Instant::now() + time);
        let outcome = self.enter(head, body);
        self.due.lock().take();
        outcome
    }

    /// Answers what a function of the plugin asks, on behalf of a call, until it has returned; `hear` has the first message that comes.
    fn serve_until_returned(
        &self,
        lane: &mut Lane,
        token: u64,
        hear: impl FnOnce(&Head),
    ) -> Result<(Head, Body), FrameError> {
        let mut hear = Some(hear);
        loop {
            let (head, body) = lane.receive(self.limit())?;
            if let Some(hear) = hear.take() {
                hear(&head);
            }
            match head.kind {
                // A reason that is too long is none.
                Kind::Returned if head.token == token => return Ok((head, body.unwrap_or_default())),
                _ => self.serve(lane, (head, body))?,
            }
        }
    }

    /// Answers what comes of a lane beside the end of a function.
    fn serve(&self, lane: &mut Lane, (head, body): Received) -> Result<(), FrameError> {
        match head.kind {
            Kind::Ask => {
                let Response { status, bytes } = match body {
                    Ok(request) => self.backend.ask(&head, &request),
                    Err(Left { .. }) => Response { status: ErrorKind::Refused as i32, bytes: OwnedBytes::EMPTY },
                };
                let extra = self.ahead.number();
                lane.send(Head { code: status, extra, ..Head::new(Kind::Answer) }, &[&bytes])
            }
            Kind::Reply => {
                let (code, answer) = match body {
                    Ok(answer) => (head.code, answer.into()),
                    Err(left) => (INTERNAL_ERROR, left.of_answer()),
                };
                // Once it is gone, a call that is not open was answered with its end.
                let is_left = self.open.forget(head.token) || !self.is_gone();
                let is_wanted = is_left && self.backend.host.reply(head.token, code, answer);
                self.has_answered.fetch_or(is_wanted, Ordering::Relaxed);
                if head.extra == 0 {
                    return Ok(());
                }
                let code = if is_wanted { STATUS_OK } else { ErrorKind::Stale as i32 };
                lane.send(Head { code, ..Head::new(Kind::Answer) }, &[])
            }
            kind => Err(FrameError::OutOfTurn(kind)),
        }
    }

    /// Whether it has answered any call.
    pub fn has_answered(&self) -> bool {
        self.has_answered.load(Ordering::Relaxed)
    }

    /// A lane has broken: the runner has ended or is about to, or is ended for what it sent.
    fn lost(&self, error: &FrameError) {
        self.blame(error);
        self.broken.get_or_init(Instant::now);
        self.set_gone();
    }

    /// Ends a runner that does not keep to the order of messages.
    fn blame(&self, error: &FrameError) {
        let why = match error {
            FrameError::Io(_) => return,
            FrameError::Silent => "a message without an end",
            _ => "a message that may not be",
        };
        if self.process.kill(why) {
            tracing::error!(plugin = self.plugin, %error, "the runner does not keep to the order of messages; it is ended");
        }
    }

    /// Whether it has ended.
    pub fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }

    /// It has ended: nobody waits for a lane any more.
    pub fn set_gone(&self) {
        self.gone.store(true, Ordering::Release);
        self.lanes.wake_all();
    }

    /// Waits until the process has ended or tells that a signal ends it, and ends it where it uses more than it may. Whether it
    /// told.
    pub fn watch(&self, bounds: Bounds) -> bool {
        let mut watch = Watch::new(self.process.pid, bounds);
        let mut control = self.control.lock().as_ref().and_then(|control| control.try_clone().ok());
        loop {
            match (self.process.wait(control.as_ref(), usage::INTERVAL), &mut control) {
                (Sign::Exited, _) => return false,
                (Sign::Word, Some(socket)) => {
                    let mut word = [0];
                    match socket.read(&mut word) {
                        Ok(1) if FATAL.contains(&c_int::from(word[0])) => return true,
                        Ok(1) => {
                            self.blame(&FrameError::NoSignal(word[0]));
                            control = None;
                        }
                        // What is closed tells nothing; the end itself is still seen.
                        _ => control = None,
                    }
                }
                _ => {
                    // Without its lane it is of no use, also where the system has failed the host. How it ended by itself stays.
                    if self.broken.get().is_some_and(|since| since.elapsed() >= EXIT_PATIENCE) {
                        self.process.signal();
                    }
                    let is_due = self.due.lock().is_some_and(|due| due <= Instant::now());
                    let overdue = is_due.then_some("a function of the plugin that does not return");
                    if let Some(reason) = overdue.or_else(|| watch.look().map(Excess::reason)) {
                        tracing::error!(
                            plugin = self.plugin,
                            pid = self.process.pid,
                            reason,
                            "the plugin's process is ended"
                        );
                        self.kill(reason);
                        return false;
                    }
                }
            }
        }
    }

    /// A signal is ending the process, for which nobody waits any more.
    pub fn set_ending(&self) {
        self.process.set_ending();
        self.set_ended();
    }

    /// The process is no more: nobody waits for its messages any more either.
    pub fn set_ended(&self) {
        self.set_gone();
        if let Some(Shared { theirs, end, .. }) = &self.shared {
            end.tell(theirs);
        }
    }

    /// Ends the process, for this reason, unless a signal is ending it.
    pub fn kill(&self, why: &'static str) {
        self.process.kill(why);
    }

    /// Frees the instance and ends the process.
    pub fn end(&self) {
        if !self.is_gone()
            && let Ok(lane) = self.take_lane(Entry::Control)
        {
            let mut lane = lane;
            // What it does then is of no consequence, and must not hold the host.
            if lane.send(Head::new(Kind::Destroy), &[]).is_ok() {
                let _ = lane.receive_within(MAX_REQUEST, DESTROY_PATIENCE);
            }
        }
        self.control.lock().take();
        self.kill("its end");
        self.set_gone();
    }
}
