//! The proxy of an isolated plugin: a runner executes the plugin's functions. When a runner crashes, the host answers its
//! open calls with an error, and later calls wait for the next runner.

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use outrigger_abi::{ErrorKind, FAILED, HostHandle, PluginCode, RawCall, STATUS_OK, UsedPlugin};
use outrigger_base::contain::contain;
use parking_lot::{Condvar, Mutex};

use crate::cgroup::Group;
use crate::frame::{Head, Kind};
use crate::greeting::Begin;
use crate::launch::Launch;
use crate::runner::{Backend, Runner, RunnerGone, reason_of};
use crate::status::{Crash, Ending};
use crate::usage::TOO_MUCH_MEMORY;

/// The host gives a plugin up after this many consecutive runners ended within [`EARLY`] of their start. A runner that had
/// answered a call does not count, so that calls which crash the plugin do not stop it while it answers others.
const MAX_EARLY_ENDS: u32 = 3;
const EARLY: Duration = Duration::from_secs(60);

/// The pause after the first early end. Each further pause is ten times as long: a server that the plugin needs can come back meanwhile.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// How long an event waits for a runner.
const EVENT_PATIENCE: Duration = Duration::from_secs(5);

/// How long a call without a deadline waits for the next runner.
const SUCCESSOR_PATIENCE: Duration = Duration::from_secs(30);

/// The time limits for creating or starting an instance, and for stopping it. After that the host kills its process.
const START_PATIENCE: Duration = Duration::from_secs(30);
pub const STOP_PATIENCE: Duration = Duration::from_secs(20);

#[derive(Default)]
pub struct Seed(Option<Launch>);

pub struct Proxy(Arc<SharedProxy>);

enum Stage {
    Starting,
    Running(Arc<Runner>),
    /// The last runner ended, and the host starts no other.
    Crashed,
    Ended,
}

struct ProxyState {
    stage: Stage,
    /// Whether the plugin's `start` succeeded, so that a new runner calls it, too.
    started: bool,
    /// Whether the plugin is stopping or has stopped. The host then starts no runner.
    stops: bool,
}

struct SharedProxy {
    launch: Arc<Launch>,
    backend: Arc<Backend>,
    options: Vec<u8>,
    state: Mutex<ProxyState>,
    changed: Condvar,
}

impl Proxy {
    /// Makes an instance; `None` if memory runs out.
    pub fn instance(launch: Launch) -> Option<UsedPlugin> {
        UsedPlugin::implemented::<Self>(Seed(Some(launch)))
    }

    /// Runs a function that returns only a status. Does nothing if no runner is running.
    fn tell(&self, head: Head, body: &[u8]) -> Result<(), ErrorKind> {
        self.running().map_or(Ok(()), |runner| self.0.told(runner.enter(head, body)))
    }

    fn running(&self) -> Option<Arc<Runner>> {
        match &self.0.state.lock().stage {
            Stage::Running(runner) => Some(runner.clone()),
            _ => None,
        }
    }
}

impl PluginCode for Proxy {
    type Seed = Seed;

    fn init(Seed(launch): Seed, host: HostHandle, options: &[u8]) -> Result<Self, String> {
        let launch = launch.ok_or("an isolated plugin without a library")?;
        let services = launch.services.iter().map(|name| (name.clone(), host.service(name))).collect();
        let shared = Arc::new(SharedProxy {
            backend: Arc::new(Backend { host, services }),
            launch: Arc::new(launch),
            options: options.to_vec(),
            state: Mutex::new(ProxyState { stage: Stage::Starting, started: false, stops: false }),
            changed: Condvar::new(),
        });
        let (up, outcome) = channel();
        let keeper = shared.clone();
        let keep = move || {
            contain("keeping a plugin's runner", || keeper.keep(up));
        };
        let thread = std::thread::Builder::new().name(format!("runner-{}", shared.launch.plugin));
        thread.spawn(keep).map_err(|error| error.to_string())?;
        outcome.recv().unwrap_or_else(|_| Err("its runner was lost".to_owned())).map(|()| Self(shared))
    }

    fn start(&self) -> Result<(), String> {
        let runner = self.0.runner(&mut None, None).ok_or_else(|| self.0.crashed())?;
        let started = runner.enter_within(Head::new(Kind::Start), b"", START_PATIENCE);
        let (status, reason) = started.map_err(|_| self.0.crashed())?;
        if status != STATUS_OK {
            return Err(refusal(status, &reason));
        }
        self.0.state.lock().started = true;
        Ok(())
    }

    fn call(&self, call: RawCall<'_>) -> Result<(), ErrorKind> {
        match self.0.call(&call) {
            STATUS_OK => Ok(()),
            status => Err(ErrorKind::from_status(status)),
        }
    }

    fn cancel(&self, token: u64) -> Result<(), ErrorKind> {
        if let Some(runner) = self.running() {
            runner.open.forget(token);
        }
        self.tell(Head { token, ..Head::new(Kind::Cancel) }, &[])
    }

    fn event(&self, event: &[u8]) -> Result<(), ErrorKind> {
        // Waits during a restart, so that the next runner gets the event.
        match self.0.runner(&mut None, Some(EVENT_PATIENCE)) {
            Some(_) => self.tell(Head::new(Kind::Event), event),
            None => Ok(()),
        }
    }

    fn quiesce(&self) -> Result<(), ErrorKind> {
        self.tell(Head::new(Kind::Quiesce), &[])
    }

    fn stop(&self) -> Result<(), ErrorKind> {
        self.0.state.lock().stops = true;
        self.0.changed.notify_all();
        let stop = |runner: Arc<Runner>| self.0.told(runner.enter_within(Head::new(Kind::Stop), &[], STOP_PATIENCE));
        self.running().map_or(Ok(()), stop)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let stage = std::mem::replace(&mut self.0.state.lock().stage, Stage::Ended);
        self.0.changed.notify_all();
        if let Stage::Running(runner) = stage {
            runner.end();
        }
    }
}

fn refusal(status: i32, reason: &[u8]) -> String {
    if reason.is_empty() { format!("status {status}") } else { reason_of(reason) }
}

/// How long a call with this deadline waits for a runner.
fn successor_patience(deadline: Option<Duration>) -> Duration {
    deadline.map_or(SUCCESSOR_PATIENCE, |limit| limit.min(SUCCESSOR_PATIENCE))
}

impl SharedProxy {
    /// The result of a function that returns only a status.
    fn told(&self, outcome: Result<(i32, Vec<u8>), RunnerGone>) -> Result<(), ErrorKind> {
        match outcome {
            Ok((STATUS_OK, _)) => Ok(()),
            Ok((status, _)) => Err(ErrorKind::from_status(status)),
            Err(RunnerGone { begun: true }) if self.launch.is_checked => Err(ErrorKind::Internal),
            Err(RunnerGone { .. }) => Ok(()),
        }
    }

    fn crashed(&self) -> String {
        format!("The plugin '{}' crashed", self.launch.plugin)
    }

    /// Waits up to `patience` for a runner; `None` if there is none by then, or will be none. `until` carries the end of the
    /// wait over repeated calls.
    fn runner(&self, until: &mut Option<Instant>, patience: Option<Duration>) -> Option<Arc<Runner>> {
        if until.is_some_and(|until| until <= Instant::now()) {
            return None;
        }
        let mut state = self.state.lock();
        loop {
            match &state.stage {
                Stage::Running(runner) if !runner.is_gone() => return Some(runner.clone()),
                Stage::Running(_) | Stage::Starting => {}
                Stage::Crashed | Stage::Ended => return None,
            }
            let until = *until.get_or_insert_with(|| Instant::now() + successor_patience(patience));
            if self.changed.wait_until(&mut state, until).timed_out() {
                return None;
            }
        }
    }

    /// Runs a call. Returns the function's status, or success if the host has answered instead of the plugin.
    fn call(&self, call: &RawCall<'_>) -> i32 {
        let deadline = call.deadline_ms.map(Duration::from_millis);
        let mut until = None;
        loop {
            let runner = self.runner(&mut until, deadline);
            // The client may have gone during the wait.
            if until.is_some() && !self.backend.host.is_wanted(call.token) {
                return STATUS_OK;
            }
            let Some(runner) = runner else { return self.answer_crashed(call.token) };
            let outcome = runner.call(call, (self.launch.depth)(call.token));
            let status = match outcome {
                Ok(status) => Some(status),
                // Retried with the next runner.
                Err(RunnerGone { begun: false }) => None,
                Err(RunnerGone { begun: true }) if runner.open.lose(call.token) => {
                    Some(self.answer_crashed(call.token))
                }
                Err(RunnerGone { begun: true }) => Some(STATUS_OK),
            };
            if runner.is_gone() {
                self.answer_kept(&runner);
            }
            if let Some(status) = status {
                return status;
            }
            until.get_or_insert_with(|| Instant::now() + successor_patience(deadline));
        }
    }

    fn answer_crashed(&self, token: u64) -> i32 {
        self.backend.host.reply(token, FAILED, self.crashed().into_bytes().into());
        STATUS_OK
    }

    /// Answers the open calls of an ended runner whose functions had returned.
    fn answer_kept(&self, runner: &Runner) {
        for token in runner.open.take_kept() {
            self.answer_crashed(token);
        }
    }

    /// Runs one runner after the other, on a thread that outlives each of them: the kernel kills a runner with its parent thread.
    fn keep(&self, first: Sender<Result<(), String>>) {
        let mut first = Some(first);
        let mut early = 0;
        loop {
            let began = Instant::now();
            let Some(has_answered) = self.run_one(&mut first) else { return };
            early = if !has_answered && began.elapsed() < EARLY { early + 1 } else { 0 };
            if self.launch.restartable && !self.launch.is_checked && (1..MAX_EARLY_ENDS).contains(&early) {
                self.pause(FIRST_PAUSE * 10_u32.pow(early - 1));
            }
            if matches!(self.state.lock().stage, Stage::Ended) {
                return;
            }
            if self.launch.runners.are_abandoned() || self.state.lock().stops {
                self.set(Stage::Crashed);
                return;
            }
            let is_in_quarantine = early >= MAX_EARLY_ENDS && !self.launch.is_checked;
            if !self.launch.restartable || is_in_quarantine {
                self.give_up(is_in_quarantine);
                return;
            }
        }
    }

    /// Waits for this time, or until the instance ends.
    fn pause(&self, time: Duration) {
        let until = Instant::now() + time;
        let mut state = self.state.lock();
        while !state.stops
            && !matches!(state.stage, Stage::Ended)
            && !self.changed.wait_until(&mut state, until).timed_out()
        {}
    }

    fn give_up(&self, in_quarantine: bool) {
        self.set(Stage::Crashed);
        self.launch.runners.give_up();
        (self.launch.given_up)(in_quarantine);
    }

    /// Sets the stage, unless the instance ends. Returns whether it was set.
    fn set(&self, stage: Stage) -> bool {
        let mut state = self.state.lock();
        let sets = !matches!(state.stage, Stage::Ended);
        if sets {
            self.launch.runners.set_running(matches!(stage, Stage::Running(_)));
            state.stage = stage;
        }
        drop(state);
        self.changed.notify_all();
        sets
    }

    /// Starts a runner and waits for its end. Returns whether the runner had answered a call; `None` if the plugin's start failed in its
    /// first runner.
    fn run_one(&self, first: &mut Option<Sender<Result<(), String>>>) -> Option<bool> {
        let group = Group::new(&self.launch.plugin, self.launch.bounds);
        let (runner, mut child) = match Runner::spawn(&self.launch, &self.backend, group.as_ref()) {
            Ok(spawned) => spawned,
            Err(reason) => {
                if let Some(first) = first.take() {
                    let _ = first.send(Err(reason));
                    return None;
                }
                tracing::error!(plugin = self.launch.plugin, reason, "the plugin's runner could not be started again");
                return Some(false);
            }
        };
        let process = runner.process.clone();
        let kill = move |why| {
            process.kill(why);
        };
        {
            let mut statistics = self.launch.status.write();
            statistics.pids.push(runner.process.pid);
            if let (Some(enforced), Some(group)) = (&mut statistics.enforced, &group) {
                enforced.limits.extend_from_slice(&group.limits);
            }
        }
        self.launch.runners.begin(Box::new(kill));
        let (brought_up, status) = std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name(format!("start-{}", self.launch.plugin));
            // The runner may end during its start; `close` below then fails the starting thread's wait.
            let coming_up = thread.spawn_scoped(scope, || self.come_up(&runner, first));
            if coming_up.is_err() {
                runner.process.kill("no thread to start it on");
            }
            runner.watch();
            let status = child.wait();
            runner.close();
            let lost = || Err("its start ended without a result".to_owned());
            (coming_up.map_err(|error| error.to_string()).and_then(|up| up.join().unwrap_or_else(|_| lost())), status)
        });
        self.launch.status.end(runner.process.pid);
        let is_up = brought_up.is_ok();
        if let Err(refusal) = brought_up
            && let Some(first) = first.take()
        {
            let _ = first.send(Err(refusal));
            return None;
        }
        let how = match status {
            Ok(_) if group.is_some_and(|group| group.was_out_of_memory()) => Ending::Killed(TOO_MUCH_MEMORY),
            Ok(status) => runner.process.ending(status),
            Err(_) => Ending::Killed("unknown"),
        };
        self.note_end(&runner, how);
        Some(is_up && runner.has_answered())
    }

    /// Makes the plugin's instance in a new runner, and routes calls to it.
    fn come_up(&self, runner: &Arc<Runner>, first: &mut Option<Sender<Result<(), String>>>) -> Result<(), String> {
        let brought_up = self.bring_up(runner);
        match &brought_up {
            Ok(()) => {
                if !self.set(Stage::Running(runner.clone())) {
                    runner.end();
                }
                let _ = first.take().map(|first| first.send(Ok(())));
            }
            Err(reason) => {
                runner.process.kill("a refusal to start");
                if first.is_none() {
                    tracing::error!(plugin = self.launch.plugin, reason, "the plugin refused to start again");
                }
            }
        }
        brought_up
    }

    /// Answers the open calls of a runner that ended, and logs and counts the crash if it is one.
    fn note_end(&self, runner: &Runner, how: Ending) {
        if !self.set(Stage::Starting) {
            return;
        }
        for token in runner.open.take_begun() {
            self.answer_crashed(token);
        }
        // The host itself ended this process, and has logged why.
        if self.launch.runners.are_abandoned() {
            return;
        }
        let crash = Crash { how, method: runner.open.last_method() };
        let (plugin, method) = (&self.launch.plugin, crash.method.as_deref());
        tracing::error!(plugin, pid = runner.process.pid, %how, method, "the plugin's process has ended");
        if !self.launch.is_checked {
            (self.launch.crashed)(&crash);
        }
        let mut statistics = self.launch.status.write();
        statistics.crashes += 1;
        statistics.last_crash = Some(crash);
    }

    /// Makes the plugin's instance in a new runner.
    fn bring_up(&self, runner: &Runner) -> Result<(), String> {
        let services = self.backend.services.iter().map(|(name, service)| (name.clone(), service.function_count()));
        let begin = Begin { options: self.options.clone(), services: services.collect() };
        let begin = serde_json::to_vec(&begin).map_err(|error| error.to_string())?;
        let enter = |kind, body: &[u8]| {
            let entered = runner.enter_within(Head::new(kind), body, START_PATIENCE);
            let (status, reason) = entered.map_err(|_| self.crashed())?;
            if status == STATUS_OK { Ok(()) } else { Err(refusal(status, &reason)) }
        };
        enter(Kind::Init, &begin)?;
        if self.state.lock().started { enter(Kind::Start, &[]) } else { Ok(()) }
    }
}
