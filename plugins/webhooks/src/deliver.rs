//! One hook's thread: it posts the entries of wallets' logs, and repeats those that fail.
//!
//! A receiver that cannot be reached, or that does not answer, pauses the whole hook. After an answer that is no success, only the entry
//! waits. A hook has a thread of its own, so no hook waits for another one's receiver.

use std::collections::VecDeque;
use std::io;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use outrigger_sdk::bitcoin::hashes::{Hash, HashEngine, Hmac, HmacEngine, sha256};
use outrigger_sdk::service::log::Level;
use outrigger_sdk::service::metrics::Measure;
use outrigger_sdk::service::wallet::LogEntry;
use outrigger_sdk::service::{Result, Scope};
use outrigger_sdk::{Host, net};
use serde_json::{Value, json};

use crate::http;
use crate::options::Hook;
use crate::queue::{Key, Letter, MAX_WAITING, Queue, pause};

/// The time for a connection, the request and the answer.
const POST_TIME: Duration = Duration::from_secs(20);

/// How often a hook looks at the logs without an event: events may be lost.
const POLL: Duration = Duration::from_secs(10);

/// The most entries that are read at once.
const READ: u32 = 16;

/// The longest body, in bytes. A longer one is without its payments.
const MAX_BODY: usize = 1 << 20;

/// How an attempt failed.
pub enum Failure {
    /// No answer.
    Unreachable(String),
    /// An answer that is no success.
    Refused(String),
}

/// What a hook's thread shares with others.
#[derive(Default)]
struct Shared {
    stops: bool,
    /// Whether a log has grown.
    has_news: bool,
    /// The open connection, which the end shuts down.
    stream: Option<UnixStream>,
    report: Value,
}

/// A hook and its thread's state.
pub struct Delivery {
    pub hook: Hook,
    host: Host,
    shared: Mutex<Shared>,
    changed: Condvar,
}

/// The state of the thread alone.
pub struct Round {
    pub queue: Queue,
    news: VecDeque<(String, LogEntry)>,
    delivered: u64,
    /// Attempts in a row without an answer, and until when the hook pauses.
    failures: u32,
    paused: u64,
    last_error: Option<String>,
    /// Whether the last attempt was a repetition: new entries take turns with them.
    has_repeated: bool,
}

impl Round {
    pub fn new(queue: Queue) -> Self {
        Self {
            queue,
            news: VecDeque::new(),
            delivered: 0,
            failures: 0,
            paused: 0,
            last_error: None,
            has_repeated: false,
        }
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

impl Delivery {
    pub fn new(host: Host, hook: Hook) -> Self {
        Self { hook, host, shared: Mutex::default(), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state for `listwebhooks`.
    pub fn report(&self) -> Value {
        self.lock().report.clone()
    }

    /// A log has grown.
    pub fn wake(&self) {
        self.lock().has_news = true;
        self.changed.notify_all();
    }

    /// Begins no further attempt.
    pub fn quiesce(&self) {
        self.lock().stops = true;
        self.changed.notify_all();
    }

    /// Ends the current attempt, too.
    pub fn stop(&self) {
        self.quiesce();
        if let Some(stream) = self.lock().stream.take() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    fn stops(&self) -> bool {
        self.lock().stops
    }

    /// Delivers until the plugin stops.
    pub fn run(&self) {
        while !self.stops() {
            let mut round = match Queue::open(&self.host, &self.hook.url.text) {
                Ok(queue) => Round::new(queue),
                Err(error) => {
                    self.host.log(Level::Warn, format!("the store cannot be read: {error}"));
                    self.wait(POLL);
                    continue;
                }
            };
            // After an error of the store, the round begins with the stored state.
            if let Err(error) = self.deliver(&mut round) {
                self.host.log(Level::Warn, format!("the hook '{}' pauses: {error}", self.hook.url.text));
                self.wait(POLL);
            }
        }
    }

    fn deliver(&self, round: &mut Round) -> Result<()> {
        while !self.stops() {
            let now = now();
            let has_tried = self.step(round, |letter| self.post(letter), now)?;
            self.lock().report = self.report_of(round);
            self.measure(&round.queue);
            if !has_tried {
                let due = round.queue.waiting.values().map(|failing| failing.next).min();
                // While the hook pauses, neither news nor repetitions are posted.
                let until = if round.paused > now { Some(round.paused) } else { due };
                let until = until.map_or(POLL, |until| Duration::from_secs(until.saturating_sub(now).max(1)));
                self.wait(until.min(POLL));
            }
        }
        Ok(())
    }

    fn wait(&self, time: Duration) {
        let shared = self.lock();
        let idle = |shared: &mut Shared| !shared.stops && !shared.has_news;
        let waited = self.changed.wait_timeout_while(shared, time, idle);
        waited.unwrap_or_else(PoisonError::into_inner).0.has_news = false;
    }

    /// Makes one attempt, if there is something to post now.
    ///
    /// # Errors
    /// Those of the store.
    pub fn step(
        &self,
        round: &mut Round,
        post: impl Fn(&Letter) -> std::result::Result<(), Failure>,
        now: u64,
    ) -> Result<bool> {
        if round.paused > now {
            return Ok(false);
        }
        let Some(letter) = self.choose(round, now)? else { return Ok(false) };
        round.has_repeated = round.queue.waiting.contains_key(&letter.key);
        match post(&letter) {
            Ok(()) => {
                round.queue.delivered(&letter.key)?;
                round.failures = 0;
                round.delivered = round.delivered.saturating_add(1);
            }
            // The plugin stops, and its end has ended the attempt.
            Err(_) if self.stops() => {}
            Err(failure) => {
                let error = match failure {
                    Failure::Refused(error) => {
                        round.failures = 0;
                        error
                    }
                    Failure::Unreachable(error) => {
                        if round.failures == 0 {
                            let url = &self.hook.url.text;
                            self.host.log(Level::Warn, format!("'{url}' gives no answer, and is asked again: {error}"));
                        }
                        round.failures = round.failures.saturating_add(1);
                        round.paused = now.saturating_add(pause(round.failures));
                        error
                    }
                };
                round.last_error = Some(error.clone());
                if round.queue.failed(&letter, error.clone(), now)? {
                    let ((number, wallet), url) = (&letter.key, &self.hook.url.text);
                    self.host
                        .log(Level::Error, format!("dead letter: entry {number} of '{wallet}' to '{url}': {error}"));
                }
            }
        }
        Ok(true)
    }

    /// The entry to post now. While the receiver does not answer, it is asked with an entry that waits, and no other one joins those.
    fn choose(&self, round: &mut Round, now: u64) -> Result<Option<Letter>> {
        if round.has_repeated
            && round.failures == 0
            && let Some(letter) = self.next(round)?
        {
            return Ok(Some(letter));
        }
        match round.queue.due(now)? {
            Some(letter) => Ok(Some(letter)),
            None => self.next(round),
        }
    }

    /// The next entry that the hook wants.
    fn next(&self, round: &mut Round) -> Result<Option<Letter>> {
        if round.queue.waiting.len() >= MAX_WAITING {
            return Ok(None);
        }
        if round.news.is_empty() {
            self.read(round)?;
        }
        while let Some((wallet, entry)) = round.news.pop_front() {
            if self.hook.kinds.contains(&entry.kind) {
                let mut told = entry.to_json(&wallet);
                let mut body = told.to_string();
                if body.len() > MAX_BODY {
                    told["payments"] = json!([]);
                    told["payments_omitted"] = json!(true);
                    body = told.to_string();
                }
                return Ok(Some(Letter { key: (entry.number, wallet), body }));
            }
            round.queue.advance(&wallet, entry.number)?;
        }
        Ok(None)
    }

    /// Reads entries after the positions. A wallet that is not loaded has none.
    fn read(&self, round: &mut Round) -> Result<()> {
        let wallets = self.hook.wallets.clone().map_or_else(|| self.host.wallet.list(Scope::NONE), Ok)?;
        for wallet in wallets {
            let position = round.queue.positions.get(&wallet).copied().unwrap_or(0);
            let log = self.host.wallet_scope(&wallet).and_then(|scope| self.host.wallet.log(scope, position, READ));
            let Ok(log) = log else { continue };
            if position > 0 && log.dropped > position {
                let url = &self.hook.url.text;
                self.host.log(Level::Error, format!("'{url}' misses entries of '{wallet}', which the log has dropped"));
                round.queue.advance(&wallet, log.dropped)?;
            }
            round.news.extend(log.entries.into_iter().map(|entry| (wallet.clone(), entry)));
        }
        Ok(())
    }

    fn report_of(&self, round: &Round) -> Value {
        let queue = &round.queue;
        let letters = queue.dead.iter().map(|((number, wallet), failing)| {
            let (first, error) = (failing.first, &failing.error);
            json!({"wallet": wallet, "number": number, "attempts": failing.attempts, "first": first, "error": error})
        });
        let letters: Vec<Value> = letters.collect();
        json!({
            "url": self.hook.url.text,
            "delivered": round.delivered,
            "waiting": queue.waiting.len(),
            "dead": queue.dead_count,
            "dead_letters": letters,
            "last_error": round.last_error,
        })
    }

    /// Records the numbers of waiting entries and of dead letters. A URL may have a secret in its path, and metrics are public.
    fn measure(&self, queue: &Queue) {
        let number = self.hook.number.to_string();
        let hook = [("hook", number.as_str()), ("receiver", self.hook.url.entry.as_str())];
        let level = |number: u64| Measure::Level { value: i64::try_from(number).unwrap_or(i64::MAX) };
        self.host.measure("waiting", "Events that wait to be repeated", &hook, level(queue.waiting.len() as u64));
        self.host.measure("dead_letters", "Events that were given up after three days", &hook, level(queue.dead_count));
    }

    /// Posts a letter through the host.
    fn post(&self, letter: &Letter) -> std::result::Result<(), Failure> {
        let unreachable = |error: io::Error| Failure::Unreachable(error.to_string());
        let status = self.attempt(letter).map_err(unreachable);
        self.lock().stream = None;
        match status? {
            200..300 => Ok(()),
            status => Err(Failure::Refused(format!("the receiver answered {status}"))),
        }
    }

    fn attempt(&self, letter: &Letter) -> io::Result<u16> {
        let until = Instant::now() + POST_TIME;
        let mut stream = net::begin(&self.host, &self.hook.url.entry)?;
        stream.set_read_timeout(Some(POST_TIME))?;
        {
            let mut shared = self.lock();
            if shared.stops {
                return Err(io::ErrorKind::Interrupted.into());
            }
            shared.stream = Some(stream.try_clone()?);
        }
        net::finish(&stream)?;
        let (time, key) = (now().to_string(), idempotency_key(&letter.key));
        let signature = signature(self.hook.secret.expose(), &time, &letter.body);
        let headers = [("Outrigger-Time", &*time), ("Outrigger-Signature", &*signature), ("Idempotency-Key", &*key)];
        http::post(&mut stream, &self.hook.url, &headers, letter.body.as_bytes(), until)
    }
}

/// The entry's number, and a digest of the wallet's name: two wallets may have the same number.
pub fn idempotency_key((number, wallet): &Key) -> String {
    let wallet = sha256::Hash::hash(wallet.as_bytes()).to_string();
    format!("{number}-{}", wallet.get(..8).unwrap_or_default())
}

/// The HMAC-SHA256 of the time, a point and the body, in hexadecimal.
pub fn signature(secret: &str, time: &str, body: &str) -> String {
    let mut engine = HmacEngine::<sha256::Hash>::new(secret.as_bytes());
    for part in [time, ".", body] {
        engine.input(part.as_bytes());
    }
    Hmac::from_engine(engine).to_string()
}
