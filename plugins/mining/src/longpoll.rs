//! Long polls (BIP 22): calls that wait until their template is outdated.
//!
//! A new tip answers all calls at once with the bytes of one template. A change of the mempool alone answers a call at its next
//! check.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bitcoin::BlockHash;
use outrigger_kit::waits::{Waiter, Waits};
use outrigger_sdk::service::Scope;
use outrigger_sdk::{Reply, RpcError, RpcErrorCode};

use crate::template::Templates;

/// The template of a waiting call. It is outdated when the best block is not `tip`, or the mempool's sequence is not `sequence`.
pub struct Watched {
    pub tip: BlockHash,
    pub sequence: u64,
    /// The error for a client that lacks a rule; at the end of the wait, as in bitcoind.
    pub refusal: Option<RpcError>,
}

pub struct Poll {
    watched: Watched,
    /// The time of the next check of the mempool.
    check_at: Cell<Instant>,
}

/// The data for answers.
pub struct State {
    pub templates: Arc<Templates>,
    /// A call checks the mempool after this time, and then every `repeat`, each at most a second late.
    pub first_wait: Duration,
    pub repeat: Duration,
    /// Whether the host is stopping, so that the calls end with an error.
    pub stopping: AtomicBool,
}

/// The waiting calls.
pub type LongPolls = Waits<Poll, State>;

pub fn wait(polls: &Arc<LongPolls>, reply: Reply, watched: Watched) {
    let (token, tip) = (reply.token(), watched.tip);
    let wanted = Poll { watched, check_at: Cell::new(Instant::now() + polls.state.first_wait) };
    let closed = polls.keep(Waiter { reply, wanted, deadline: None });
    // The event of a new tip may have arrived before the call was stored.
    if (closed || polls.host.chain.tip(Scope::NONE).is_ok_and(|best| best.hash != tip))
        && let Some(waiter) = polls.take(token)
    {
        answer(polls, vec![waiter]);
    }
}

/// Answers the calls that watch another tip, and those for which a due check finds that the mempool changed.
pub fn answer_due(polls: &LongPolls) {
    if polls.is_closed() {
        return answer(polls, polls.take_due(|_| true));
    }
    let (now, mut is_check_due) = (Instant::now(), false);
    polls.each(|poll| is_check_due |= poll.check_at.get() <= now);
    // A node in another process answers slowly, so the mempool is read only if a check is due. It is read before the tip, so that
    // little time passes between reading the tip and comparing it with the tips of calls that have just arrived.
    let mempool = is_check_due.then(|| polls.host.mempool.info(Scope::NONE));
    let tip = polls.host.chain.tip(Scope::NONE);
    let is_over = |poll: &Poll| match (&tip, &mempool) {
        (Ok(tip), _) if poll.watched.tip != tip.hash => true,
        (Ok(_), Some(Ok(mempool))) if poll.check_at.get() <= now => {
            poll.check_at.set(now + polls.state.repeat);
            poll.watched.sequence != mempool.sequence
        }
        // If the host cannot be read, the calls keep waiting.
        _ => false,
    };
    answer(polls, polls.take_due(is_over));
}

/// Answers calls with the current template, which is newer than the snapshots of the calls; with an error if the host is stopping.
fn answer(polls: &LongPolls, due: Vec<Waiter<Poll>>) {
    if due.is_empty() {
        return;
    }
    let stopping = polls.state.stopping.load(Ordering::Relaxed);
    let template = match stopping {
        true => Err(RpcError::new(RpcErrorCode::CLIENT_NOT_CONNECTED, "Shutting down")),
        false => polls.state.templates.answer(&polls.host, Scope::NONE),
    };
    for Waiter { reply, wanted, .. } in due {
        let refusal = wanted.watched.refusal;
        reply.send_json(template.clone().and_then(|template| refusal.map_or(Ok(template), Err)));
    }
}
