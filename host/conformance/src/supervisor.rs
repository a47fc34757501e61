//! Starts the process that runs the plugin, reads its messages, and kills it when it hangs.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::protocol::{Finding, Job, Message, Step};

/// The name of the hidden command that does a job.
pub const PART_COMMAND: &str = "check-part";

/// How long the process may send no message while no function of the plugin runs, beyond the limit of a function.
const IDLE_SPARE: Duration = Duration::from_secs(20);

/// How long to wait for the end of standard error; a process that the plugin started may hold it open.
const STDERR_TIMEOUT: Duration = Duration::from_secs(1);

/// Occurs in each finding about the status that a function returned.
const FAULT: &str = " status ";

/// The beginning of the text that the SDK logs when a plugin panics.
const PANIC: &str = "panic at ";

/// The process that runs the plugin, if any.
static RUNNING: Mutex<Option<Child>> = Mutex::new(None);

/// Ends the process that runs the plugin, and keeps others from starting, so that nothing writes to the folder of a check any more.
pub fn end_for_good() {
    let mut running = RUNNING.lock();
    if let Some(child) = running.as_mut() {
        // These fail only if the process has already ended.
        let _ = child.kill().and_then(|()| child.wait());
    }
    std::mem::forget(running);
}

/// The result of a check.
#[derive(Default)]
pub struct Part {
    /// What is wrong with the plugin; each finding once per method.
    pub findings: Vec<Finding>,
    /// What the check did.
    pub done: String,
    /// Why there was nothing to check.
    pub skipped: Option<String>,
    pub started: bool,
    /// Methods that were excluded because they hung or ended the process.
    pub without: Vec<String>,
    /// The log of the plugin and the loader, and the plugin's standard error, by line.
    pub last_words: Vec<String>,
}

impl Part {
    pub fn add_finding(&mut self, finding: Finding) {
        let same = |known: &Finding| known.method == finding.method && known.what == finding.what;
        if !self.findings.iter().any(same) {
            self.findings.push(finding);
        }
    }

    /// Adds a finding for a panic on a thread that the plugin started. A panic in a function of the plugin already is a finding with a
    /// status.
    fn judge_panics(&mut self, words: &[String]) {
        let has_fault = self.findings.iter().any(|finding| finding.what.contains(FAULT));
        let panic = words.iter().find_map(|line| Some(line.get(line.find(PANIC)?..)?.to_owned()));
        if let Some(panic) = panic.filter(|_| !has_fault) {
            self.add_finding(Finding::new(format!("a thread of its own ended in a panic: {panic}")));
        }
    }
}

/// Runs the check of a job, and repeats it without each method that hangs or ends the process. Removes methods that fail from the job,
/// so that later checks skip them.
pub fn run(job: &mut Job) -> Part {
    let mut part = Part::default();
    loop {
        let steps = match attempt(job, &mut part) {
            Ok(None) => break,
            Ok(Some(steps)) => steps,
            Err(error) => {
                part.add_finding(Finding::new(format!("the process that runs the plugin cannot be started: {error}")));
                break;
            }
        };
        // Without a method to exclude, another attempt would end in the same way. A wrapper also fails in a method that is not listed.
        let [Step { method: Some(culprit), .. }] = steps.as_slice() else { break };
        let Some(at) = job.methods.iter().position(|method| method == culprit) else { break };
        job.methods.remove(at);
        part.without.push(culprit.clone());
        if job.methods.is_empty() && job.check.needs_methods() {
            break;
        }
    }
    let failed = |method: &String| part.findings.iter().any(|finding| finding.method.as_ref() == Some(method));
    job.methods.retain(|method| !failed(method));
    part
}

/// Starts a process for the job and waits for its end. Returns the steps that were running when it hung or ended; `None` if it
/// completed the check.
fn attempt(job: &Job, part: &mut Part) -> std::io::Result<Option<Vec<Step>>> {
    let (ours, theirs) = UnixStream::pair()?;
    let mut running = RUNNING.lock();
    let mut child = Command::new(std::env::current_exe()?)
        .args(["plugin", PART_COMMAND, &serde_json::to_string(job)?])
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let stderr = child.stderr.take().map(lines_of);
    *running = Some(child);
    drop(running);
    let messages = lines_of(ours);
    let mut listener = Listener { part, running: HashMap::new(), done: false };
    let limit = job.deadline();
    let hung = listener.listen(&messages, limit);
    // It stays there until now, for `end_for_good`.
    let Some(mut child) = RUNNING.lock().take() else { return Ok(None) };
    if hung {
        // This fails only if the process has already ended.
        let _ = child.kill();
    }
    let steps = listener.conclude(hung.then_some(limit), child.wait()?);
    let words = stderr.map(rest_of).unwrap_or_default();
    part.judge_panics(&words);
    part.last_words.extend(words);
    Ok(steps)
}

/// Reads lines on a thread, so that a reader can wait for them with a timeout.
fn lines_of(source: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        let mut reader = BufReader::new(source);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
            if sender.send(String::from_utf8_lossy(&line).trim_end().to_owned()).is_err() {
                return;
            }
            line.clear();
        }
    });
    lines
}

fn rest_of(lines: Receiver<String>) -> Vec<String> {
    let deadline = Instant::now() + STDERR_TIMEOUT;
    let next = || lines.recv_timeout(deadline.saturating_duration_since(Instant::now())).ok();
    std::iter::from_fn(next).collect()
}

struct Listener<'a> {
    part: &'a mut Part,
    /// The step that each thread of the process runs, and since when.
    running: HashMap<String, (Step, Instant)>,
    done: bool,
}

impl Listener<'_> {
    /// Reads messages until the process closes the socket (returns false), or until a function of the plugin exceeds the limit or no
    /// message comes in time (returns true).
    fn listen(&mut self, messages: &Receiver<String>, limit: Duration) -> bool {
        loop {
            let now = Instant::now();
            let idle = now + limit + IDLE_SPARE;
            let until = self.running.values().map(|(_, since)| *since + limit).min().unwrap_or(idle);
            match messages.recv_timeout(until.saturating_duration_since(now)) {
                Ok(line) => self.take_line(&line),
                Err(RecvTimeoutError::Disconnected) => return false,
                Err(RecvTimeoutError::Timeout) => {
                    let late = |since: &Instant| since.elapsed() >= limit;
                    self.running.retain(|_, (_, since)| late(since));
                    return true;
                }
            }
        }
    }

    fn take_line(&mut self, line: &str) {
        // The process runs this program, so its lines are valid. Only the last one is incomplete if the process ended within it.
        let Ok(message) = serde_json::from_str(line) else { return };
        match message {
            Message::Enter { thread, step } => {
                self.running.insert(thread, (step, Instant::now()));
            }
            Message::Leave { thread } => {
                self.running.remove(&thread);
            }
            Message::Started => self.part.started = true,
            Message::Found(finding) => self.part.add_finding(finding),
            Message::Done(what) => {
                self.part.done = what;
                self.done = true;
            }
        }
    }

    /// Adds findings if the process hung (`hung` is the limit that it exceeded) or ended too early. Returns the steps that were running;
    /// `None` if the process completed the check.
    fn conclude(self, hung: Option<Duration>, status: ExitStatus) -> Option<Vec<Step>> {
        let what = match hung {
            Some(limit) => format!("it did not return within {} s", limit.as_secs()),
            None if self.done && status.success() => return None,
            None => format!("it ended the process {}", described(status)),
        };
        let steps: Vec<Step> = self.running.into_values().map(|(step, _)| step).collect();
        let findings = match steps.as_slice() {
            [] if self.done => vec![Finding::new(format!("{what} after the check was done"))],
            [] => vec![Finding::new(format!("{what} while none of its functions was running"))],
            [step] => vec![Finding::at(step, &what)],
            several => {
                let what = format!("{what}; {} functions were running", several.len());
                several.iter().map(|step| Finding::at(step, &what)).collect()
            }
        };
        for finding in findings {
            self.part.add_finding(finding);
        }
        Some(steps)
    }
}

fn described(status: ExitStatus) -> String {
    const NAMES: [(i32, &str); 7] =
        [(4, "SIGILL"), (5, "SIGTRAP"), (6, "SIGABRT"), (7, "SIGBUS"), (8, "SIGFPE"), (9, "SIGKILL"), (11, "SIGSEGV")];
    let Some(signal) = status.signal() else {
        return format!("with exit code {}", status.code().unwrap_or_default());
    };
    let name = NAMES.iter().find(|(number, _)| *number == signal).map(|(_, name)| format!(" ({name})"));
    format!("with signal {signal}{}", name.unwrap_or_default())
}
