//! The blocks for followers, read from one snapshot.

use bitcoin::{BlockHash, TxOut};
use outrigger_node::{Gap, Node, Snapshot};
use outrigger_service::chain::{BlockInfo, BlockRef, Cursor, NEVER_AGAIN, StepSource, Tip};
use outrigger_service::wire::Blob;
use outrigger_service::{ErrorKind, Result, ServiceError};

/// The byte after a block's header, if the coinbase is the only transaction.
const ALONE: Option<&u8> = Some(&1);
const HEADER_LEN: usize = 80;

pub struct StepReads<'a> {
    pub node: &'a dyn Node,
    pub snapshot: &'a dyn Snapshot,
    pub with_spent: bool,
}

impl StepReads<'_> {
    /// Why the node lacks a block, or the outputs that the block spends.
    fn missing(&self, what: &str, at: Cursor) -> ServiceError {
        let Cursor { hash, height } = at;
        let lacks = format!("The node has no {what} {hash} at height {height}");
        let (gap, on_chain) = match (self.node.gap(), self.snapshot.block_info(BlockRef::Height { height })) {
            (Ok(gap), Ok(info)) => (gap, info.is_some_and(|info| info.hash == hash)),
            (Err(error), _) | (_, Err(error)) => return error.into(),
        };
        match gap {
            Gap::Pruned { first } => ServiceError::new(
                ErrorKind::Unsupported,
                format!(
                    "The node has pruned {what} {hash} at height {height}, and has all from {first} on: set prune=0 in bitcoin.conf"
                ),
            ),
            Gap::Background { first } if height < first => ServiceError::new(
                ErrorKind::NodeUnavailable,
                format!("{lacks} yet: it validates the blocks below {first} in the background"),
            ),
            _ if on_chain => ServiceError::new(ErrorKind::NodeUnavailable, format!("{lacks} yet")),
            _ => ServiceError::new(ErrorKind::NotFound, format!("{lacks}: {NEVER_AGAIN}")),
        }
    }
}

impl StepSource for StepReads<'_> {
    fn tip(&self) -> Result<Cursor> {
        let Tip { hash, height, .. } = self.snapshot.tip();
        Ok(Cursor { hash, height })
    }

    fn info(&self, block: BlockRef) -> Result<Option<BlockInfo>> {
        Ok(self.snapshot.block_info(block)?)
    }

    fn fork_point(&self, hash: BlockHash) -> Result<Option<BlockInfo>> {
        Ok(self.snapshot.fork_point(hash)?)
    }

    fn read(&self, at: Cursor) -> Result<(Blob, Vec<TxOut>)> {
        let block = self.snapshot.block(at.hash)?.ok_or_else(|| self.missing("block", at))?;
        // No node keeps undo data of the genesis block.
        if !self.with_spent || block.get(HEADER_LEN) == ALONE {
            return Ok((block, Vec::new()));
        }
        let spent = self.snapshot.spent_by(at.hash, &block)?;
        let spent = spent.ok_or_else(|| self.missing("outputs that are spent by block", at))?;
        Ok((block, spent))
    }
}
