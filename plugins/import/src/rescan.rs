//! Rescans: how a call reserves one and waits for its end, and how the end affects the call's result.

use std::sync::Arc;

use outrigger_kit::waits::{Waiter, Waits};
use outrigger_sdk::params::int32;
use outrigger_sdk::service::chain::BlockRef;
use outrigger_sdk::service::events::RescanOutcome;
use outrigger_sdk::service::wallet::Synced;
use outrigger_sdk::service::{Scope, ServiceError, WalletImport};
use outrigger_sdk::{Call, Host, Reply, RpcError, methods};
use serde_json::{Value, json};

use crate::outcome::Outcome;
use crate::request::EARLIEST_TIME;
use crate::{ImportPlugin, Imported};

/// How far block times and creation times may deviate, in seconds: Bitcoin Core's `TIMESTAMP_WINDOW`.
const TIMESTAMP_WINDOW: i64 = 7200;

/// The warning for an import whose range the rescan extended.
const RANGE_WIDENED: &str = "Payments were found near the end of the range. It was extended, and the blocks were scanned again for the new scripts";

#[methods(category = "Wallet")]
impl ImportPlugin {
    /// Searches blocks for the wallet's transactions. The call returns after the rescan; getwalletinfo shows the
    /// progress, and abortrescan stops it.
    ///
    /// * `start_height` (default: 0) - The height of the first block.
    /// * `stop_height` - The height of the last block. By default, the rescan ends at the best block and then reads
    ///   the mempool.
    ///
    /// # Result
    /// {"start_height": n, "stop_height": n}    (json object) The heights of the first and the last block.
    ///
    /// # Example
    /// 100000 120000
    #[method(long_running)]
    fn rescanblockchain(
        &self,
        call: &Call<'_>,
        #[arg(kind = "numeric")] start_height: Option<&Value>,
        #[arg(kind = "numeric")] stop_height: Option<&Value>,
        reply: Reply,
    ) {
        self.answer(reply, || {
            let wallet = call.wallet()?;
            let reservation = Reservation::new(call)?;
            wallet.check_unlocked()?;
            let synced = wallet.synced.height;
            let height = |given: Option<&Value>, refusal: &str| {
                let Some(height) = given.map(int32).transpose()? else { return Ok(None) };
                match u32::try_from(height) {
                    Ok(height) if height <= synced => Ok(Some(height)),
                    _ => Err(RpcError::invalid_parameter(refusal)),
                }
            };
            let first = height(start_height, "Invalid start_height")?.unwrap_or(0);
            let last = height(stop_height, "Invalid stop_height")?;
            if last.is_some_and(|last| last < first) {
                return Err(RpcError::invalid_parameter("stop_height must be greater than start_height"));
            }
            if !has_block(call, first)? {
                let pruned =
                    "Can't rescan beyond pruned data. Use RPC call getblockchaininfo to determine your pruned height.";
                return Err(unless_fetched_later(call, first, RpcError::misc(pruned)));
            }
            Ok(Imported { pending: Pending::Heights { first, last, synced }, rescan: Some(reservation) })
        });
    }

    /// Stops the wallet's rescan. Imports before the rescan stay in the wallet.
    ///
    /// # Result
    /// true|false    (boolean) Whether a rescan was running.
    #[method(unchecked)]
    fn abortrescan(call: &Call<'_>) -> Result<bool, ServiceError> {
        call.host.import.rescan_abort(call.scope)
    }
}

/// Whether the node has the block at a height. A pruned node lacks the lowest blocks.
pub fn has_block(call: &Call<'_>, height: u32) -> Result<bool, ServiceError> {
    let (chain, scope) = (&call.host.chain, call.scope);
    let info = chain.block_info(scope, BlockRef::Height { height })?;
    Ok(info.map(|info| chain.block(scope, info.hash)).transpose()?.flatten().is_some())
}

/// Whether the node validates blocks in the background, and so lacks some for now. False if the node does not answer.
pub fn is_validating(host: &Host, scope: Scope) -> bool {
    host.chain.background_validation(scope).is_ok_and(|first| first.is_some())
}

/// The error for a block that the node lacks: `pruned`, unless the node has not fetched the block yet.
pub fn unless_fetched_later(call: &Call<'_>, height: u32, pruned: RpcError) -> RpcError {
    match call.wallet().map(|wallet| wallet.node_behind) {
        _ if is_validating(call.host, call.scope) => Lack::Background.error(),
        Ok(Some(last)) if last.height < height => Lack::After(last.height).error(),
        _ => pruned,
    }
}

/// The blocks that the node lacks for now.
#[derive(Clone, Copy)]
pub enum Lack {
    /// Blocks that it validates in the background (assumeutxo).
    Background,
    /// All after this height.
    After(u32),
}

impl Lack {
    fn error(self) -> RpcError {
        RpcError::misc(match self {
            Self::Background => {
                "Failed to rescan unavailable blocks likely due to an in-progress assumeutxo background sync. Check logs or \
                 getchainstates RPC for assumeutxo background sync progress and try again later."
                    .to_owned()
            }
            Self::After(height) => format!("Failed to rescan unavailable blocks: {}", until_after(height)),
        })
    }
}

fn until_after(height: u32) -> String {
    format!("the node has no blocks after height {height} yet. getwalletinfo warns until it has them; try again then.")
}

/// A reservation of a rescan. A wallet has at most one. Dropping an unused reservation releases it.
pub struct Reservation<'a> {
    import: &'a dyn WalletImport,
    scope: Scope,
    /// The wallet's name.
    wallet: String,
    /// The rescan's number, which its events carry.
    number: u64,
    /// The node's best block, if the node lacks blocks that the wallet has followed.
    node: Option<Synced>,
    used: bool,
}

impl<'a> Reservation<'a> {
    /// Fails if another rescan is reserved or runs.
    pub fn new(call: &Call<'a>) -> Result<Self, ServiceError> {
        let (import, scope, wallet) = (&*call.host.import, call.scope, call.wallet()?);
        let number = import.rescan_reserve(scope)?;
        Ok(Self { import, scope, wallet: wallet.name, number, node: wallet.node_behind, used: false })
    }

    pub fn start(mut self, begin: Begin) -> Result<(), ServiceError> {
        match begin {
            Begin::Time(from_time) => self.import.rescan_start(self.scope, self.number, from_time)?,
            Begin::Heights(first, last) => self.import.rescan_heights(self.scope, self.number, first, last)?,
        }
        self.used = true;
        Ok(())
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        if !self.used {
            // If the host cannot release it, the wallet has been unloaded, which ended the reservation.
            let _ = self.import.rescan_release(self.scope, self.number);
        }
    }
}

/// The first block of a rescan.
#[derive(Clone, Copy)]
pub enum Begin {
    /// From a time, in seconds, as the service's `rescan_start` reads it.
    Time(u64),
    /// The block of the first height. The rescan ends at the second height, or at the wallet's last block.
    Heights(u32, Option<u32>),
}

/// The end of a rescan.
pub struct RescanEnd {
    pub outcome: RescanOutcome,
    /// The height of the last block to read, if the host knows it.
    pub last_height: Option<u32>,
    /// Whether payments near the end of a range extended the range and made the host read the blocks again.
    pub widened: bool,
    /// The blocks that the node lacks for now, if any could not be read.
    pub lack: Option<Lack>,
}

impl RescanEnd {
    pub fn of(outcome: RescanOutcome) -> Self {
        Self { outcome, last_height: None, widened: false, lack: None }
    }
}

/// A call that waits for its rescan. A call without a rescan is answered at once.
pub enum Pending {
    /// importmulti or importdescriptors.
    Outcomes(Outcomes),
    /// rescanblockchain.
    Heights {
        first: u32,
        last: Option<u32>,
        /// The height of the wallet's last block when the rescan began.
        synced: u32,
    },
    /// An import that returns null. The whole chain is scanned.
    Null,
}

impl Pending {
    fn begin(&self) -> Begin {
        match self {
            Self::Outcomes(outcomes) => Begin::Time(outcomes.from_time),
            Self::Heights { first, last, .. } => Begin::Heights(*first, *last),
            Self::Null => Begin::Time(EARLIEST_TIME),
        }
    }

    /// The result of the call after its rescan, as JSON.
    pub fn finish(self, end: &RescanEnd) -> Result<Vec<u8>, RpcError> {
        let value = match (self, &end.outcome) {
            // A tree of values would take many allocations for each of 10,000 requests.
            (Self::Outcomes(outcomes), _) => {
                let outcomes = serde_json::to_vec(&outcomes.finish(end)?);
                return outcomes.map_err(|error| RpcError::internal(error.to_string()));
            }
            (Self::Heights { .. }, RescanOutcome::Aborted) => return Err(RpcError::misc("Rescan aborted.")),
            (Self::Heights { .. }, RescanOutcome::Unreadable { .. }) => {
                let damaged = || RpcError::misc("Rescan failed. Potentially corrupted data files.");
                return Err(end.lack.map_or_else(damaged, Lack::error));
            }
            (Self::Heights { first, last, synced }, RescanOutcome::Complete) => {
                let stop = last.or(end.last_height).unwrap_or(synced);
                json!({"start_height": first, "stop_height": stop})
            }
            (Self::Null, RescanOutcome::Aborted) => return Err(aborted_by_user()),
            (Self::Null, RescanOutcome::Unreadable { .. }) => {
                let message = "Rescan was unable to fully rescan the blockchain. Some transactions may be missing.";
                return Err(RpcError::wallet(message));
            }
            (Self::Null, RescanOutcome::Complete) => Value::Null,
        };
        Ok(value.to_string().into_bytes())
    }
}

fn aborted_by_user() -> RpcError {
    RpcError::misc("Rescan aborted by user.")
}

/// The words for an item of an import in the error for an unreadable block.
pub type ItemWords = [&'static str; 4];

/// Those of importmulti and importdescriptors.
pub const KEY: ItemWords = ["key with creation timestamp", "the key", "this key", "-reindex and -rescan options"];
pub const DESCRIPTOR: ItemWords =
    ["descriptor with timestamp", "the desc", "this desc", "-reindex option and rescanblockchain RPC"];

/// The results of an import before its rescan.
pub struct Outcomes {
    /// The requests' outcomes if the host can read all blocks.
    pub outcomes: Vec<Outcome>,
    /// The requests' creation times in seconds, as the client gave them.
    pub timestamps: Vec<i64>,
    pub item: ItemWords,
    /// The time at which the rescan begins, in seconds.
    pub from_time: u64,
}

impl Outcomes {
    fn finish(mut self, end: &RescanEnd) -> Result<Vec<Outcome>, RpcError> {
        match &end.outcome {
            // Any of the ranges may have been too short.
            RescanOutcome::Complete if end.widened => {
                for outcome in self.outcomes.iter_mut().filter(|outcome| outcome.success && outcome.ranged) {
                    outcome.warnings.push(RANGE_WIDENED.to_owned());
                }
            }
            RescanOutcome::Complete => {}
            RescanOutcome::Aborted => return Err(aborted_by_user()),
            RescanOutcome::Unreadable { block_time } => self.fail_unscanned(i64::from(*block_time), end.lack),
        }
        Ok(self.outcomes)
    }

    /// Fails the requests that may have transactions in the block of `block_time`, or before it.
    fn fail_unscanned(&mut self, block_time: i64, lack: Option<Lack>) {
        let scanned_from = block_time + TIMESTAMP_WINDOW + 1;
        if i64::try_from(self.from_time).is_ok_and(|from_time| scanned_from <= from_time) {
            return;
        }
        for (outcome, timestamp) in self.outcomes.iter_mut().zip(&self.timestamps) {
            if outcome.error.is_none() && *timestamp < scanned_from {
                let message = unreadable(self.item, *timestamp, block_time, lack);
                *outcome = Outcome::failed(RpcError::misc(message), Vec::new());
            }
        }
    }
}

/// Why a block cannot be read. The rest of the sentence depends on the method, since importmulti has the text of Bitcoin Core 0.21.
const DROPPED: &str = "This error could be caused by pruning or data corruption (see bitcoind log for details) and could be dealt \
                       with by downloading and rescanning the relevant blocks";
const BACKGROUND: &str = "This error is likely caused by an in-progress assumeutxo background sync. Check logs or getchainstates RPC \
                          for assumeutxo background sync progress and try again later.";

fn unreadable(words: ItemWords, timestamp: i64, block_time: i64, lack: Option<Lack>) -> String {
    let [item, pertaining, using, remedy] = words;
    let cause = match lack {
        None => format!("{DROPPED} (see {remedy})."),
        Some(Lack::Background) => BACKGROUND.to_owned(),
        Some(Lack::After(height)) => format!("This error is likely temporary: {}", until_after(height)),
    };
    format!(
        "Rescan failed for {item} {timestamp}. There was an error reading a block from time {block_time}, which is \
         after or within {TIMESTAMP_WINDOW} seconds of key creation, and could contain transactions pertaining to \
         {pertaining}. As a result, transactions and coins using {using} may not appear in the wallet. {cause}"
    )
}

/// What a call waits for. A call is kept before its rescan starts, because the rescan may end at once.
pub struct Waiting {
    wallet: String,
    rescan: u64,
    pending: Pending,
    node: Option<Synced>,
}

impl Waiting {
    /// Starts the reserved rescan and keeps the call until its end.
    pub fn start(waits: &Arc<Waits<Self>>, reservation: Reservation<'_>, reply: Reply, pending: Pending) {
        let (token, begin) = (reply.token(), pending.begin());
        let (wallet, rescan, node) = (reservation.wallet.clone(), reservation.number, reservation.node);
        let wanted = Self { wallet, rescan, pending, node };
        if waits.keep(Waiter { reply, wanted, deadline: None }) {
            waits.look();
        } else if let Err(error) = reservation.start(begin)
            && let Some(waiter) = waits.take(token)
        {
            waiter.reply.fail(error);
        }
    }

    /// Answers the call of a rescan that has ended.
    pub fn finished(waits: &Waits<Self>, wallet: &str, rescan: u64, mut end: RescanEnd) {
        let is_of = |waiting: &Self| waiting.wallet == wallet && waiting.rescan == rescan;
        let (due, stopped) = waits.take_due(is_of).into_iter().partition(|waiter| is_of(&waiter.wanted));
        Self::abort(stopped);
        for Waiter { reply, wanted: Self { pending, node, .. }, .. } in due {
            // The node downloads later blocks only. It has pruned or damaged an earlier one.
            if let (RescanOutcome::Unreadable { block_time }, Some(node)) = (&end.outcome, node)
                && *block_time >= node.time
            {
                end.lack = end.lack.or(Some(Lack::After(node.height)));
            }
            reply.send_json(pending.finish(&end));
        }
    }

    /// Answers calls as if a user had aborted their rescans.
    pub fn abort(calls: Vec<Waiter<Self>>) {
        for Waiter { reply, wanted, .. } in calls {
            reply.send_json(wanted.pending.finish(&RescanEnd::of(RescanOutcome::Aborted)));
        }
    }
}
