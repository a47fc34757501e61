//! The process that runs the plugin: it opens the file, makes instances, and judges what they did.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use outrigger_abi::{ABI_MINOR, PluginTable};
use outrigger_sdk::manifest::{Manifest, MethodSpec};
use outrigger_sdk::plugin::NO_ANSWER;
use outrigger_sdk::testing::{StubHost, WalletState};
use outrigger_service::log::Level;
use outrigger_service::{Chain, Events, Log, Mempool, NodeRpc, Result as ServiceResult, Scope, Signer, Wallet};
use outrigger_values::RpcErrorCode;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::protocol::{Finding, Job, Message, Step};
use super::reporter::Reporter;
use crate::isolated::Isolation;
use crate::node::{CannedNode, UNKNOWN};
use crate::probe::{Answer, CallName, Offer, Probe, Refusal, StrictHost};
use outrigger_plugins::file::PluginFile;

/// How often it is looked whether the plugin's threads have ended.
const LOOK: Duration = Duration::from_millis(1);

/// How the lines begin that the SDK writes to the log where a plugin panics.
const PANIC_LINE: &str = "panic at ";

/// The blocks of the chain that the plugin sees.
const BLOCKS: usize = 3;

/// Which host an instance gets.
#[derive(Clone, Copy)]
pub struct Shape<'a> {
    /// Its minor version.
    pub minor: u32,
    /// A service that it does not give, though the manifest asks for it.
    pub withheld: Option<&'a str>,
    /// A service that it gives without any function.
    pub empty: Option<&'a str>,
}

impl Shape<'_> {
    /// A host as this one is.
    pub const USUAL: Self = Self { minor: ABI_MINOR, withheld: None, empty: None };
}

/// A running instance and what it runs on.
pub struct Harness<'a> {
    /// The instance.
    pub probe: Probe<'a>,
    /// The chain, mempool and wallet behind its services.
    pub behind: StubHost,
}

/// What the checks work with.
pub struct Session<'r> {
    /// What to do.
    pub job: Job,
    /// The file.
    pub file: PluginFile,
    /// Tells the tool.
    pub reporter: &'r Reporter,
    table: &'static PluginTable,
    /// The plugin's own processes, where it has them.
    pub isolation: Option<&'static Isolation>,
    /// The instances that have not ended.
    live: AtomicUsize,
    /// The threads of this process before the plugin made any.
    threads: Option<usize>,
}

impl<'r> Session<'r> {
    /// Opens the plugin.
    ///
    /// # Errors
    /// Why it cannot be opened.
    pub fn open(job: Job, reporter: &'r Reporter) -> Result<Self, String> {
        let file = PluginFile::read(&job.file).map_err(|error| error.to_string())?;
        let open = || -> Result<_, String> {
            match &job.isolated {
                None => Ok((file.open(&job.copies).map_err(|error| error.to_string())?, None)),
                Some(reach) => {
                    let library = file.copy_into(&job.copies).map_err(|error| error.to_string())?;
                    let isolation = Isolation::begin(&file, library, reach).map_err(|error| error.to_string())?;
                    Ok((Isolation::table(), Some(isolation)))
                }
            }
        };
        let (table, isolation) = reporter.step(Step::of("open"), open)?;
        Ok(Self {
            job,
            file,
            reporter,
            table,
            isolation,
            live: AtomicUsize::new(0),
            threads: threads().map(|threads| threads.len()),
        })
    }

    /// How long anything may take.
    pub fn deadline(&self) -> Duration {
        Duration::from_millis(self.job.deadline_ms)
    }

    /// The methods to call.
    pub fn methods(&self) -> impl Iterator<Item = &MethodSpec> {
        self.file.manifest.methods.iter().filter(|method| self.job.methods.contains(&method.name))
    }

    /// Makes an instance with the options of the job and some more. A refusal is left to the caller.
    pub fn try_bring_up(&self, shape: Shape<'_>, options: &Map<String, Value>) -> Result<Harness<'_>, Refusal> {
        let mut given = self.job.options.clone();
        given.extend(options.clone());
        let options = self.file.manifest.options(&given).map_err(|error| Refusal {
            function: "options",
            status: 0,
            reason: error.to_string(),
        })?;
        let behind = test_host();
        let host = StrictHost::new(shape.minor, self.offers(&behind, shape));
        let probe = Probe::bring_up(self.table, host, &Value::Object(options).to_string(), self.reporter);
        if probe.is_err() {
            self.judge_end(host, &behind);
        }
        let probe = probe?;
        self.live.fetch_add(1, Ordering::SeqCst);
        self.reporter.tell(&Message::Started);
        Ok(Harness { probe, behind })
    }

    /// Makes an instance that must come up.
    pub fn bring_up(&self, shape: Shape<'_>) -> Option<Harness<'_>> {
        match self.try_bring_up(shape, &Map::new()) {
            Ok(harness) => Some(harness),
            Err(refusal) => {
                self.found(Finding::new(match self.fault_of(&refusal) {
                    Some(fault) => fault,
                    None => format!("{} refused: {}", refusal.function, refusal.reason),
                }));
                None
            }
        }
    }

    /// What is wrong with a refusal; none when it says why.
    pub fn fault_of(&self, refusal: &Refusal) -> Option<String> {
        let Refusal { function, status, reason } = refusal;
        reason
            .is_empty()
            .then(|| format!("{function} failed with status {status} and no reason: a fault of the plugin"))
    }

    /// Tells that something is wrong.
    pub fn found(&self, finding: Finding) {
        self.reporter.found(finding);
    }

    /// Takes an instance down, and judges all that it did.
    pub fn finish(&self, harness: Harness<'_>) {
        let Harness { probe, behind } = harness;
        let host = probe.host;
        probe.quiesce();
        for call in host.wait_answered(self.deadline()) {
            self.found(Finding::of(
                &call,
                "it was never answered, though quiesce was called: its token is kept for ever",
            ));
        }
        let answers = host.take_answers();
        for (call, answer) in &answers {
            let step = Step::after(call, "reading of its answer");
            if let Some(fault) = self.reporter.step(step, || self.fault_of_answer(&call.method, answer)) {
                self.found(Finding::of(call, fault));
            }
        }
        probe.end();
        self.live.fetch_sub(1, Ordering::SeqCst);
        // Answers outlive their instance, and are released wherever the host is done with them.
        std::thread::scope(|scope| scope.spawn(|| self.release(answers)).join()).unwrap_or_default();
        self.judge_end(host, &behind);
    }

    fn release(&self, answers: Vec<(CallName, Answer)>) {
        for (call, answer) in answers {
            self.reporter.step(Step::after(&call, "release of its answer"), || drop(answer));
        }
    }

    /// What is wrong with an answer.
    fn fault_of_answer(&self, method: &str, answer: &Answer) -> Option<String> {
        if !answer.is_unchanged() {
            return Some("the bytes of its answer changed after they were handed over".to_owned());
        }
        if answer.code == 0 {
            let body: &[u8] = &answer.body;
            return match serde_json::from_slice::<&RawValue>(body) {
                Err(error) => Some(format!("the answer is not JSON: {error}")),
                Ok(_) if body.contains(&b'\n') || body.contains(&b'\r') => {
                    Some("the answer is not one line, as clients read it".to_owned())
                }
                Ok(_) => None,
            };
        }
        let crash = self.isolation.and_then(|isolation| isolation.crash_in(method, answer.code, &answer.body));
        if crash.is_some() {
            return crash;
        }
        let listed = || self.file.manifest.methods.iter().any(|known| known.name == method);
        match std::str::from_utf8(&answer.body) {
            Err(error) => Some(format!("the message of its error {} is not UTF-8: {error}", answer.code)),
            Ok("") => Some(format!("its error {} has no message", answer.code)),
            Ok(NO_ANSWER) if answer.code == RpcErrorCode::INTERNAL.0 => {
                Some("its reply was dropped unanswered".to_owned())
            }
            Ok(message) if answer.code == RpcErrorCode::METHOD_NOT_FOUND.0 && message != UNKNOWN && listed() => {
                Some("the manifest lists the method, and the plugin answers that there is none".to_owned())
            }
            Ok(_) => None,
        }
    }

    fn judge_end(&self, host: &StrictHost, behind: &StubHost) {
        self.wait_for_threads();
        let errors: Vec<String> =
            behind.log.lines().into_iter().filter(|(level, _)| *level == Level::Error).map(|(_, line)| line).collect();
        let faults = host.take_faults();
        if faults.is_empty()
            && let Some(panic) = errors.iter().find(|line| line.starts_with(PANIC_LINE))
        {
            // Its functions would have told of it by their status.
            self.found(Finding::new(format!("a thread of its own ended in a panic: {panic}")));
        }
        for line in errors {
            self.reporter.tell(&Message::Logged(line));
        }
        for fault in faults {
            self.found(fault.into());
        }
        let given = u64::from(host.given.load(Ordering::SeqCst));
        let released = host.releases.once.load(Ordering::SeqCst);
        if released < given {
            let kept = given - released;
            self.found(Finding::new(format!("of {given} answers of services it never released {kept}")));
        }
        let again = host.releases.again.load(Ordering::SeqCst);
        if again > 0 {
            self.found(Finding::new(format!("it released an answer of a service again, {again} times")));
        }
    }

    /// Waits until the plugin's threads have ended: after the last `destroy` it has none.
    fn wait_for_threads(&self) {
        if self.live.load(Ordering::SeqCst) > 0 {
            return;
        }
        let (Some(before), deadline) = (self.threads, Instant::now() + self.deadline()) else { return };
        loop {
            let Some(now) = threads() else { return };
            if now.len() <= before {
                return;
            }
            if Instant::now() >= deadline {
                let (surplus, names) = (now.len() - before, now.join(", "));
                let what = format!("{surplus} threads that it began still run after destroy (of all: {names})");
                self.found(Finding::new(what));
                return;
            }
            std::thread::sleep(LOOK);
        }
    }

    fn offers(&self, behind: &StubHost, shape: Shape<'_>) -> Vec<Offer> {
        let wanted = |name: &str| {
            let Manifest { services, optional, .. } = &self.file.manifest;
            services.iter().chain(optional).any(|service| service == name) && shape.withheld != Some(name)
        };
        let all = [
            Offer::new::<dyn Chain>(behind.chain.clone()),
            Offer::new::<dyn Mempool>(behind.mempool.clone()),
            Offer::new::<dyn Wallet>(behind.wallet.clone()),
            Offer::new::<dyn Signer>(behind.wallet.clone()),
            Offer::new::<dyn NodeRpc>(Arc::new(CannedNode { granted: self.file.manifest.node_methods.clone() })),
            Offer::new::<dyn Log>(behind.log.clone()),
            Offer::new::<dyn Events>(Arc::new(NothingDropped)),
        ];
        let offers = all.into_iter().filter(|offer| wanted(offer.name));
        offers.map(|offer| if shape.empty == Some(offer.name) { offer.empty() } else { offer }).collect()
    }
}

/// The queue of events of a checker never drops one.
struct NothingDropped;

impl Events for NothingDropped {
    fn dropped(&self, _: Scope) -> ServiceResult<u64> {
        Ok(0)
    }
}

/// A host in memory, with a short chain and an empty wallet.
fn test_host() -> StubHost {
    let host = StubHost::new();
    for _ in 0..BLOCKS {
        host.chain.mine(vec![]);
    }
    host.wallet.set(Some(WalletState::empty("check")));
    host
}

/// The names of the threads of this process; none where the system does not tell.
fn threads() -> Option<Vec<String>> {
    let name = |entry: std::io::Result<std::fs::DirEntry>| {
        let name = std::fs::read_to_string(entry.ok()?.path().join("comm")).ok()?;
        Some(name.trim_end().to_owned())
    };
    Some(std::fs::read_dir("/proc/self/task").ok()?.filter_map(name).collect())
}
