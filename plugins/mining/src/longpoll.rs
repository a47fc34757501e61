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
use outrigger_sdk::{Host, Reply, RpcError, RpcErrorCode};

use crate::template::Templates;

/// The template of a waiting call. It is outdated when the best block is not `tip`, or the mempool's sequence is not `sequence`.
pub struct Watched {
    pub tip: BlockHash,
    pub sequence: u64,
    /// Checked at the end of the wait, as in bitcoind.
    pub knows_segwit: bool,
}

pub struct Poll {
    watched: Watched,
    /// The time of the next check of the mempool.
    check_at: Cell<Instant>,
}

/// The waiting calls.
pub struct LongPolls {
    host: Host,
    templates: Arc<Templates>,
    first_wait: Duration,
    repeat: Duration,
    pub calls: Arc<Waits<Poll>>,
    /// Whether the host is stopping, so that the calls end with an error.
    stopping: AtomicBool,
}

impl LongPolls {
    /// A call checks the mempool after `first_wait`, and then every `repeat`, each at most a second late.
    pub fn new(host: Host, templates: Arc<Templates>, first_wait: Duration, repeat: Duration) -> Arc<Self> {
        let (calls, stopping) = (Waits::new(host.clone()), AtomicBool::new(false));
        Arc::new(Self { host, templates, first_wait, repeat, calls, stopping })
    }

    pub fn wait(self: &Arc<Self>, reply: Reply, watched: Watched) {
        let (token, tip, polls) = (reply.token(), watched.tip, self.clone());
        let wanted = Poll { watched, check_at: Cell::new(Instant::now() + self.first_wait) };
        let closed = self.calls.keep(Waiter { reply, wanted, deadline: None }, move || polls.answer_due());
        // The event of a new tip may have arrived before the call was stored.
        if (closed || self.host.chain.tip(Scope::NONE).is_ok_and(|best| best.hash != tip))
            && let Some(waiter) = self.calls.take(token)
        {
            self.answer(vec![waiter]);
        }
    }

    /// Answers the calls that watch another tip, and those for which a due check finds that the mempool changed.
    pub fn answer_due(&self) {
        let (now, mut is_check_due) = (Instant::now(), false);
        self.calls.each(|poll| is_check_due |= poll.check_at.get() <= now);
        // A node in another process answers slowly, so the mempool is read only if a check is due. It is read before the tip, so that
        // little time passes between reading the tip and comparing it with the tips of calls that have just arrived.
        let mempool = is_check_due.then(|| self.host.mempool.info(Scope::NONE));
        let tip = self.host.chain.tip(Scope::NONE);
        let is_over = |poll: &Poll| match (&tip, &mempool) {
            (Ok(tip), _) if poll.watched.tip != tip.hash => true,
            (Ok(_), Some(Ok(mempool))) if poll.check_at.get() <= now => {
                poll.check_at.set(now + self.repeat);
                poll.watched.sequence != mempool.sequence
            }
            // If the host cannot be read, the calls keep waiting.
            _ => false,
        };
        self.answer(self.calls.take_due(is_over));
    }

    /// Answers all calls: with an error if the host is stopping, otherwise with the current template, because a new instance
    /// takes over. Later calls do not wait.
    pub fn close(&self, stopping: bool) {
        // A stopping host also quiesces the instance, which must not reset the flag.
        self.stopping.fetch_or(stopping, Ordering::Relaxed);
        self.calls.close();
        self.answer(self.calls.take_due(|_| true));
    }

    /// Answers calls with the current template, which is newer than the snapshots of the calls.
    fn answer(&self, due: Vec<Waiter<Poll>>) {
        if due.is_empty() {
            return;
        }
        let stopping = self.stopping.load(Ordering::Relaxed);
        let template = match stopping {
            true => Err(RpcError::new(RpcErrorCode::CLIENT_NOT_CONNECTED, "Shutting down")),
            false => self.templates.answer(&self.host, Scope::NONE),
        };
        for Waiter { reply, wanted, .. } in due {
            let serves = stopping || wanted.watched.knows_segwit;
            reply.send_shared(if serves { template.clone() } else { Err(segwit_missing()) });
        }
    }
}

pub fn segwit_missing() -> RpcError {
    RpcError::invalid_parameter(
        "getblocktemplate must be called with the segwit rule set (call with {\"rules\": [\"segwit\"]})",
    )
}
