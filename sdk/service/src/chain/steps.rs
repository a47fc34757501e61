//! The blocks to disconnect and connect between a follower's block and the tip.

use bitcoin::{BlockHash, TxOut};

use super::{BlockInfo, BlockRef, Cursor, Step, Steps};
use crate::wire::Blob;
use crate::{ErrorKind, Result, ServiceError};

/// The most blocks of an answer.
pub const MAX_STEPS: u32 = 1_000;

/// The size of blocks and spent outputs at which an answer ends, in bytes.
pub const MAX_STEP_BYTES: usize = 8 << 20;

/// The remedy if the chain never gets a follower's block: the node lost it in a crash, or the follower has followed another chain.
pub const NEVER_AGAIN: &str = "the follower waits for it; if it never comes, since the node lost it or the follower has followed another \
                               chain, stop the host and remove what the plugin keeps: its folder, or its store by \
                               `outrigger plugin store ID drop`";

/// The size of an output without its script, in bytes.
const OUTPUT_HEAD: usize = 12;

/// A snapshot of the chain for [`Steps::collect`].
pub trait StepSource {
    /// The best block.
    fn tip(&self) -> Result<Cursor>;
    /// As [`super::Chain::block_info`].
    fn info(&self, block: BlockRef) -> Result<Option<BlockInfo>>;
    /// As [`super::Chain::fork_point`].
    fn fork_point(&self, hash: BlockHash) -> Result<Option<BlockInfo>>;
    /// A block's serialisation, and the outputs that it spends if the caller requested them.
    fn read(&self, at: Cursor) -> Result<(Blob, Vec<TxOut>)>;
}

impl Steps {
    /// The steps of a chain after a block: at most `limit`, but at least one if any is left.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] if the chain has no such block at that height; the errors of the source.
    pub fn collect(source: &dyn StepSource, after: Option<Cursor>, limit: u32) -> Result<Self> {
        let tip = source.tip()?;
        let mut steps = Self { disconnect: Vec::new(), connect: Vec::new(), tip };
        let mut room = Room { blocks: limit.clamp(1, MAX_STEPS), bytes: MAX_STEP_BYTES };
        let mut height = 0;
        if let Some(mut at) = after {
            let fork = fork(source, at)?;
            while at.hash != fork.hash && room.is_left() {
                let step = room.read(source, at)?;
                at = Cursor { hash: previous(&step)?, height: at.height.saturating_sub(1) };
                steps.disconnect.push(step);
            }
            height = at.height.saturating_add(1);
        }
        while height <= tip.height && room.is_left() {
            let info = source.info(BlockRef::Height { height })?.ok_or(ErrorKind::NotFound)?;
            steps.connect.push(room.read(source, Cursor { hash: info.hash, height })?);
            height = height.saturating_add(1);
        }
        Ok(steps)
    }
}

/// The last common block of a follower's branch and the best chain.
fn fork(source: &dyn StepSource, at: Cursor) -> Result<BlockInfo> {
    let unknown = || {
        let Cursor { hash, height } = at;
        let reason = format!("The chain has no block {hash} at height {height}: {NEVER_AGAIN}");
        ServiceError::new(ErrorKind::NotFound, reason)
    };
    let info = source.info(BlockRef::Hash { hash: at.hash })?;
    info.filter(|info| info.height == at.height).ok_or_else(unknown)?;
    source.fork_point(at.hash)?.ok_or_else(unknown)
}

/// The hash of the previous block, from a block's header.
fn previous(step: &Step) -> Result<BlockHash> {
    let hash = step.block.get(4..36).and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
    let broken = || ServiceError::new(ErrorKind::Storage, format!("block {} is cut off", step.hash));
    hash.map(bitcoin::hashes::Hash::from_byte_array).ok_or_else(broken)
}

/// The blocks and bytes left in an answer.
struct Room {
    blocks: u32,
    bytes: usize,
}

impl Room {
    fn is_left(&self) -> bool {
        self.blocks > 0 && self.bytes > 0
    }

    fn read(&mut self, source: &dyn StepSource, at: Cursor) -> Result<Step> {
        let (block, spent) = source.read(at)?;
        let outputs = spent.iter().map(|output| OUTPUT_HEAD + output.script_pubkey.len());
        self.bytes = self.bytes.saturating_sub(block.len() + outputs.sum::<usize>());
        self.blocks = self.blocks.saturating_sub(1);
        Ok(Step { hash: at.hash, height: at.height, block, spent })
    }
}
