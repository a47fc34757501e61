//! Rescans: their reservation, the replies that wait for them, and how an outcome changes the results.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use outrigger_sdk::service::events::RescanOutcome;
use outrigger_sdk::service::{Scope, ServiceError, Wallet};
use outrigger_sdk::{Reply, RpcError};
use serde_json::json;

use crate::error::ImportError;
use crate::outcome::Outcome;

/// How far block times and creation times may deviate, in seconds: Bitcoin Core's `TIMESTAMP_WINDOW`.
const TIMESTAMP_WINDOW: i64 = 7200;

/// What is said of an import whose range was widened.
const RANGE_WIDENED: &str = "Payments were found near the end of the range. It was extended, and the blocks were scanned again for the new scripts";

/// A reservation of the wallet's one rescan, released when it is dropped unused.
pub struct Reservation<'a> {
    wallet: &'a dyn Wallet,
    scope: Scope,
    number: u64,
    used: bool,
}

impl<'a> Reservation<'a> {
    /// Reserves the wallet's rescan.
    ///
    /// # Errors
    /// When another one is reserved or runs.
    pub fn new(wallet: &'a dyn Wallet, scope: Scope) -> Result<Self, ServiceError> {
        Ok(Self { wallet, scope, number: wallet.rescan_reserve(scope)?, used: false })
    }

    /// The rescan's number, which its events carry.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Starts the rescan.
    pub fn start(mut self, begin: Begin) -> Result<(), ServiceError> {
        match begin {
            Begin::Time(from_time) => self.wallet.rescan_start(self.scope, self.number, from_time)?,
            Begin::Heights(first, last) => self.wallet.rescan_heights(self.scope, self.number, first, last)?,
        }
        self.used = true;
        Ok(())
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        if !self.used {
            // A host that cannot release it has lost the wallet, and the reservation with it.
            let _ = self.wallet.rescan_release(self.scope, self.number);
        }
    }
}

/// Where a rescan begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Begin {
    /// At blocks of a time, in seconds.
    Time(u64),
    /// At a height; up to another one, or to where the wallet stands.
    Heights(u32, Option<u32>),
}

/// How a rescan ended.
pub struct RescanEnd {
    /// Whether all was read.
    pub outcome: RescanOutcome,
    /// The height of the last block that was to be read, where that is known.
    pub last_height: Option<u32>,
    /// Whether payments near the end of what was derived had the blocks read again for more scripts.
    pub widened: bool,
    /// Whether the node fetches blocks that it lacks in the background.
    pub background: bool,
}

impl RescanEnd {
    /// One of which nothing else is known.
    pub fn of(outcome: RescanOutcome) -> Self {
        Self { outcome, last_height: None, widened: false, background: false }
    }
}

/// What a call answers once its rescan has ended, or at once where there is none.
pub enum Pending {
    /// The outcomes of importmulti or importdescriptors.
    Outcomes(Outcomes),
    /// rescanblockchain: the first height, the last one that was asked for, and where the wallet stood when it began.
    Heights {
        /// The first height.
        first: u32,
        /// The last one, where one was asked for.
        last: Option<u32>,
        /// Where the wallet stood.
        synced: u32,
    },
    /// null, of an import whose keys are as old as this, in seconds.
    Null {
        /// From when the chain is scanned.
        from_time: u64,
    },
}

impl Pending {
    fn begin(&self) -> Begin {
        match self {
            Self::Outcomes(outcomes) => Begin::Time(outcomes.from_time),
            Self::Heights { first, last, .. } => Begin::Heights(*first, *last),
            Self::Null { from_time, .. } => Begin::Time(*from_time),
        }
    }

    /// The result of the call when its rescan has ended.
    pub fn finish(self, end: &RescanEnd) -> Result<Vec<u8>, RpcError> {
        let value = match (self, &end.outcome) {
            (Self::Outcomes(outcomes), _) => {
                return serde_json::to_vec(&outcomes.finish(end)?)
                    .map_err(|error| RpcError::internal(error.to_string()));
            }
            (Self::Heights { .. }, RescanOutcome::Aborted) => return Err(ImportError::HeightsAborted.into()),
            (Self::Heights { .. }, RescanOutcome::Unreadable { .. }) if end.background => {
                return Err(ImportError::Background.into());
            }
            (Self::Heights { .. }, RescanOutcome::Unreadable { .. }) => return Err(ImportError::RescanFailed.into()),
            (Self::Heights { first, last, synced }, RescanOutcome::Complete) => {
                let stop = last.or(end.last_height).unwrap_or(synced);
                json!({"start_height": first, "stop_height": stop})
            }
            (Self::Null { .. }, RescanOutcome::Aborted) => return Err(ImportError::RescanAborted.into()),
            (Self::Null { .. }, RescanOutcome::Unreadable { .. }) => return Err(ImportError::NotAllScanned.into()),
            (Self::Null { .. }, RescanOutcome::Complete) => json!(null),
        };
        Ok(value.to_string().into_bytes())
    }
}

/// What was imported, as the error for an unreadable block names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ImportKind {
    /// importmulti
    Keys,
    /// importdescriptors
    Descriptors,
}

/// The results of an import whose rescan has not ended.
pub struct Outcomes {
    /// The requests' outcomes if all blocks can be read.
    pub outcomes: Vec<Outcome>,
    /// The requests' creation times as they were given, in seconds.
    pub timestamps: Vec<i64>,
    /// What was imported.
    pub subject: ImportKind,
    /// From when the chain is scanned, in seconds.
    pub from_time: u64,
}

impl Outcomes {
    fn finish(mut self, end: &RescanEnd) -> Result<Vec<Outcome>, RpcError> {
        match &end.outcome {
            RescanOutcome::Complete if end.widened => self.warn_of_range(),
            RescanOutcome::Complete => {}
            RescanOutcome::Aborted => return Err(ImportError::RescanAborted.into()),
            RescanOutcome::Unreadable { block_time } => self.fail_unscanned(i64::from(*block_time), end.background),
        }
        Ok(self.outcomes)
    }

    /// Says with each descriptor that has a range that it may have been too short.
    fn warn_of_range(&mut self) {
        for outcome in self.outcomes.iter_mut().filter(|outcome| outcome.success && outcome.ranged) {
            outcome.warnings.push(RANGE_WIDENED.to_owned());
        }
    }

    /// Fails the requests whose transactions may be in the block of `block_time`, or before it.
    fn fail_unscanned(&mut self, block_time: i64, background: bool) {
        let scanned_from = block_time + TIMESTAMP_WINDOW + 1;
        if i64::try_from(self.from_time).is_ok_and(|from_time| scanned_from <= from_time) {
            return;
        }
        for (outcome, timestamp) in self.outcomes.iter_mut().zip(&self.timestamps) {
            if outcome.error.is_none() && *timestamp < scanned_from {
                let message = unreadable(self.subject, *timestamp, block_time, background);
                *outcome = Outcome::failed(RpcError::misc(message), Vec::new());
            }
        }
    }
}

/// Why a block cannot be read, in the words of Bitcoin Core 0.21. A node of assumeutxo, which 0.21 did not know, has the words of 29.
const DROPPED: &str = "This error could be caused by pruning or data corruption (see bitcoind log for details) and could be dealt \
                       with by downloading and rescanning the relevant blocks (see -reindex and -rescan options).";
const BACKGROUND: &str = "This error is likely caused by an in-progress assumeutxo background sync. Check logs or getchainstates RPC \
                          for assumeutxo background sync progress and try again later.";

fn unreadable(subject: ImportKind, timestamp: i64, block_time: i64, background: bool) -> String {
    let (what, pertaining, using) = match subject {
        ImportKind::Keys => ("key with creation timestamp", "the key", "this key"),
        ImportKind::Descriptors => ("descriptor with timestamp", "the desc", "this desc"),
    };
    let cause = if background { BACKGROUND } else { DROPPED };
    format!(
        "Rescan failed for {what} {timestamp}. There was an error reading a block from time {block_time}, which is \
         after or within {TIMESTAMP_WINDOW} seconds of key creation, and could contain transactions pertaining to \
         {pertaining}. As a result, transactions and coins using {using} may not appear in the wallet. {cause}"
    )
}

/// A call that is answered when its rescan has ended.
struct Waiting {
    reply: Reply,
    pending: Pending,
}

/// The calls that wait for a rescan.
///
/// A call is inserted before its rescan starts, so that it is found even if the rescan ends at once.
#[derive(Default)]
pub struct WaitingCalls(Mutex<State>);

#[derive(Default)]
struct State {
    /// By the wallet's name and the rescan's number.
    calls: HashMap<(String, u64), Waiting>,
    /// Whether the instance is stopping: no call may wait any more.
    closed: bool,
}

impl WaitingCalls {
    /// Starts the reserved rescan and keeps the call until its end.
    pub fn start(&self, wallet: String, reservation: Reservation<'_>, reply: Reply, pending: Pending) {
        let key = (wallet, reservation.number());
        let begin = pending.begin();
        let mut state = self.state();
        if state.closed {
            drop(state);
            reply.send::<()>(Err(ImportError::RescanAborted.into()));
            return;
        }
        state.calls.insert(key.clone(), Waiting { reply, pending });
        // The host may report the end during this service call: the lock must not be held.
        drop(state);
        if let Err(error) = reservation.start(begin)
            && let Some(waiting) = self.take(&key)
        {
            waiting.reply.send::<()>(Err(error.into()));
        }
    }

    /// Answers the call whose rescan has ended.
    pub fn finished(&self, wallet: String, number: u64, end: &RescanEnd) {
        if let Some(Waiting { reply, pending }) = self.take(&(wallet, number)) {
            reply.send_json(pending.finish(end));
        }
    }

    /// Drops the call of a client that has gone. Its rescan goes on.
    pub fn forget(&self, token: u64) {
        let forgotten = {
            let mut state = self.state();
            let key =
                state.calls.iter().find(|(_, waiting)| waiting.reply.token() == token).map(|(key, _)| key.clone());
            key.and_then(|key| state.calls.remove(&key))
        };
        drop(forgotten);
    }

    /// Answers all calls as if their rescans had been aborted, and keeps none from now on.
    pub fn close(&self) {
        let calls = {
            let mut state = self.state();
            state.closed = true;
            std::mem::take(&mut state.calls)
        };
        for (_, Waiting { reply, pending }) in calls {
            reply.send_json(pending.finish(&RescanEnd::of(RescanOutcome::Aborted)));
        }
    }

    fn take(&self, key: &(String, u64)) -> Option<Waiting> {
        self.state().calls.remove(key)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // The state is consistent after each statement, so a poisoned lock can be used.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
