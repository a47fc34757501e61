//! Changes of the chain on request: submitted blocks and headers, invalidateblock, reconsiderblock, preciousblock.

use bitcoin::BlockHash;
use bitcoin::block::Header;
use bitcoin::consensus::{deserialize, serialize};
use outrigger_service::chain::Verdict;

use super::change::Change;
use super::decode::{NamedBlock, decode_block};
use super::store::rows::{BlockEntry, Failure, Validity};
use super::validation::{
    self, ConnectError, ValidationError, check_block, check_header, check_in_context, check_proof_of_work,
    fill_coinbase_witness,
};
use super::{EmbeddedError, EmbeddedNode};

/// invalidateblock returns the transactions of this many disconnected blocks, the highest first, to the mempool. Those
/// of deeper blocks are dropped, as in Bitcoin Core (`Chainstate::InvalidateBlock`).
const INVALIDATED_BLOCKS_TAKEN_BACK: usize = 10;

impl From<ValidationError> for Verdict {
    fn from(error: ValidationError) -> Self {
        Self::Invalid { reason: error.reason.into_owned(), detail: error.detail }
    }
}

impl EmbeddedNode {
    /// Validates a block on the tip, except for its proof of work, and stores nothing (BIP 23 proposal).
    pub fn check_block(&self, raw: &[u8]) -> Result<Verdict, EmbeddedError> {
        let Ok((block, _)) = decode_block(raw) else { return Ok(Verdict::Undecodable) };
        let txn = self.store.read()?;
        if let Some(entry) = self.store.entry(&txn, &block.block_hash())? {
            return Ok(match (entry.failure, entry.validity) {
                (Failure::Own | Failure::Inherited, _) => Verdict::DuplicateInvalid,
                // bitcoind connects the genesis block without validating it.
                (Failure::None, Validity::Connected) if entry.height > 0 => Verdict::Duplicate,
                (Failure::None, _) => Verdict::DuplicateInconclusive,
            });
        }
        let tip = super::snapshot::tip(&self.store, &txn)?;
        if block.header.prev_blockhash != tip.hash {
            return Ok(Verdict::NotBestPrevious);
        }
        match validation::validate_block(&self.validation(&txn), &block, &tip, self.clock.now()) {
            Ok(()) => Ok(Verdict::Valid),
            Err(ConnectError::Refused(error)) => Ok(error.into()),
            Err(ConnectError::Node(error)) => Err(error),
        }
    }

    /// Stores a block, and connects it if its chain is the best. After [`Verdict::Valid`] the block is on disk.
    pub fn submit_block(&self, raw: &[u8]) -> Result<Verdict, EmbeddedError> {
        let Ok((mut block, raw)) = decode_block(raw) else { return Ok(Verdict::Undecodable) };
        let hash = block.block_hash();
        let follows = {
            let txn = self.store.read()?;
            self.store.entry(&txn, &block.header.prev_blockhash)?.is_some()
        };
        let filled = (follows && fill_coinbase_witness(&mut block)).then(|| serialize(&*block));
        // Checked before the hash is looked up: a mutated block has the valid block's hash.
        if let Err(error) = check_proof_of_work(&block.header).and_then(|()| check_block(&block)) {
            return Ok(error.into());
        }
        let raw = filled.as_deref().unwrap_or(raw);
        self.change(|change| change.accept_block(hash, block, raw))
    }

    /// Stores an 80-byte header, which is invalid if its parent is unknown.
    pub fn submit_header(&self, raw: &[u8]) -> Result<Verdict, EmbeddedError> {
        let Ok(header) = deserialize::<Header>(raw) else { return Ok(Verdict::Undecodable) };
        self.change(|change| {
            let previous = header.prev_blockhash;
            if change.tree.get(&previous).is_none() {
                let reason = format!("Must submit previous header ({previous}) first");
                return Ok(Verdict::Invalid { reason, detail: String::new() });
            }
            Ok(match change.accept_header(header.block_hash(), &header)? {
                Ok(_) => Verdict::Valid,
                Err(verdict) => verdict,
            })
        })
    }

    /// Marks a block and its descendants as failed, and activates the best remaining chain. The genesis block stays
    /// valid.
    pub fn invalidate_block(&self, hash: BlockHash) -> Result<(), EmbeddedError> {
        self.change(|change| {
            let entry = change.tree.get(&hash).ok_or(EmbeddedError::UnknownBlock(hash))?;
            if entry.height == 0 {
                return Ok(());
            }
            change.taken_back = INVALIDATED_BLOCKS_TAKEN_BACK;
            change.fail(hash)?;
            change.activate()
        })
    }

    /// Removes the failure marks of a block, its ancestors and its descendants. A block that breaks a rule is marked
    /// again when the node tries to connect it.
    pub fn reconsider_block(&self, hash: BlockHash) -> Result<(), EmbeddedError> {
        self.change(|change| {
            change.tree.get(&hash).ok_or(EmbeddedError::UnknownBlock(hash))?;
            let mut related = change.tree.descendants(hash);
            related.extend(change.tree.ancestors(&hash).map(|(hash, _)| hash));
            for related in related {
                if change.tree.known(&related)?.failure != Failure::None {
                    change.update(&related, |entry| entry.failure = Failure::None)?;
                }
            }
            change.tree.find_best_header();
            change.activate()
        })
    }

    /// Prefers a block to others of the same work, as if it had arrived first. Does nothing if the tip has more work.
    pub fn precious_block(&self, hash: BlockHash) -> Result<(), EmbeddedError> {
        self.change(|change| {
            let entry = change.tree.get(&hash).ok_or(EmbeddedError::UnknownBlock(hash))?;
            if entry.work < change.tree.known(&change.node.tip().hash)?.work {
                return Ok(());
            }
            let sequence = change.tree.take_precious_sequence();
            change.update(&hash, |entry| entry.sequence = sequence)?;
            change.activate()
        })
    }
}

impl Change<'_> {
    /// Adds a header to the tree, if it is new. The inner `Err` is the verdict on a refused header.
    fn accept_header(&mut self, hash: BlockHash, header: &Header) -> Result<Result<(), Verdict>, EmbeddedError> {
        if let Some(entry) = self.tree.get(&hash) {
            let failed = entry.failure != Failure::None;
            return Ok(if failed { Err(Verdict::DuplicateInvalid) } else { Ok(()) });
        }
        if let Err(error) = self.validate_header(header) {
            return Ok(Err(error.into()));
        }
        let parent = *self.tree.known(&header.prev_blockhash)?;
        let entry = BlockEntry {
            header: *header,
            height: parent.height + 1,
            work: parent.work + header.work(),
            median_time: self.tree.median_time(header.time, &header.prev_blockhash),
            transactions: 0,
            size: 0,
            sequence: 0,
            validity: Validity::Header,
            failure: Failure::None,
        };
        self.insert(hash, entry)?;
        Ok(Ok(()))
    }

    fn validate_header(&self, header: &Header) -> Result<(), ValidationError> {
        check_proof_of_work(header)?;
        let before = self.tree.get(&header.prev_blockhash).ok_or_else(|| ValidationError::new("prev-blk-not-found"))?;
        if before.failure != Failure::None {
            return Err(ValidationError::new("bad-prevblk"));
        }
        check_header(header, &before.tip(header.prev_blockhash), self.node.clock.now())
    }

    /// Accepts a block that has passed [`check_block`].
    fn accept_block(&mut self, hash: BlockHash, block: NamedBlock, raw: &[u8]) -> Result<Verdict, EmbeddedError> {
        if let Err(verdict) = self.accept_header(hash, &block.header)? {
            return Ok(verdict);
        }
        if self.tree.known(&hash)?.validity > Validity::Header {
            return Ok(Verdict::Duplicate);
        }
        let parent = self.parent(&block.header.prev_blockhash)?;
        if let Err(error) = check_in_context(&block, &parent) {
            if !error.mutated {
                self.fail(hash)?;
            }
            return Ok(error.into());
        }
        self.store_block(hash, raw, block.txdata.len())?;
        // `activate` takes the block from here instead of reading it again.
        self.blocks.insert(hash, block);
        self.activate()?;
        Ok(if let Some(error) = self.refused.remove(&hash) {
            error.into()
        } else if self.connected.contains(&hash) {
            Verdict::Valid
        } else {
            Verdict::Inconclusive
        })
    }
}
