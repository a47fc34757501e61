//! The thread of a hook: posts the entries of the wallets' logs to the receiver, and retries failed entries.
//!
//! While the receiver is unreachable or does not answer, the whole hook pauses. After an answer other than success, only the entry waits.
//! Each hook has its own thread, so a slow receiver delays no other hook.

use std::collections::{BTreeMap, VecDeque};
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
use crate::queue::{Key, Letter, MAX_WAITING, Queue, is_to_come, pause};

/// The time limit for connecting, the request and the answer together.
const POST_TIMEOUT: Duration = Duration::from_secs(20);

/// How often an idle hook reads the logs without an event, since the host may drop events.
const POLL_INTERVAL: Duration = Duration::from_secs(10);

/// The most entries to read from a log at once.
const BATCH: u32 = 16;

/// The longest body, in bytes. A longer one is sent without its payments.
const MAX_BODY: usize = 1 << 20;

/// How an attempt failed.
pub enum Failure {
    /// The receiver was unreachable or did not answer.
    Unreachable(String),
    /// The receiver answered with a status other than 2xx.
    Refused(String),
}

/// The state that a hook's thread shares with other threads.
#[derive(Default)]
struct Shared {
    stops: bool,
    /// Whether a log has new entries.
    has_news: bool,
    /// The open connection, for [`Delivery::stop`] to shut down.
    stream: Option<UnixStream>,
    report: Value,
}

/// A hook, and the state that its thread shares.
pub struct Delivery {
    pub hook: Hook,
    host: Host,
    shared: Mutex<Shared>,
    changed: Condvar,
}

/// The state that only the hook's thread uses.
pub struct Round {
    pub queue: Queue,
    news: VecDeque<(String, LogEntry)>,
    /// Why wallets could not be read, as logged.
    unread: BTreeMap<String, String>,
    delivered: u64,
    /// The number of attempts in a row without an answer.
    failures: u32,
    /// The end of the hook's pause, in seconds since 1970.
    paused: u64,
    last_error: Option<String>,
    /// Whether the last attempt was a retry. Retries alternate with new entries.
    has_repeated: bool,
}

impl Round {
    pub fn new(queue: Queue) -> Self {
        Self {
            queue,
            news: VecDeque::new(),
            unread: BTreeMap::new(),
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

    /// The hook's entry in the answer of `listwebhooks`.
    pub fn report(&self) -> Value {
        self.lock().report.clone()
    }

    /// Wakes the thread to read the logs.
    pub fn wake(&self) {
        self.lock().has_news = true;
        self.changed.notify_all();
    }

    /// Prevents further attempts.
    pub fn quiesce(&self) {
        self.lock().stops = true;
        self.changed.notify_all();
    }

    /// Prevents further attempts, and aborts the current one.
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
        let mut failures = 0;
        while !self.stops() {
            // After an error of the store, the thread starts again from the stored state. It may post an entry again that it could not
            // record, so the pauses grow.
            let queue = Queue::open(&self.host, &self.hook.url.text);
            if let Err(error) = queue.and_then(|queue| self.deliver(&mut Round::new(queue), &mut failures)) {
                failures += 1;
                self.host.log(Level::Warn, format!("the hook to {} pauses: {error}", self.hook.url.entry));
                self.wait(Duration::from_secs(pause(failures)), false);
            }
        }
    }

    /// Sets the number of the store's failures in a row to 0 once the store has recorded an attempt.
    fn deliver(&self, round: &mut Round, failures: &mut u32) -> Result<()> {
        while !self.stops() {
            let now = now();
            let has_tried = self.step(round, |letter| self.post(letter), now)?;
            if has_tried {
                *failures = 0;
            }
            self.lock().report = self.report_of(round);
            self.measure(&round.queue);
            if !has_tried {
                let due = round.queue.waiting.values().map(|failing| failing.next).min();
                // While the hook pauses, it posts neither new entries nor retries.
                let until = if is_to_come(round.paused, now) { Some(round.paused) } else { due };
                let until = until.map_or(POLL_INTERVAL, |until| Duration::from_secs(until.saturating_sub(now).max(1)));
                self.wait(until.min(POLL_INTERVAL), true);
            }
        }
        Ok(())
    }

    /// Waits for this time, or until the plugin stops, or, with `for_news`, until a log has new entries.
    pub(crate) fn wait(&self, time: Duration, for_news: bool) {
        let shared = self.lock();
        let idle = |shared: &mut Shared| !(shared.stops || for_news && shared.has_news);
        let waited = self.changed.wait_timeout_while(shared, time, idle);
        waited.unwrap_or_else(PoisonError::into_inner).0.has_news = false;
    }

    /// Makes one attempt at the time `now`, in seconds since 1970. Returns false if there was nothing to post.
    ///
    /// # Errors
    /// The store failed.
    pub fn step(
        &self,
        round: &mut Round,
        post: impl Fn(&Letter) -> std::result::Result<(), Failure>,
        now: u64,
    ) -> Result<bool> {
        if is_to_come(round.paused, now) {
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
            // The plugin is stopping, and has aborted the attempt.
            Err(_) if self.stops() => {}
            Err(failure) => {
                let error = match failure {
                    Failure::Refused(error) => {
                        round.failures = 0;
                        error
                    }
                    Failure::Unreachable(error) => {
                        if round.failures == 0 {
                            let receiver = &self.hook.url.entry;
                            self.host.log(Level::Warn, format!("{receiver} does not answer and is retried: {error}"));
                        }
                        round.failures = round.failures.saturating_add(1);
                        round.paused = now.saturating_add(pause(round.failures));
                        error
                    }
                };
                round.last_error = Some(error.clone());
                if round.queue.failed(&letter, error.clone(), now)? {
                    let ((number, wallet), receiver) = (&letter.key, &self.hook.url.entry);
                    self.host
                        .log(Level::Error, format!("dead letter: entry {number} of '{wallet}' to {receiver}: {error}"));
                }
            }
        }
        Ok(true)
    }

    /// The entry to post now. While the receiver does not answer, the hook prefers an entry that is due for a retry to a new one.
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

    /// The next new entry of the hook's kinds. Reads on until there is one, or nothing new is left.
    fn next(&self, round: &mut Round) -> Result<Option<Letter>> {
        if round.queue.waiting.len() >= MAX_WAITING {
            return Ok(None);
        }
        while !self.stops() {
            if round.news.is_empty() {
                self.read(round)?;
            }
            let Some((wallet, entry)) = round.news.pop_front() else {
                round.queue.store_positions()?;
                break;
            };
            if self.hook.kinds.as_ref().is_none_or(|kinds| kinds.contains(&entry.kind)) {
                let mut event = entry.to_json(&wallet);
                let mut body = event.to_string();
                if body.len() > MAX_BODY {
                    event["payments"] = json!([]);
                    event["payments_omitted"] = json!(true);
                    body = event.to_string();
                }
                return Ok(Some(Letter { key: (entry.number, wallet), body }));
            }
            round.queue.pass(&(entry.number, wallet));
        }
        Ok(None)
    }

    /// Reads the entries after the positions. Logs why a wallet cannot be read, once.
    fn read(&self, round: &mut Round) -> Result<()> {
        let wallets = self.hook.wallets.clone().map_or_else(|| self.host.wallet.list(Scope::NONE), Ok)?;
        for wallet in wallets {
            let position = round.queue.positions.get(&wallet).copied().unwrap_or(0);
            let log = self.host.wallet_scope(&wallet).and_then(|scope| self.host.wallet.log(scope, position, BATCH));
            let receiver = &self.hook.url.entry;
            let log = match log {
                Ok(log) => log,
                Err(error) => {
                    let error = error.to_string();
                    if round.unread.get(&wallet) != Some(&error) {
                        self.host.log(Level::Warn, format!("{receiver} gets no entries of '{wallet}': {error}"));
                        round.unread.insert(wallet, error);
                    }
                    continue;
                }
            };
            round.unread.remove(&wallet);
            if position > 0 && log.dropped > position {
                let missed = format!("{receiver} misses entries that the log of '{wallet}' has dropped");
                self.host.log(Level::Error, missed);
                round.queue.set_position(&wallet, log.dropped);
            }
            if position > log.last {
                let other =
                    format!("the log of '{wallet}' ends before the last entry for {receiver}, which continues there");
                self.host.log(Level::Warn, other);
                round.queue.set_position(&wallet, log.last);
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

    /// Updates the metrics. Their label, like the lines of the log, has no URL, whose path may hold a secret.
    fn measure(&self, queue: &Queue) {
        let number = self.hook.number.to_string();
        let hook = [("hook", number.as_str()), ("receiver", self.hook.url.entry.as_str())];
        let level = |number: u64| Measure::Level { value: i64::try_from(number).unwrap_or(i64::MAX) };
        self.host.measure("waiting", "Events that wait to be repeated", &hook, level(queue.waiting.len() as u64));
        self.host.measure("dead_letters", "Events that were given up after three days", &hook, level(queue.dead_count));
    }

    /// Posts a letter over a connection of the host.
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
        let until = Instant::now() + POST_TIMEOUT;
        let mut stream = net::begin(&self.host, &self.hook.url.entry)?;
        stream.set_read_timeout(Some(POST_TIMEOUT))?;
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

/// The entry's number and a digest of the wallet's name, since two wallets may use the same number.
pub fn idempotency_key((number, wallet): &Key) -> String {
    let wallet = sha256::Hash::hash(wallet.as_bytes()).to_string();
    format!("{number}-{}", wallet.get(..8).unwrap_or_default())
}

/// The HMAC-SHA256 of `TIME.BODY`, in hexadecimal.
pub fn signature(secret: &str, time: &str, body: &str) -> String {
    let mut engine = HmacEngine::<sha256::Hash>::new(secret.as_bytes());
    for part in [time, ".", body] {
        engine.input(part.as_bytes());
    }
    Hmac::from_engine(engine).to_string()
}
