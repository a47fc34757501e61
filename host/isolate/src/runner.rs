//! The host's side of one runner: its process, channels and open calls.

use std::cell::OnceCell;
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use outrigger_abi::{ErrorKind, HostHandle, RawCall, RawService, Response, STATUS_OK};
use outrigger_base::contain::contain;
use parking_lot::Mutex;

use crate::body::Message;
use crate::cgroup::Group;
use crate::channel::Channel;
use crate::channels::{Channels, Entry, Grant, OWN_CHANNELS};
use crate::frame::{FrameError, Head, INLINE, INTERNAL_ERROR, Kind, RELEASE_SHIFT, function_at};
use crate::greeting::Hello;
use crate::launch::Launch;
use crate::open::OpenCalls;
use crate::output;
use crate::passing::{self, Purpose};
use crate::process::Process;
use crate::status::Ending;
use crate::usage::{self, Watch};
use crate::watch;
use outrigger_sandbox::Notifier;

/// How long a runner may take to open the plugin's library.
const READY_PATIENCE: Duration = Duration::from_secs(30);

/// How long a runner may take to free the plugin's instance.
const DESTROY_PATIENCE: Duration = Duration::from_secs(1);

/// How long a process may take to end after one of its channels closed. In a regular exit, the channels close first.
const EXIT_PATIENCE: Duration = Duration::from_millis(250);

/// The longest request to a service, in bytes.
const MAX_REQUEST: usize = 64 << 20;

/// The longest message from a starting runner, in bytes.
const MAX_GREETING: usize = 64 << 10;

/// The length to which a plugin's reason is truncated, in bytes.
const MAX_REASON: usize = 1000;

thread_local! {
    /// The runner whose own threads' requests this thread serves.
    static SERVED: OnceCell<Arc<Runner>> = const { OnceCell::new() };
}

/// Whether this thread serves the own threads of a plugin whose process has ended, so that nobody waits for its results.
pub fn asker_is_gone() -> bool {
    SERVED.with(|served| served.get().is_some_and(|runner| runner.is_gone()))
}

pub struct Backend {
    pub host: HostHandle,
    /// The granted services, by name.
    pub services: Vec<(String, RawService)>,
}

impl Backend {
    fn ask(&self, head: &Head, request: &[u8]) -> Response {
        let (service, function) = function_at(head.place);
        let service = self.services.get(service).map_or(&RawService::NOT_GRANTED, |(_, service)| service);
        service.call(function, head.token, request)
    }
}

/// The runner ended before a function of the plugin returned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RunnerGone {
    /// Whether the runner may have begun the function.
    pub begun: bool,
}

/// A plugin's reason for a failure, truncated and printable.
pub fn reason_of(bytes: &[u8]) -> String {
    output::printable(bytes.get(..MAX_REASON).unwrap_or(bytes))
}

pub struct Runner {
    launch: Arc<Launch>,
    pub process: Arc<Process>,
    control: Mutex<Option<UnixStream>>,
    channels: Channels,
    /// The sockets of all channels, including the channels of the plugin's own threads.
    sockets: Mutex<Vec<Arc<UnixStream>>>,
    pub open: OpenCalls,
    has_answered: AtomicBool,
    gone: AtomicBool,
    /// When the host first found a channel closed.
    broken: OnceLock<Instant>,
    /// The deadline of the function in [`Self::enter_within`].
    due: Mutex<Option<Instant>>,
    /// Decides about system calls that the sandbox forwards.
    _notifier: Option<Notifier>,
    backend: Arc<Backend>,
}

impl Runner {
    /// Starts a runner in this control group, and waits until the runner has loaded the plugin's library. The calling
    /// thread must outlive the runner: the system kills a runner when the thread that started it ends.
    pub fn spawn(
        launch: &Arc<Launch>,
        backend: &Arc<Backend>,
        group: Option<&Group>,
    ) -> Result<(Arc<Self>, Child), String> {
        let system = |error: std::io::Error| error.to_string();
        let (control, theirs) = UnixStream::pair().map_err(system)?;
        let (out, written) = std::io::pipe().map_err(system)?;
        let mut command = launch.executable.command(&launch.plugin).map_err(system)?;
        command.stdin(Stdio::from(OwnedFd::from(theirs)));
        command.stdout(Stdio::from(written.try_clone().map_err(system)?)).stderr(Stdio::from(written));
        let mut child = command.spawn().map_err(system)?;
        // Closes the child's ends of the sockets in this process.
        drop(command);
        let plugin = launch.plugin.clone();
        let copy = move || {
            contain("copying a runner's output", || output::copy(&plugin, out));
        };
        let started = std::thread::Builder::new().name(format!("output-{}", launch.plugin)).spawn(copy);
        // Limits the process before the first message, which makes it load the plugin's code.
        let grouped = group.map_or(Ok(()), |group| group.take(child.id()).map_err(|error| error.to_string()));
        let outcome = started.map_err(system).and(grouped).and_then(|()| Self::meet(launch, backend, &child, control));
        match outcome {
            Ok(runner) => Ok((runner, child)),
            Err(reason) => {
                let _ = child.kill();
                // SIGKILL is the host's own kill above, not the cause.
                let ended = child.wait().map(Ending::from).ok().filter(|ended| *ended != Ending::Signal(libc::SIGKILL));
                Err(match ended {
                    Some(ended) => format!("{reason} ({ended})"),
                    None => reason,
                })
            }
        }
    }

    /// Sends the first message to a new process, and waits until it is ready.
    fn meet(
        launch: &Arc<Launch>,
        backend: &Arc<Backend>,
        child: &Child,
        control: UnixStream,
    ) -> Result<Arc<Self>, String> {
        let process = Arc::new(Process::of(child).map_err(|error| error.to_string())?);
        let until = Instant::now() + READY_PATIENCE;
        control.set_read_timeout(Some(READY_PATIENCE)).map_err(|error| error.to_string())?;
        let plan = watch::plan(launch)?;
        let sandbox = plan.clone().map(|plan| (plan, watch::support().clone()));
        let hello = Hello { host: std::process::id(), code: launch.code.clone(), sandbox };
        let hello = serde_json::to_vec(&hello).map_err(|error| error.to_string())?;
        let mut channel = Channel::to_host(control.try_clone().map_err(|error| error.to_string())?);
        channel.send(Head::new(Kind::Hello), &[&hello]).map_err(|error| error.to_string())?;
        let notifier = match &plan {
            Some(plan) => watch::begin(&control, plan, launch).map_err(|error| error.to_string())?,
            None => None,
        };
        let mut hear = || {
            let heard = channel.receive_until(MAX_GREETING, until);
            heard.map_err(|error| match error {
                FrameError::Io(_) => "its runner ended before it opened the library".to_owned(),
                FrameError::Silent => format!("its runner did not open its library in {} s", READY_PATIENCE.as_secs()),
                error => error.to_string(),
            })
        };
        match hear()? {
            (Head { kind: Kind::Confined, .. }, enforced) => {
                let enforced = enforced.map_err(|discarded| discarded.to_string())?;
                launch.status.write().enforced = serde_json::from_slice(&enforced).ok();
            }
            (head, _) => return Err(FrameError::OutOfTurn(head.kind).to_string()),
        }
        match hear()? {
            (Head { kind: Kind::Ready, code: STATUS_OK, .. }, _) => {}
            (Head { kind: Kind::Ready, .. }, reason) => {
                return Err(reason.map_or_else(|discarded| discarded.to_string(), |reason| reason_of(&reason)));
            }
            (head, _) => return Err(FrameError::OutOfTurn(head.kind).to_string()),
        }
        let runner = Arc::new(Self {
            launch: launch.clone(),
            process,
            control: Mutex::new(Some(control)),
            channels: Channels::new(launch.bounds),
            sockets: Mutex::default(),
            open: OpenCalls::default(),
            has_answered: AtomicBool::new(false),
            gone: AtomicBool::new(false),
            broken: OnceLock::new(),
            due: Mutex::default(),
            _notifier: notifier,
            backend: backend.clone(),
        });
        for _ in 0..OWN_CHANNELS {
            runner.serve_own().map_err(|error| error.to_string())?;
        }
        Ok(runner)
    }

    /// Opens a channel for the plugin's own threads. A new thread serves it until the runner ends.
    fn serve_own(self: &Arc<Self>) -> std::io::Result<()> {
        let mut channel = self.new_channel(Purpose::Own)?;
        let runner = self.clone();
        let serve = move || {
            contain("serving a plugin's own threads", || {
                SERVED.with(|served| drop(served.set(runner.clone())));
                loop {
                    let received = channel.receive(runner.limit());
                    if let Err(error) = received.and_then(|received| runner.serve(&mut channel, received)) {
                        runner.blame(&error);
                        break;
                    }
                }
            });
        };
        std::thread::Builder::new().name(format!("own-{}", self.launch.plugin)).spawn(serve).map(drop)
    }

    fn limit(&self) -> usize {
        self.launch.max_answer.max(MAX_REQUEST)
    }

    fn new_channel(&self, purpose: Purpose) -> std::io::Result<Channel> {
        let (ours, theirs) = UnixStream::pair()?;
        let control = self.control.lock();
        passing::send(control.as_ref().ok_or(std::io::ErrorKind::NotConnected)?, purpose, theirs.as_fd())?;
        let channel = Channel::to_runner(ours)?;
        self.sockets.lock().push(channel.socket());
        // [`Self::close`] may already have closed the other channels.
        if self.is_gone() { Err(std::io::ErrorKind::NotConnected.into()) } else { Ok(channel) }
    }

    fn take_channel(&self, entry: Entry) -> Result<Channel, RunnerGone> {
        match self.channels.take(entry, || self.is_gone()) {
            None => Err(RunnerGone { begun: false }),
            Some(Grant::Idle(channel)) => Ok(channel),
            Some(Grant::New) => self.new_channel(Purpose::Entry).map_err(|error| {
                self.lost(&error.into());
                RunnerGone { begun: false }
            }),
        }
    }

    /// Runs a function of the plugin: sends a message, serves requests to services, and returns the function's status
    /// and bytes.
    pub fn enter(&self, head: Head, body: &[u8]) -> Result<(i32, Vec<u8>), RunnerGone> {
        self.run(Entry::Control, head, &[body])
    }

    /// Like [`Self::enter`], but kills the process if the function does not return within `time`.
    pub fn enter_within(&self, head: Head, body: &[u8], time: Duration) -> Result<(i32, Vec<u8>), RunnerGone> {
        *self.due.lock() = Some(Instant::now() + time);
        let outcome = self.enter(head, body);
        self.due.lock().take();
        outcome
    }

    /// Runs a call, for which `depth` calls wait, and returns its function's status.
    ///
    /// # Errors
    /// The runner ended before the function returned. A call that it may have begun stays in [`Self::open`] until answered.
    pub fn call(&self, call: &RawCall<'_>, depth: usize) -> Result<i32, RunnerGone> {
        let RawCall { token, method, params, deadline_ms, release } = *call;
        let place = u32::try_from(method.len()).unwrap_or(u32::MAX);
        let inline = if self.launch.inline.iter().any(|name| name.as_bytes() == method) { INLINE } else { 0 };
        let code = inline | (release.and_then(|release| i32::try_from(release).ok()).unwrap_or(0) << RELEASE_SHIFT);
        let head = Head { token, code, extra: deadline_ms.unwrap_or(0), place, ..Head::new(Kind::Call) };
        self.open.begin(token, method);
        let outcome = self.run(Entry::Call { depth }, head, &[method, params]);
        match outcome {
            Ok((status, _)) => self.open.returned(token, status),
            Err(RunnerGone { begun: false }) => drop(self.open.forget(token)),
            Err(RunnerGone { begun: true }) => {}
        }
        outcome.map(|(status, _)| status)
    }

    fn run(&self, entry: Entry, head: Head, parts: &[&[u8]]) -> Result<(i32, Vec<u8>), RunnerGone> {
        let mut channel = self.take_channel(entry)?;
        // It may have been given up while it waited for the channel.
        if entry.is_call() && !self.backend.host.is_wanted(head.token) {
            self.channels.give_back(channel, entry);
            self.open.forget(head.token);
            return Ok((STATUS_OK, Vec::new()));
        }
        // The runner begins a function only after it has received the whole message.
        let sent = channel.send(head, parts).map_err(|error| (error, false));
        let returned = sent.and_then(|()| self.serve_until_returned(&mut channel, head.token));
        let returned = returned.map_err(|(error, begun)| {
            self.lost(&error);
            RunnerGone { begun }
        })?;
        self.channels.give_back(channel, entry);
        Ok(returned)
    }

    /// Serves a function's requests to services until the function returns. The flag of an error is whether the runner may
    /// have begun the function. It is false if the runner closed the channel before it read the message.
    fn serve_until_returned(&self, channel: &mut Channel, token: u64) -> Result<(i32, Vec<u8>), (FrameError, bool)> {
        let mut has_begun = false;
        loop {
            let received = channel.receive(self.limit());
            let (head, body) = received.map_err(|error| {
                // A reset means that the runner closed the channel with unread data. Only Linux reports this.
                let is_reset = matches!(&error, FrameError::Io(io) if io.kind() == std::io::ErrorKind::ConnectionReset);
                (error, has_begun || !is_reset)
            })?;
            has_begun = true;
            match head.kind {
                // A reason that is too long is dropped.
                Kind::Returned if head.token == token => return Ok((head.code, body.unwrap_or_default())),
                Kind::Done if head.token == token => {
                    let reply = Head { kind: Kind::Reply, extra: 0, ..head };
                    self.serve(channel, (reply, body)).map_err(|error| (error, true))?;
                    return Ok((STATUS_OK, Vec::new()));
                }
                kind => {
                    if kind == Kind::Ask {
                        self.open.asks(token);
                    }
                    self.serve(channel, (head, body)).map_err(|error| (error, true))?;
                }
            }
        }
    }

    /// Serves a request to a service, or forwards an answer to a call. Any other message is an error.
    fn serve(&self, channel: &mut Channel, (head, body): Message) -> Result<(), FrameError> {
        match head.kind {
            Kind::Ask => {
                let Response { status, bytes } = match body {
                    Ok(request) => self.backend.ask(&head, &request),
                    Err(discarded) => {
                        let detail = discarded.to_string().into_bytes().into();
                        Response { status: ErrorKind::Refused as i32, bytes: detail }
                    }
                };
                channel.send(Head { code: status, ..Head::new(Kind::Answer) }, &[&bytes])
            }
            Kind::Reply => {
                let (code, answer) = match body {
                    Ok(answer) => (head.code, answer.into()),
                    Err(discarded) => (INTERNAL_ERROR, discarded.as_answer()),
                };
                // If the runner is gone and the call is not open, the host has already answered the call with an error.
                let is_unanswered = self.open.forget(head.token) || !self.is_gone();
                let is_wanted = is_unanswered && self.backend.host.reply(head.token, code, answer);
                self.has_answered.fetch_or(is_wanted, Ordering::Relaxed);
                if head.extra == 0 {
                    return Ok(());
                }
                let code = if is_wanted { STATUS_OK } else { ErrorKind::Stale as i32 };
                channel.send(Head { code, ..Head::new(Kind::Answer) }, &[])
            }
            kind => Err(FrameError::OutOfTurn(kind)),
        }
    }

    pub fn has_answered(&self) -> bool {
        self.has_answered.load(Ordering::Relaxed)
    }

    /// Handles a failed channel: kills a runner that violated the protocol, and gives the runner no more calls.
    fn lost(&self, error: &FrameError) {
        self.blame(error);
        self.broken.get_or_init(Instant::now);
        self.set_gone();
    }

    /// Kills the runner if the error is a violation of the protocol.
    fn blame(&self, error: &FrameError) {
        let why = match error {
            FrameError::Io(_) => return,
            FrameError::Silent => "a message that it did not finish",
            _ => "an invalid message",
        };
        if self.process.kill(why) {
            tracing::error!(plugin = self.launch.plugin, %error, "the runner violated the protocol and was killed");
        }
    }

    pub fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }

    /// Marks the runner as ended or ending: it gets no more calls, and threads that wait for a channel return.
    pub fn set_gone(&self) {
        self.gone.store(true, Ordering::Release);
        self.channels.wake_all();
    }

    /// Waits until the process has ended, and kills it if it exceeds its limits.
    pub fn watch(&self) {
        let (plugin, pid) = (&self.launch.plugin, self.process.pid);
        let mut watch = Watch::new(pid, self.launch.bounds);
        while !self.process.ends_within(usage::INTERVAL) {
            // The host cannot use a runner with a failed channel, even if the host itself failed to open the channel.
            // `signal` records no reason: a process that ends by itself keeps its own exit status.
            if self.broken.get().is_some_and(|since| since.elapsed() >= EXIT_PATIENCE) {
                self.process.signal();
            }
            let is_due = self.due.lock().is_some_and(|due| due <= Instant::now());
            let overdue = is_due.then_some("a function of the plugin that did not return in time");
            if let Some(reason) = overdue.or_else(|| watch.look()) {
                tracing::error!(plugin, pid, reason, "killing the plugin's process");
                self.process.kill(reason);
                return;
            }
        }
    }

    /// Shuts down all channels of an ended process, so that waiting threads return. The system does not close a channel
    /// while a child of the process holds its other end.
    pub fn close(&self) {
        self.set_gone();
        for socket in self.sockets.lock().drain(..) {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    /// Frees the instance and ends the process.
    pub fn end(&self) {
        if !self.is_gone()
            && let Ok(mut channel) = self.take_channel(Entry::Control)
            // The host ignores the result, and waits only briefly for it.
            && channel.send(Head::new(Kind::Destroy), &[]).is_ok()
        {
            let _ = channel.receive_until(MAX_REQUEST, Instant::now() + DESTROY_PATIENCE);
        }
        self.control.lock().take();
        self.process.kill("its end");
        self.set_gone();
    }
}
