//! Runs a check in the plugin's process: opens the file, starts instances, and reports their defects.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use outrigger_isolate::Crash;
use outrigger_plugins::answer::BadAnswer;
use outrigger_plugins::calls::Answer;
use outrigger_plugins::file::PluginFile;
use outrigger_plugins::instance::{Instance, Lease};
use outrigger_plugins::lane::Lane;
use outrigger_sdk::manifest::{Manifest, MethodSpec};
use outrigger_sdk::plugin::NO_ANSWER;
use outrigger_sdk::testing::StubHost;
use outrigger_service::events::Event;
use outrigger_values::{RpcError, RpcErrorCode};
use parking_lot::Mutex;
use tokio::sync::oneshot::Receiver;
use tokio::sync::oneshot::error::TryRecvError;

use super::loaded::{Loaded, UNKNOWN};
use super::protocol::{Finding, Job, Message, Step};
use super::provided;
use super::reporter::Reporter;
use crate::Check;

/// The polling interval while the tool waits for the plugin.
const LOOK: Duration = Duration::from_millis(1);

/// How long an instance may take to end. The tool kills this process long before that.
const END_PATIENCE: Duration = Duration::from_secs(24 * 60 * 60);

/// How long the host may take to record a crash after it has answered the crashed process's calls.
const CRASH_PATIENCE: Duration = Duration::from_secs(1);

/// One check of a plugin: opens the plugin once, and starts it as often as the check needs.
pub struct Session<'r> {
    pub job: Job,
    pub reporter: &'r Reporter,
    loaded: Loaded,
    /// The instances that have not ended.
    live: AtomicUsize,
    /// The number of threads in this process before the plugin started any.
    threads: usize,
    /// The numbers of faults and of repeated answers that were reported.
    faults: AtomicU64,
    repeated: AtomicU64,
}

/// A running instance and its host.
pub struct Harness<'a> {
    session: &'a Session<'a>,
    instance: Arc<Instance>,
    /// Keeps the instance from ending before the plugin has answered its kept calls.
    lease: Option<Lease>,
    /// The chain, mempool and wallet behind its services.
    pub behind: StubHost,
    /// The unanswered calls, by token.
    open: Mutex<BTreeMap<u64, (Step, Receiver<Answer>)>>,
    made: AtomicUsize,
}

#[derive(Clone, Copy)]
pub struct Call<'c> {
    pub method: &'c MethodSpec,
    arguments: &'c str,
    token: u64,
}

impl Call<'_> {
    fn step(&self, entry: &str) -> Step {
        Step::of_call(entry, &self.method.name, self.arguments)
    }
}

impl<'r> Session<'r> {
    pub fn open(job: Job, reporter: &'r Reporter) -> Result<Self, String> {
        let mut file = PluginFile::read(&job.file).map_err(|error| error.to_string())?;
        let provided = provided::methods(&file.manifest);
        file.manifest.methods.extend(provided);
        let open = || Loaded::open(file, &job.copies, job.isolated.as_deref());
        let loaded = reporter.step(&Step::of("open"), open)?;
        let (live, threads) = (AtomicUsize::new(0), threads().len());
        Ok(Self { job, reporter, loaded, live, threads, faults: AtomicU64::new(0), repeated: AtomicU64::new(0) })
    }

    pub fn manifest(&self) -> &Manifest {
        &self.loaded.code.manifest
    }

    pub fn methods(&self) -> impl Iterator<Item = &MethodSpec> {
        self.manifest().methods.iter().filter(|method| self.job.methods.contains(&method.name))
    }

    /// The calls to make: each method with the generated arguments and with the arguments of `--call`.
    pub fn calls(&self, arguments: fn(&MethodSpec) -> Vec<String>) -> impl Iterator<Item = (&MethodSpec, String)> {
        self.methods().flat_map(move |method| {
            let extra = self.job.calls.iter().filter(|call| call.method == method.name);
            let sets = arguments(method).into_iter().chain(extra.map(|call| call.arguments.clone()));
            sets.map(move |set| (method, set))
        })
    }

    pub fn try_bring_up(&self) -> Result<Harness<'_>, Finding> {
        let Job { options, withheld, .. } = &self.job;
        let options = self.manifest().options(options).map_err(|error| Finding::new(error.to_string()))?;
        let behind = self.loaded.host();
        let start = || self.loaded.start(&behind, options, withheld.as_deref());
        let started = self.reporter.step(&Step::of("start"), start);
        let instance = started.map_err(|error| {
            let refusal = Finding::new(error.to_string());
            if error.is_fault() {
                self.found(refusal.clone());
            }
            self.wait_for_threads();
            refusal
        })?;
        self.live.fetch_add(1, Ordering::SeqCst);
        self.reporter.tell(&Message::Started);
        let (lease, open, made) = (instance.lease(), Mutex::default(), AtomicUsize::new(0));
        Ok(Harness { session: self, instance, lease, behind, open, made })
    }

    /// Starts an instance, and reports a finding if it does not start.
    pub fn bring_up(&self) -> Result<Harness<'_>, String> {
        self.try_bring_up().map_err(|refusal| {
            self.found(refusal);
            "it does not start".to_owned()
        })
    }

    pub fn found(&self, finding: Finding) {
        self.reporter.tell(&Message::Found(finding));
    }

    /// Reports faults that the host has counted since the last check, for `call` unless other calls ran meanwhile.
    fn judge_counters(&self, call: Option<Call<'_>>) {
        let call = call.filter(|_| !matches!(self.job.check, Check::Concurrency | Check::Events));
        let tell = |what: &str| {
            self.found(call.map_or_else(|| Finding::new(what), |call| Finding::at(&call.step("call"), what)))
        };
        let health = &self.loaded.health;
        let is_new = |known: &AtomicU64, now: &AtomicU64| {
            let now = now.load(Ordering::SeqCst);
            known.fetch_max(now, Ordering::SeqCst) < now
        };
        if is_new(&self.faults, &health.faults)
            && let Some(fault) = health.last_fault()
        {
            tell(&fault);
        }
        if is_new(&self.repeated, &health.repeated) {
            tell("it answered a call that was answered before, or that it was not given");
        }
    }

    fn judge_answer(&self, step: &Step, answer: &Answer) {
        let (Answer::Refused(RpcError { code, message }) | Answer::Failed(RpcError { code, message })) = answer else {
            return;
        };
        let crashed = format!("The plugin '{}' crashed", self.manifest().id);
        let what = match (*code, message.as_str()) {
            (code, "") => format!("its error {} has no message", code.0),
            (RpcErrorCode::INTERNAL, NO_ANSWER) => "its reply was dropped unanswered".to_owned(),
            (RpcErrorCode::INTERNAL, message) if message == crashed => self.crash_in(step),
            // The host also refuses answers for their length. That is no defect: they may quote a long argument.
            (RpcErrorCode::INTERNAL, message) if message == BadAnswer::NotJson.to_string() => message.to_owned(),
            (RpcErrorCode::METHOD_NOT_FOUND, message) if message != UNKNOWN && self.lists(step) => {
                "the manifest lists the method, and the plugin answers that there is none".to_owned()
            }
            _ => return,
        };
        self.found(Finding::at(step, &what));
    }

    fn lists(&self, step: &Step) -> bool {
        self.manifest().methods.iter().any(|method| Some(&method.name) == step.method.as_ref())
    }

    /// Describes how the plugin's process ended during a call.
    fn crash_in(&self, step: &Step) -> String {
        let until = Instant::now() + CRASH_PATIENCE;
        while Instant::now() < until {
            let crash = self.loaded.runners.read().last_crash.filter(|crash| crash.method == step.method);
            if let Some(Crash { how, .. }) = crash {
                return format!("it ended its process ({how})");
            }
            std::thread::sleep(LOOK);
        }
        // If several calls were running, the host records the crash for one of them.
        "its process ended before it was answered".to_owned()
    }

    /// The attempts that the sandbox denied, to append to a summary; empty if none.
    pub fn denials(&self) -> String {
        let kinds = self.loaded.runners.read().denials.by_kind;
        let told: Vec<_> = kinds.iter().map(|(kind, of)| format!("{} {kind} ({})", of.count, of.last)).collect();
        if told.is_empty() { String::new() } else { format!("; refused by the sandbox: {}", told.join(", ")) }
    }

    /// Waits until the plugin's threads have ended, as they must after the last `destroy`. The threads of an isolated plugin
    /// end with its process.
    fn wait_for_threads(&self) {
        if self.live.load(Ordering::SeqCst) > 0 || self.job.isolated.is_some() {
            return;
        }
        let deadline = Instant::now() + self.job.deadline();
        loop {
            let now = threads();
            let Some(surplus) = now.len().checked_sub(self.threads).filter(|surplus| *surplus > 0) else { return };
            if Instant::now() >= deadline {
                let names = now.join(", ");
                let what = format!("{surplus} threads that it began still run after destroy (of all: {names})");
                return self.found(Finding::new(what));
            }
            std::thread::sleep(LOOK);
        }
    }
}

impl Harness<'_> {
    pub fn call<'c>(&self, method: &'c MethodSpec, arguments: &'c str) -> Call<'c> {
        let call = self.begin(method, arguments);
        self.run(call);
        call
    }

    /// Opens a call, which [`Harness::run`] makes.
    pub fn begin<'c>(&self, method: &'c MethodSpec, arguments: &'c str) -> Call<'c> {
        let position = self.instance.manifest().methods.iter().position(|known| known.name == method.name);
        let (token, answer) = self.session.loaded.calls.open(self.instance.id, position.unwrap_or(usize::MAX));
        let call = Call { method, arguments, token };
        self.open.lock().insert(token, (call.step("call"), answer));
        self.made.fetch_add(1, Ordering::Relaxed);
        call
    }

    /// Makes an opened call, and judges its answer unless the plugin keeps the call. Returns the time in the plugin's code,
    /// without waits for a CPU.
    pub fn run(&self, call: Call<'_>) -> Duration {
        let lane = Lane::pooled(call.method);
        let run = || {
            let (began, before) = (Instant::now(), waited());
            self.instance.call(call.token, call.method, call.arguments.as_bytes(), lane);
            began.elapsed().saturating_sub(waited().saturating_sub(before))
        };
        let took = self.session.reporter.step(&call.step("call"), run);
        self.session.judge_counters(Some(call));
        self.settle(call.token);
        took
    }

    /// Checks a call's answer, if it has arrived. Returns whether the call is still unanswered.
    fn settle(&self, token: u64) -> bool {
        let mut open = self.open.lock();
        let Some((_, answer)) = open.get_mut(&token) else { return false };
        let answer = match answer.try_recv() {
            Err(TryRecvError::Empty) => return true,
            answer => answer,
        };
        let judged = open.remove(&token).zip(answer.ok());
        drop(open);
        if let Some(((step, _), answer)) = judged {
            self.session.judge_answer(&step, &answer);
        }
        false
    }

    /// Whether a call is still unanswered.
    pub fn is_kept(&self, call: Call<'_>) -> bool {
        self.open.lock().contains_key(&call.token)
    }

    pub fn calls(&self) -> usize {
        self.made.load(Ordering::Relaxed)
    }

    /// Notifies the plugin that nobody waits for a call, as after the end of its client's connection.
    pub fn cancel(&self, call: Call<'_>) {
        self.session.loaded.calls.give_up(call.token, false);
        self.open.lock().remove(&call.token);
        self.notify_cancelled(call);
    }

    /// Sends only the notice: the host still accepts an answer.
    pub fn notify_cancelled(&self, call: Call<'_>) {
        self.session.reporter.step(&call.step("cancel"), || self.instance.cancel(call.token));
        self.session.judge_counters(Some(call));
    }

    /// Sends events to the plugin, and waits until it has received them.
    pub fn tell(&self, events: &[Event]) {
        self.session.reporter.step(&Step::of("event"), || {
            events.iter().for_each(|event| self.instance.events.offer(event));
            while !self.instance.events.is_idle() {
                std::thread::sleep(LOOK);
            }
        });
        self.session.judge_counters(None);
    }

    /// Begins to stop the instance. The host asks it to answer its kept calls (`quiesce`).
    pub fn retire(&self) {
        self.instance.retire(END_PATIENCE);
    }

    /// A lease for a call; `None` after [`Harness::retire`].
    pub fn lease(&self) -> Option<Lease> {
        self.instance.lease()
    }

    /// Stops the instance, and reports calls without an answer and threads that still run.
    pub fn finish(self) {
        let Self { session, .. } = self;
        self.retire();
        let until = Instant::now() + session.job.deadline();
        let tokens: Vec<u64> = self.open.lock().keys().copied().collect();
        for token in tokens {
            while self.settle(token) && Instant::now() < until {
                std::thread::sleep(LOOK);
            }
        }
        for (step, _) in std::mem::take(&mut *self.open.lock()).into_values() {
            let what = "it was never answered, though quiesce was called: its token is kept for ever";
            session.found(Finding::at(&step, what));
        }
        let Self { lease, instance, .. } = self;
        drop(lease);
        session.reporter.step(&Step::of("stop"), || instance.wait_ended(Instant::now() + END_PATIENCE));
        drop(instance);
        session.judge_counters(None);
        session.live.fetch_sub(1, Ordering::SeqCst);
        session.wait_for_threads();
    }
}

/// How long this thread has waited for a CPU; zero if the system does not report it. A busy machine is not the plugin's
/// fault.
fn waited() -> Duration {
    let read = || {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        text.split(' ').nth(1)?.parse().ok().map(Duration::from_nanos)
    };
    read().unwrap_or_default()
}

/// The names of the threads of this process; empty if the system does not report them.
fn threads() -> Vec<String> {
    let name = |entry: std::io::Result<std::fs::DirEntry>| {
        let name = std::fs::read_to_string(entry.ok()?.path().join("comm")).ok()?;
        Some(name.trim_end().to_owned())
    };
    std::fs::read_dir("/proc/self/task").into_iter().flatten().filter_map(name).collect()
}
