//! waitevents: the entries of wallets' logs after a number, now or when there are some.
//!
//! A waiting call holds no thread. The event of a wallet's log answers it. The first waiting call starts one thread, which
//! answers the calls after their timeout. That thread also looks at the logs, because an event may be lost and a wallet be
//! unloaded. The plugin sends no reply and calls no service under the lock.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use outrigger_sdk::service::Scope;
use outrigger_sdk::service::log::Level;
use outrigger_sdk::service::wallet::MAX_LOG_ENTRIES;
use outrigger_sdk::{Call, Host, Reply, RpcError, methods, typed};
use serde_json::{Value, json};

use crate::HistoryPlugin;

const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// The most wallets of a call.
const MAX_WALLETS: usize = 1_000;
/// The most entries in an answer, but at least one of each wallet.
const MAX_EVENTS: u32 = 1_000;
/// An answer with at least this many payments takes no further wallet.
const MAX_PAYMENTS: usize = 4_000;

/// A wallet, and the number after which a call wants its entries.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Cursor {
    wallet: String,
    scope: Scope,
    since: u64,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Wanted {
    cursors: Vec<Cursor>,
    /// Whether `next` is an object: a number for each wallet.
    by_wallet: bool,
}

struct Waiter {
    reply: Reply,
    wanted: Wanted,
    /// None means no timeout.
    deadline: Option<Instant>,
}

#[derive(Default)]
struct Waiters {
    /// The waiting calls, by the tokens of their replies.
    waiting: HashMap<u64, Waiter>,
    /// Whether calls get their answers at once, because the host stops or another instance takes over.
    closed: bool,
    /// Whether the thread has to end.
    ended: bool,
    thread: Option<JoinHandle<()>>,
}

pub struct Waits {
    host: Host,
    waiters: Mutex<Waiters>,
    changed: Condvar,
}

impl Waits {
    pub fn new(host: Host) -> Arc<Self> {
        Arc::new(Self { host, waiters: Mutex::default(), changed: Condvar::new() })
    }

    fn lock(&self) -> MutexGuard<'_, Waiters> {
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(self: &Arc<Self>, waiter: Waiter) {
        let (token, wanted) = (waiter.reply.token(), waiter.wanted.clone());
        let closed = {
            let mut waiters = self.lock();
            waiters.waiting.insert(waiter.reply.token(), waiter);
            if waiters.thread.is_none() && !waiters.closed {
                let waits = self.clone();
                match std::thread::Builder::new().name("waits".into()).spawn(move || waits.run()) {
                    Ok(thread) => waiters.thread = Some(thread),
                    Err(error) => self.host.log(Level::Warn, format!("calls cannot wait for events: {error}")),
                }
            }
            self.changed.notify_one();
            waiters.closed
        };
        // An entry may have come before the insertion.
        if closed || !matches!(wanted.has_news(&self.host), Ok(false)) {
            let waiter = self.lock().waiting.remove(&token);
            if let Some(waiter) = waiter {
                waiter.reply.send_shared(wanted.answer(&self.host));
            }
        }
    }

    /// Answers the calls with new entries, an error or a timeout. `wallet` is the only one to look at.
    pub fn answer_due(&self, wallet: Option<&str>) {
        let is_asked = |cursor: &&Cursor| wallet.is_none_or(|wallet| wallet == cursor.wallet);
        let scopes: BTreeSet<u64> = {
            let waiters = self.lock();
            let cursors = waiters.waiting.values().flat_map(|waiter| &waiter.wanted.cursors);
            cursors.filter(is_asked).map(|cursor| cursor.scope.0).collect()
        };
        let last = |scope: u64| self.host.wallet.log(Scope(scope), u64::MAX, 1).map(|log| log.last);
        let seen: HashMap<u64, _> = scopes.into_iter().map(|scope| (scope, last(scope))).collect();
        // A wallet that cannot be read is told to the client by another look at it.
        let is_met = |cursor: &Cursor| {
            seen.get(&cursor.scope.0)
                .is_some_and(|last| last.as_ref().is_ok_and(|last| *last > cursor.since) || last.is_err())
        };
        let now = Instant::now();
        let due: Vec<Waiter> = {
            let mut waiters = self.lock();
            let closed = waiters.closed;
            let is_due = |_: &u64, waiter: &mut Waiter| {
                closed
                    || waiter.deadline.is_some_and(|deadline| deadline <= now)
                    || waiter.wanted.cursors.iter().any(is_met)
            };
            waiters.waiting.extract_if(is_due).map(|(_, waiter)| waiter).collect()
        };
        // Calls that wait for the same share an answer.
        let mut answers = HashMap::new();
        for Waiter { reply, wanted, .. } in due {
            let answer = answers.entry(wanted).or_insert_with_key(|wanted| wanted.answer(&self.host));
            reply.send_shared(answer.clone());
        }
    }

    /// Drops a call after its client has left.
    pub fn cancel(&self, token: u64) {
        let canceled = self.lock().waiting.remove(&token);
        // Dropping the reply sends it, so the lock must be free by now.
        drop(canceled);
    }

    /// Answers all calls, and lets no more wait.
    pub fn close(&self) {
        self.lock().closed = true;
        self.answer_due(None);
    }

    /// Ends the thread.
    pub fn end(&self) {
        let thread = {
            let mut waiters = self.lock();
            waiters.ended = true;
            waiters.thread.take()
        };
        self.changed.notify_all();
        if let Some(thread) = thread {
            // The SDK's hook has logged any panic of the thread.
            let _ = thread.join();
        }
    }

    fn run(&self) {
        let mut waiters = self.lock();
        while !waiters.ended {
            if waiters.waiting.is_empty() {
                waiters = self.changed.wait(waiters).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let first = waiters.waiting.values().filter_map(|waiter| waiter.deadline).min();
            let pause =
                first.map_or(POLL_INTERVAL, |first| first.saturating_duration_since(Instant::now()).min(POLL_INTERVAL));
            if !pause.is_zero() {
                waiters = self.changed.wait_timeout(waiters, pause).unwrap_or_else(PoisonError::into_inner).0;
            }
            drop(waiters);
            // The thread has to survive a panic, because no other thread watches the timeouts.
            if catch_unwind(AssertUnwindSafe(|| self.answer_due(None))).is_err() {
                self.host.log(Level::Error, "a look at the logs of wallets for calls that wait panicked");
            }
            waiters = self.lock();
        }
    }
}

impl Wanted {
    /// Reads the arguments. `None` for `since` asks for the numbers of now.
    fn of(call: &Call<'_>, since: Option<&Value>, wallets: Option<Vec<String>>) -> Result<(Self, bool), RpcError> {
        let wallet = &call.host.wallet;
        let sinces = match since {
            Some(Value::Object(sinces)) => Some(sinces),
            _ => None,
        };
        let by_wallet = sinces.is_some() || wallets.is_some();
        let names = match (wallets, sinces) {
            (Some(names), _) => names.into_iter().collect::<BTreeSet<String>>(),
            (None, Some(sinces)) => sinces.keys().cloned().collect(),
            (None, None) => [call.wallet()?.name].into(),
        };
        if names.is_empty() || names.len() > MAX_WALLETS {
            return Err(RpcError::invalid_parameter(format!("A call names between 1 and {MAX_WALLETS} wallets")));
        }
        let cursor = |name: String| {
            // The user's limits hold here.
            let scope = Scope(wallet.scope_of(call.scope, name.clone())?);
            let since = match (since, sinces) {
                (None, _) => wallet.log(scope, u64::MAX, 1)?.last,
                (_, Some(sinces)) => sinces.get(&name).map_or(Ok(0), typed::integer)?,
                (Some(since), None) => typed::integer(since)?,
            };
            Ok(Cursor { wallet: name, scope, since })
        };
        let cursors = names.into_iter().map(cursor).collect::<Result<Vec<_>, RpcError>>()?;
        Ok((Self { cursors, by_wallet }, since.is_none()))
    }

    fn has_news(&self, host: &Host) -> Result<bool, RpcError> {
        for cursor in &self.cursors {
            if host.wallet.log(cursor.scope, cursor.since, 1)?.last > cursor.since {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The answer, as JSON.
    fn answer(&self, host: &Host) -> Result<Arc<Vec<u8>>, RpcError> {
        self.events(host).map(|answer| Arc::new(answer.to_string().into_bytes()))
    }

    fn events(&self, host: &Host) -> Result<Value, RpcError> {
        let limit = (MAX_EVENTS / u32::try_from(self.cursors.len()).unwrap_or(u32::MAX)).clamp(1, MAX_LOG_ENTRIES);
        let (mut events, mut missed, mut payments) = (Vec::new(), Vec::new(), 0);
        let mut next = BTreeMap::new();
        for Cursor { wallet, scope, since } in &self.cursors {
            let mut reached = *since;
            if payments < MAX_PAYMENTS {
                let log = host.wallet.log(*scope, *since, limit)?;
                if *since < log.dropped {
                    missed.push(wallet);
                }
                for entry in &log.entries {
                    payments += entry.payments.len();
                    reached = entry.number;
                    events.push(entry.to_json(wallet));
                }
            }
            next.insert(wallet, reached);
        }
        let next = match next.values().next() {
            Some(only) if !self.by_wallet => json!(only),
            _ => json!(next),
        };
        Ok(json!({"events": events, "next": next, "missed": missed}))
    }
}

/// A timeout in milliseconds, of which 0 means none.
fn deadline(timeout: i32) -> Result<Option<Instant>, RpcError> {
    let timeout = u64::try_from(timeout).map_err(|_| RpcError::misc("Negative timeout"))?;
    let deadline = Instant::now().checked_add(Duration::from_millis(timeout));
    Ok(deadline.filter(|_| timeout > 0))
}

#[methods(category = "Wallet")]
impl HistoryPlugin {
    /// Waits for entries in the logs of wallets: what happened to their transactions. An entry's kind is seen
    /// (unconfirmed), confirmed, deep (6 confirmations), reorganised (its block left the chain), conflicted (by a
    /// block), replaced (in the mempool), abandoned or removed. Pass next as the next call's since.
    ///
    /// * `since` - The number after which entries are wanted, 0 for all, or an object with a number for each wallet.
    ///   Without it the answer comes at once, with the numbers of now and no entries.
    /// * `timeout` - The timeout in milliseconds; 0 for none.
    /// * `wallets` (default: those of since, or the wallet of the call) - The names of the wallets.
    ///
    /// # Result
    /// {"events": [...], "next": n or {"wallet": n, ...}, "missed": ["wallet", ...]}    (json object) The entries of
    /// each wallet by number; those of missed wallets were partly dropped before they were asked for.
    ///
    /// # Example
    /// 0 30000
    #[method(long_running, needs_tip = false)]
    fn waitevents(
        &self,
        call: &Call<'_>,
        since: Option<&Value>,
        #[arg(default = 0)] timeout: i32,
        wallets: Option<Vec<String>>,
        reply: Reply,
    ) {
        let begun = deadline(timeout).and_then(|deadline| {
            let (wanted, at_once) = Wanted::of(call, since, wallets)?;
            let answer = (at_once || wanted.has_news(call.host)?).then(|| wanted.answer(call.host)).transpose()?;
            Ok((wanted, deadline, answer))
        });
        match begun {
            Ok((wanted, deadline, None)) => self.waits.wait(Waiter { reply, wanted, deadline }),
            Ok((.., Some(answer))) => {
                reply.send_shared(Ok(answer));
            }
            Err(error) => {
                reply.fail(error);
            }
        }
    }
}
