//! Hints of changes at the node: ZMQ notifications, or a long poll for blocks. The host also polls, in case it misses
//! hints.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use outrigger_node::HintSource;
use outrigger_upstream::UpstreamError;
use outrigger_values::RpcErrorCode;
use outrigger_zmq::{Stream, Subscription, ZmqEndpoint, ZmqError};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::json;

use super::answers::RpcInfoAnswer;
use super::error::{AskError, SyncError};
use super::rpc::{Rpc, WAIT, WAIT_LIMIT};
use super::sync::Follower;
use super::zmq::{self, Event};

/// The polling interval without ZMQ.
const POLL_EVERY: Duration = Duration::from_secs(1);
/// The polling interval with ZMQ, where polling only finds changes whose notifications were lost.
const CHECK_EVERY: Duration = Duration::from_secs(10);

/// How long a long poll for blocks waits at the node, in milliseconds.
const WAIT_MILLISECONDS: u64 = 10_000;

/// The duration of the first long poll, in milliseconds.
const TRIAL_MILLISECONDS: u64 = 1_000;
/// How often the host checks during the first long poll whether the node has another free thread.
const TRIAL_LOOK: Duration = Duration::from_millis(20);
/// How long after a trial that found no free thread the host tries again, unless the node restarts earlier.
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(3600);

/// If no notification comes for this long, the host polls as without ZMQ, and subscribes again.
const SILENCE: Duration = Duration::from_secs(60);

/// The first delay before the next subscription. It doubles with each failure.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// The longest delay before the next subscription.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);

/// The capacity of the queue of hints. When it is full, the ZMQ publisher drops messages, which the sequence numbers show.
const MAX_WAITING: usize = 1_000;

/// How often the log repeats that the node's chain is not followed.
const WARN_EVERY: Duration = Duration::from_secs(60);

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ZmqSetting {
    /// The endpoint that getzmqnotifications lists, if any.
    Auto,
    At(ZmqEndpoint),
    Off,
}

/// A reason to read from the node.
pub(crate) enum Hint {
    /// There may be a new block.
    Look,
    Event(Event),
    /// Notifications may have been lost.
    Lost,
}

#[derive(Deserialize)]
struct PublisherAnswer {
    #[serde(rename = "type")]
    kind: String,
    address: String,
}

/// Starts the threads that follow the node. The returned sender wakes the follower. `may_wait`: long polls may occupy a
/// thread of the node.
pub(crate) fn start(
    follower: &Arc<Follower>,
    zmq: ZmqSetting,
    may_wait: bool,
) -> io::Result<(SyncSender<Hint>, JoinHandle<()>)> {
    let (sender, hints) = sync_channel(MAX_WAITING);
    let followed = follower.clone();
    let thread = thread::Builder::new().name("follow node".into()).spawn(move || follow(&followed, &hints))?;
    if may_wait {
        let (waited, sender) = (Arc::downgrade(follower), sender.clone());
        thread::Builder::new().name("wait for block".into()).spawn(move || wait_for_blocks(&waited, &sender))?;
    }
    if zmq != ZmqSetting::Off {
        let (heard, sender) = (Arc::downgrade(follower), sender.clone());
        thread::Builder::new().name("hear node".into()).spawn(move || listen(&heard, &zmq, &sender, SILENCE))?;
    }
    Ok((sender, thread))
}

fn follow(follower: &Follower, hints: &Receiver<Hint>) {
    let mut last_warning = None;
    while !follower.is_stopping() {
        // While the host does not follow the node's chain, it polls: no notification says when it can follow the chain again.
        let is_notified =
            *follower.source.lock() == HintSource::Zmq && follower.is_reached() && follower.standing.behind() == 0;
        let first = match hints.recv_timeout(if is_notified { CHECK_EVERY } else { POLL_EVERY }) {
            Err(RecvTimeoutError::Disconnected) => return,
            first => first.ok(),
        };
        let (mut look, mut lost, mut events) = (first.is_none(), false, Vec::new());
        for hint in first.into_iter().chain(hints.try_iter().take(MAX_WAITING)) {
            match hint {
                Hint::Look => look = true,
                // The node sends no notification for each transaction that a block confirms, so the host reads its mempool, which
                // covers all earlier notifications.
                Hint::Lost | Hint::Event(Event::Block(_)) => {
                    lost = true;
                    events.clear();
                }
                Hint::Event(event) => events.push(event),
            }
        }
        if look || lost {
            follow_once(follower, lost, &mut last_warning);
        }
        if follower.is_reached() {
            follower.look_for_lack();
        }
        if !events.is_empty()
            && let Err(error) = follower.apply(&events)
        {
            tracing::debug!(%error, "the mempool is read later");
        }
    }
}

fn follow_once(follower: &Follower, lost: bool, last_warning: &mut Option<Instant>) {
    let was_reached = follower.is_reached();
    match follower.sync(lost) {
        Ok(()) if !was_reached => tracing::info!("the node is reached"),
        Ok(()) => {}
        Err(
            error @ (SyncError::Rewind { .. }
            | SyncError::Branch { .. }
            | SyncError::Behind { .. }
            | SyncError::Ask(AskError::Upstream(UpstreamError::Foreign(_)))),
        ) => {
            // Logged repeatedly, since the wallets do not advance until this is resolved.
            if last_warning.is_none_or(|at| at.elapsed() > WARN_EVERY) {
                *last_warning = Some(Instant::now());
                tracing::error!(%error, "the node's chain is not followed");
            }
        }
        Err(error) if was_reached && !follower.is_reached() => tracing::warn!(%error, "the node is away"),
        Err(error) => tracing::debug!(%error, "the node is not followed"),
    }
}

/// Replaces the source of hints, unless it has changed meanwhile.
fn replace(source: &Mutex<HintSource>, former: HintSource, next: HintSource) {
    let mut now = source.lock();
    if *now == former {
        *now = next;
    }
}

/// Long-polls the node for blocks while it sends no ZMQ notifications, which occupies one of the node's threads.
/// While the node has no other thread, the follower polls.
fn wait_for_blocks(follower: &Weak<Follower>, hints: &SyncSender<Hint>) {
    let mut leaves_thread = false;
    // When a trial found no other thread, and when the node of that trial had started.
    let mut without_thread: Option<(Instant, u64)> = None;
    while let Some(follower) = follower.upgrade().filter(|follower| !follower.is_stopping()) {
        let is_same = |&(at, started): &(Instant, u64)| {
            at.elapsed() < TRY_AGAIN_AFTER && follower.node_started().abs_diff(started) <= 1
        };
        let is_notified = *follower.source.lock() == HintSource::Zmq;
        if is_notified || without_thread.as_ref().is_some_and(is_same) {
            drop(follower);
            thread::sleep(POLL_EVERY);
            continue;
        }
        let waited = match leaves_thread {
            true => {
                replace(&follower.source, HintSource::Poll, HintSource::Wait);
                follower.rpc.wait_for_block(WAIT_MILLISECONDS)
            }
            false => match try_wait(&follower.rpc) {
                Ok(Some(false)) => {
                    without_thread = Some((Instant::now(), follower.node_started()));
                    tracing::warn!(
                        "a long poll occupies the node's last thread (-rpcthreads): the host polls for blocks once a second"
                    );
                    continue;
                }
                tried => tried.map(|left| leaves_thread = left == Some(true)),
            },
        };
        match waited {
            Ok(()) => {
                // The receiver is gone: the host is stopping.
                if hints.send(Hint::Look).is_err() {
                    return;
                }
            }
            Err(error) => {
                replace(&follower.source, HintSource::Wait, HintSource::Poll);
                // The node may restart with fewer threads.
                leaves_thread = false;
                if error.code() == Some(RpcErrorCode::METHOD_NOT_FOUND) {
                    return;
                }
                if matches!(&error, AskError::Upstream(error) if error.is_absent()) {
                    follower.returns.note();
                }
                drop(follower);
                thread::sleep(POLL_EVERY);
            }
        }
    }
}

/// Makes a short long poll. Returns whether the node served another call meanwhile; `None` if a block ended the poll
/// first.
fn try_wait(rpc: &Rpc) -> Result<Option<bool>, AskError> {
    let began = Instant::now();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| rpc.wait_for_block(TRIAL_MILLISECONDS));
        let mut is_seen = false;
        while !(is_seen || waiting.is_finished()) {
            // If the node refuses getrpcinfo, the host assumes enough threads.
            is_seen = match rpc.ask_within::<RpcInfoAnswer>(WAIT_LIMIT, "getrpcinfo", &json!([])) {
                Ok(info) => info.runs(WAIT),
                Err(error) => !matches!(error, AskError::Upstream(error) if error.is_absent()),
            };
            thread::sleep(TRIAL_LOOK);
        }
        waiting.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        let is_whole = began.elapsed() >= Duration::from_millis(TRIAL_MILLISECONDS);
        Ok((is_seen || is_whole).then_some(is_seen))
    })
}

/// Reads notifications. Subscribes again when the connection ends, and after a long silence, since a dead connection may
/// not report its end.
fn listen(follower: &Weak<Follower>, setting: &ZmqSetting, hints: &SyncSender<Hint>, silence: Duration) {
    let mut pause = RETRY_AFTER;
    let (mut warned, mut is_silent) = (false, false);
    loop {
        let endpoint = match (setting, follower.upgrade().filter(|follower| !follower.is_stopping())) {
            (_, None) => return,
            (ZmqSetting::At(endpoint), _) => Some(endpoint.clone()),
            (_, Some(follower)) => listed(&follower),
        };
        if let Some(endpoint) = endpoint {
            match zmq::subscribe(&endpoint, silence) {
                Ok(mut subscription) => {
                    if !is_silent {
                        tracing::info!("subscribed to the node's ZMQ notifications");
                    }
                    let (heard, error) = hear(follower, &mut subscription, hints);
                    is_silent = matches!(error, ZmqError::Silent);
                    if heard || is_silent {
                        (pause, warned) = (RETRY_AFTER, false);
                    }
                    if is_silent {
                        continue;
                    }
                    tracing::info!(%error, "the node's ZMQ notifications have ended");
                    if let Some(follower) = follower.upgrade() {
                        follower.returns.note();
                    }
                }
                Err(error) if !warned => {
                    warned = true;
                    tracing::warn!(%error, "ZMQ subscription failed");
                }
                Err(error) => tracing::debug!(%error, "ZMQ subscription failed"),
            }
            is_silent = false;
        }
        thread::sleep(pause);
        pause = (2 * pause).min(MAX_RETRY_AFTER);
    }
}

fn listed(follower: &Follower) -> Option<ZmqEndpoint> {
    let list: Vec<PublisherAnswer> = follower.rpc.ask("getzmqnotifications", &json!([])).ok()?;
    let (host, _) = follower.rpc.upstream().endpoint().authority();
    zmq::listed(list.iter().map(|publisher| (&*publisher.kind, &*publisher.address)), host)
}

/// Forwards notifications until an error. Returns whether any came.
fn hear(
    follower: &Weak<Follower>,
    subscription: &mut Subscription<Box<dyn Stream>>,
    hints: &SyncSender<Hint>,
) -> (bool, ZmqError) {
    // The first notification counts as a gap: earlier ones may have been missed.
    let mut expected = None;
    let error = loop {
        let notification = match zmq::read(subscription) {
            Ok(notification) => notification,
            Err(error) => break error,
        };
        let Some(follower) = follower.upgrade() else { break io::Error::from(io::ErrorKind::Interrupted).into() };
        *follower.source.lock() = HintSource::Zmq;
        let is_next = expected.replace(notification.number.wrapping_add(1)) == Some(notification.number);
        let lost = (!is_next).then_some(Hint::Lost);
        for hint in lost.into_iter().chain([Hint::Event(notification.event)]) {
            // The receiver is gone: the host is stopping, and the next check ends this thread.
            let _ = hints.send(hint);
        }
    };
    if let Some(follower) = follower.upgrade() {
        replace(&follower.source, HintSource::Zmq, HintSource::Poll);
    }
    // The host misses notifications until it subscribes again.
    let _ = hints.send(Hint::Lost);
    (expected.is_some(), error)
}

#[cfg(test)]
mod tests {
    use bitcoin::Network;
    use outrigger_node::ChainIdentity;
    use outrigger_upstream::{Login, Upstream};
    use outrigger_zmq::PubSocket;

    use super::super::filters::Filters;
    use super::super::mirror::Mirror;
    use super::super::standing::RewindLimit;
    use super::*;

    /// A follower of a node that is away.
    fn follower(folder: &std::path::Path) -> Arc<Follower> {
        let login = Login::Cookie(folder.join("none"));
        let rpc = Rpc::start(Arc::new(Upstream::new("http://127.0.0.1:1".parse().unwrap(), login, 1))).unwrap();
        let genesis = bitcoin::constants::genesis_block(Network::Regtest).header;
        let mirror = Mirror::open(&folder.join("headers"), &ChainIdentity::of(Network::Regtest), genesis).unwrap();
        let filters = Filters::new(folder.join("filters"), 0, false);
        Arc::new(Follower::new(Arc::new(rpc), mirror, filters, RewindLimit::default(), None).unwrap())
    }

    #[test]
    fn subscription_to_a_quiet_node_is_renewed_as_if_nothing_had_happened() {
        let folder = tempfile::tempdir().unwrap();
        let follower = follower(folder.path());
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let endpoint = ZmqEndpoint::Ipc(folder.path().join("zmq"));
        let _publisher = runtime.block_on(PubSocket::bind(&endpoint, 1)).unwrap();
        let (sender, hints) = sync_channel(MAX_WAITING);
        let (heard, setting) = (Arc::downgrade(&follower), ZmqSetting::At(endpoint));
        let thread = thread::spawn(move || listen(&heard, &setting, &sender, Duration::from_millis(20)));
        // Each subscription ends with this hint.
        (0..3).for_each(|_| assert!(matches!(hints.recv(), Ok(Hint::Lost))));
        // After a subscription that ends otherwise, the log says so, and the node may have restarted.
        assert!(!follower.returns.is_due());
        follower.stop();
        thread.join().unwrap();
    }
}
