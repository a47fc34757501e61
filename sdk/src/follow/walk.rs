//! The follower's thread.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use outrigger_service::chain::{Cursor, MAX_STEPS, Step};
use outrigger_service::log::Level;
use outrigger_service::wire::{Blob, from_bytes, to_bytes};
use outrigger_service::{ErrorKind, Host, Scope, ServiceError};
use outrigger_values::error::RpcError;

use super::shared::{Shared, not_followed};
use super::{BlockWithSpent, CURSOR_KEY, Failure, Follower, Kept, Result};
use crate::store::Batch;

/// How often the follower polls without a wake-up: events may be lost.
const POLL: Duration = Duration::from_secs(10);

/// How often a follower logs its progress while it catches up.
const PROGRESS: Duration = Duration::from_secs(10);

/// The first and the longest pause after failures. The pauses double.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LAST_PAUSE: Duration = Duration::from_secs(30);

/// The number of changed bytes that triggers a commit.
const COMMIT_BYTES: usize = 4 << 20;

struct Walk<'a, F> {
    follower: F,
    host: Host,
    shared: &'a Shared,
    /// The follower's position; none until it is read.
    at: Option<(Kept, Option<Cursor>)>,
    /// When the follower began to catch up or last logged its progress.
    told: Instant,
}

pub(super) fn run<F: Follower>(follower: F, host: Host, shared: &Shared) {
    let mut walk = Walk { follower, host, shared, at: None, told: Instant::now() };
    let (mut pause, mut retry, mut last) = (Duration::ZERO, FIRST_PAUSE, String::new());
    while let Some(look) = shared.next_look(pause) {
        // A panic of the follower's code is a failure as any other: the blocks since the last commit come again.
        let caught = catch_unwind(AssertUnwindSafe(|| walk.catch_up()));
        match caught.unwrap_or_else(|_| Err("the follower has panicked".into())) {
            // The follower ended before the tip.
            Ok(()) if shared.has_ended() => {}
            Ok(()) => {
                (pause, retry) = (POLL, FIRST_PAUSE);
                last.clear();
                shared.finish_look(look, None);
            }
            Err(failure) => {
                // The uncommitted blocks come again.
                walk.at = None;
                let trouble = match failure.downcast_ref() {
                    Some(ServiceError { detail, .. }) if !detail.is_empty() => detail.clone(),
                    _ => failure.to_string(),
                };
                let level = if is_others(&failure) { Level::Debug } else { Level::Warn };
                if level == Level::Warn {
                    shared.finish_look(look, Some(refusal(&failure, &trouble)));
                }
                if trouble != last {
                    walk.host.log(level, format!("the chain is not followed for now: {trouble}"));
                }
                last = trouble;
                (pause, retry) = (retry, (retry * 2).min(LAST_PAUSE));
            }
        }
    }
}

/// The error of the calls that wait for the follower. The reasons why a node cannot be reached are for the log only.
fn refusal(failure: &Failure, trouble: &str) -> RpcError {
    match failure.downcast_ref() {
        Some(ServiceError { kind: kind @ ErrorKind::NodeUnavailable, .. }) => ServiceError::from(*kind).into(),
        _ => not_followed(trouble),
    }
}

/// Whether another instance of the plugin writes the store: during a reload the older one does, until the newer one answers calls.
fn is_others(failure: &Failure) -> bool {
    failure.downcast_ref::<ServiceError>().is_some_and(|error| error.kind == ErrorKind::Stale)
}

impl<F: Follower> Walk<'_, F> {
    /// Processes all blocks up to the tip.
    fn catch_up(&mut self) -> Result {
        self.told = Instant::now();
        while !self.shared.has_ended() {
            let (kept, at) = match self.at {
                Some(at) => at,
                None => self.find()?,
            };
            let steps = self.host.chain.steps(Scope::NONE, at, MAX_STEPS, F::WITH_SPENT)?;
            let tip = steps.tip;
            let at = self.take_over(kept, at, steps.disconnect, steps.connect)?;
            if at == Some(tip) {
                return Ok(());
            }
            if self.told.elapsed() >= PROGRESS {
                self.told = Instant::now();
                let height = at.map_or(0, |at| at.height);
                self.host.log(Level::Info, format!("the chain is followed to block {height} of {}", tip.height));
            }
        }
        Ok(())
    }

    /// Reads the follower's position.
    fn find(&mut self) -> Result<(Kept, Option<Cursor>)> {
        let kept = self.follower.kept()?;
        let cursor = match kept {
            Kept::Elsewhere(cursor) => cursor,
            Kept::InStore => {
                // If this commit succeeds, this instance writes the store, and no other one commits after the read.
                let writes = Batch::default().commit(&self.host, Scope::NONE);
                let found = self.host.store.get(Scope::NONE, vec![Blob(CURSOR_KEY.to_vec())])?;
                let cursor = found.into_iter().next().flatten().map(|cursor| from_bytes(&cursor)).transpose()?;
                // Calls of this instance may wait for blocks that another one commits.
                self.shared.set_cursor(cursor);
                writes.map(|()| cursor)?
            }
        };
        self.at = Some((kept, cursor));
        self.shared.set_cursor(cursor);
        Ok((kept, cursor))
    }

    /// Processes these blocks, many per commit. Returns the new position.
    fn take_over(
        &mut self,
        kept: Kept,
        mut at: Option<Cursor>,
        disconnect: Vec<Step>,
        connect: Vec<Step>,
    ) -> Result<Option<Cursor>> {
        let mut batch = Batch::default();
        let mut left = disconnect.len() + connect.len();
        let steps =
            disconnect.into_iter().map(|step| (step, false)).chain(connect.into_iter().map(|step| (step, true)));
        for (step, connects) in steps {
            if self.shared.has_ended() {
                break;
            }
            let block = BlockWithSpent::read(step, F::WITH_SPENT)?;
            let next = if connects {
                self.follower.connect(&block, &mut batch)?;
                Cursor { hash: block.hash, height: block.height }
            } else {
                self.follower.disconnect(&block, &mut batch)?;
                Cursor { hash: block.block.header.prev_blockhash, height: block.height.saturating_sub(1) }
            };
            at = Some(next);
            left -= 1;
            if left == 0 || batch.bytes() >= COMMIT_BYTES {
                self.commit(kept, next, std::mem::take(&mut batch))?;
            }
        }
        Ok(at)
    }

    fn commit(&mut self, kept: Kept, cursor: Cursor, mut batch: Batch) -> Result {
        match kept {
            Kept::Elsewhere(_) => self.follower.commit(cursor)?,
            Kept::InStore => {
                batch.put(CURSOR_KEY, &to_bytes(&cursor));
                batch.commit(&self.host, Scope::NONE)?;
            }
        }
        self.at = Some((kept, Some(cursor)));
        self.shared.set_cursor(Some(cursor));
        Ok(())
    }
}
