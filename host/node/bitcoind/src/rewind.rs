//! Decides whether the host follows the node to an ancestor or a weaker branch, and detects missing blocks.

use std::time::{Duration, Instant};

use bitcoin::{BlockHash, Work};
use serde::Deserialize;
use serde_json::json;

use super::answers::{ChainAnswer, RpcInfoAnswer, TipAnswer};
use super::chain::Entry;
use super::error::{AskError, MirrorError, SyncError};
use super::mirror::Moment;
use super::standing::is_fetching;
use super::sync::{CATCH_UP_PATIENCE, Follower};

/// How often the host checks whether the node lacks blocks of known headers.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// The method by which an operator removes blocks from the node's chain.
const INVALIDATE: &str = "invalidateblock";

#[derive(Deserialize)]
struct WorkAnswer {
    chainwork: String,
}

impl Follower {
    /// Checks periodically whether the node lacks blocks of known headers, or is in its initial download.
    pub(crate) fn look_for_lack(&self) {
        let standing = &self.standing;
        if standing.lack.lock().0.is_some_and(|at| at.elapsed() < LOOK_EVERY) {
            return;
        }
        let asked = self.rpc.ask_within::<ChainAnswer>(CATCH_UP_PATIENCE, "getblockchaininfo", &json!([]));
        let mut lack = standing.lack.lock();
        lack.0 = Some(Instant::now());
        if let Ok(info) = asked {
            lack.1 = info.headers > info.blocks || is_fetching(&info);
        }
        drop(lack);
        standing.note_late();
    }

    /// Checks whether the mirror may move to the node's best block, whose branch leaves the mirrored headers at `base`.
    pub(super) fn check_rewind(&self, moment: &Moment, base: BlockHash, best: BlockHash) -> Result<(), SyncError> {
        let fork = fork(moment, base)?;
        let depth = moment.tip.height - fork.height;
        let is_ancestor = fork.hash() == best;
        if !is_ancestor && (self.rewind.limit.is_none_or(|limit| depth <= limit) || self.work(best)? >= moment.tip.work)
        {
            return Ok(());
        }
        if self.is_invalidating() {
            return Err(SyncError::Invalidating { depth });
        }
        let tips: Vec<TipAnswer> = self.rpc.ask("getchaintips", &json!([]))?;
        if self.is_invalid_there(moment, &fork, &tips)? {
            return Ok(());
        }
        let info: ChainAnswer = self.rpc.ask("getblockchaininfo", &json!([]))?;
        if info.headers >= moment.tip.height || is_fetching(&info) {
            return Err(SyncError::Behind { depth });
        }
        let allowed = self.rewind.allowed.map(|hash| moment.entry(&hash)).transpose()?.flatten();
        let is_allowed =
            allowed.is_some_and(|named| named.height <= fork.height && moment.is_best(&named).unwrap_or(false));
        match self.rewind.limit {
            Some(limit) if depth > limit && !is_allowed => Err(match is_ancestor {
                true => SyncError::Rewind { best, depth, limit },
                false => SyncError::Branch { best, fork: fork.hash(), depth, limit },
            }),
            _ => Ok(()),
        }
    }

    fn work(&self, hash: BlockHash) -> Result<Work, AskError> {
        let WorkAnswer { chainwork } = self.rpc.ask("getblockheader", &json!([hash, true]))?;
        Work::from_unprefixed_hex(&chainwork).map_err(|error| AskError::form("getblockheader", &error))
    }

    /// Whether the node executes invalidateblock. Without an answer, the host assumes that it does not.
    fn is_invalidating(&self) -> bool {
        let asked = self.rpc.ask_within::<RpcInfoAnswer>(CATCH_UP_PATIENCE, "getrpcinfo", &json!([]));
        asked.is_ok_and(|info| info.runs(INVALIDATE))
    }

    /// Whether the node has marked the mirrored chain above `base` as invalid. The host then follows the node.
    fn is_invalid_there(&self, moment: &Moment, base: &Entry, tips: &[TipAnswer]) -> Result<bool, SyncError> {
        let first = moment.best_at(base.height.saturating_add(1))?;
        for tip in tips.iter().filter(|tip| tip.status == "invalid" && tip.height > base.height) {
            let Some(mut entry) = self.learn(tip.hash)? else { continue };
            let now = self.mirror.moment()?;
            while entry.height > base.height.saturating_add(1) {
                entry = now.entry(&entry.header.prev_blockhash)?.ok_or(MirrorError::Row("headers"))?;
            }
            if Some(entry.hash()) == first {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The block at which a mirrored branch forks from the best chain.
fn fork(moment: &Moment, base: BlockHash) -> Result<Entry, MirrorError> {
    let mut entry = moment.entry(&base)?.ok_or(MirrorError::BadHeader(base))?;
    while !moment.is_best(&entry)? {
        entry = moment.entry(&entry.header.prev_blockhash)?.ok_or(MirrorError::Row("headers"))?;
    }
    Ok(entry)
}
