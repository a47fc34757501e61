//! A cache of recent blocks, each fetched, decoded and hashed once for all wallets.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use bitcoin::hashes::Hash;
use bitcoin::{BlockHash, Transaction, Txid};
use outrigger_node::{Gap, Node, NodeError, ReadBlock};
use outrigger_service::chain::{BlockInfo, BlockRef};
use outrigger_service::wallet::Synced;
use parking_lot::Mutex;

use outrigger_node::interest::interests;

use crate::error::{Result, WalletError};
use crate::live::index::{Index, WalletNumber};

/// The most cached blocks, and the most bytes of them.
pub const MAX_BLOCKS: usize = 16;
const MAX_BYTES: usize = 64 << 20;

pub fn previous(info: &BlockInfo) -> Option<BlockHash> {
    info.header.get(4..36).and_then(|hash| BlockHash::from_slice(hash).ok())
}

/// The time in the block's header, in seconds; 0 if the header is too short.
pub fn header_time(info: &BlockInfo) -> u32 {
    info.header.get(68..72).and_then(|time| time.try_into().ok()).map_or(0, u32::from_le_bytes)
}

pub fn synced_at(info: &BlockInfo) -> Synced {
    Synced { hash: info.hash, height: info.height, time: header_time(info), median_time: info.median_time }
}

pub struct DecodedBlock {
    pub info: BlockInfo,
    pub transactions: Vec<(Txid, Transaction)>,
    pub time: u32,
    /// In bytes.
    pub size: usize,
    /// The interests that each transaction matches: its inputs, its txid, and the scripts that it pays to.
    interests: Vec<Vec<u64>>,
}

impl DecodedBlock {
    fn new(info: BlockInfo, ReadBlock { block, txids, size }: ReadBlock) -> Self {
        let time = block.header.time;
        let transactions: Vec<_> = txids.into_iter().zip(block.txdata).collect();
        let hashed = transactions.iter().map(|(txid, transaction)| interests(transaction, txid).collect());
        Self { info, interests: hashed.collect(), transactions, time, size }
    }

    pub fn previous(&self) -> Option<BlockHash> {
        previous(&self.info)
    }

    /// The wallets that the block may concern.
    pub fn concerned(&self, index: &Index) -> HashSet<WalletNumber> {
        let mut found = HashSet::new();
        for interest in self.interests.iter().flatten() {
            index.collect(*interest, &mut found);
        }
        found
    }

    pub fn concerns(&self, index: &Index, slot: WalletNumber) -> bool {
        self.interests.iter().flatten().any(|interest| index.has(slot, *interest))
    }

    /// Whether a transaction may concern a wallet by now: transactions before it may have added scripts and coins.
    pub fn transaction_concerns(&self, at: usize, index: &Index, slot: WalletNumber) -> bool {
        self.interests.get(at).is_some_and(|interests| interests.iter().any(|interest| index.has(slot, *interest)))
    }
}

/// A cache entry. The first caller fills it; the others wait for its lock.
type BlockSlot = Arc<Mutex<Option<Arc<DecodedBlock>>>>;

#[derive(Default)]
pub struct Blocks {
    kept: Mutex<VecDeque<(BlockHash, BlockSlot)>>,
    #[cfg(test)]
    pub read: std::sync::atomic::AtomicUsize,
}

impl Blocks {
    /// A block of the chain. If the node lacks it, fails with [`WalletError::Pruned`] or [`WalletError::Background`] if
    /// that is the reason, with [`NodeError::Unavailable`] while the node is behind, else with [`WalletError::MissingBlock`].
    pub fn get(&self, node: &dyn Node, hash: BlockHash) -> Result<Arc<DecodedBlock>> {
        let place = self.place(hash);
        let mut block = place.lock();
        if let Some(block) = &*block {
            return Ok(block.clone());
        }
        let decoded = Arc::new(read(node, hash)?);
        #[cfg(test)]
        self.read.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        *block = Some(decoded.clone());
        drop(block);
        self.trim();
        Ok(decoded)
    }

    fn place(&self, hash: BlockHash) -> BlockSlot {
        let mut kept = self.kept.lock();
        let found = kept.iter().position(|(other, _)| *other == hash).and_then(|at| kept.remove(at));
        let entry = found.unwrap_or_else(|| (hash, BlockSlot::default()));
        let place = entry.1.clone();
        kept.push_front(entry);
        place
    }

    fn trim(&self) {
        let mut kept = self.kept.lock();
        let mut bytes = 0;
        let mut number = 0;
        kept.retain(|(_, place)| {
            // A block that is being read has no size yet. It counts once read.
            bytes += place.try_lock().and_then(|block| block.as_ref().map(|block| block.size)).unwrap_or(0);
            number += 1;
            number == 1 || (number <= MAX_BLOCKS && bytes <= MAX_BYTES)
        });
    }
}

fn read(node: &dyn Node, hash: BlockHash) -> Result<DecodedBlock> {
    let missing = || WalletError::MissingBlock(hash.to_string());
    let chain = node.snapshot()?;
    let info = chain.block_info(BlockRef::Hash { hash })?.ok_or_else(missing)?;
    if let Some(block) = chain.read_block(hash)? {
        return Ok(DecodedBlock::new(info, block));
    }
    let behind = node.link().map_or(0, |link| link.behind);
    match node.gap()? {
        Gap::Pruned { first } if info.height < first => Err(WalletError::Pruned { height: info.height, first }),
        Gap::Background { first } if info.height <= first => Err(WalletError::Background { first }),
        // The wallet waits for the block, as while the node is away.
        _ if behind > 0 && info.height > node.tip().height.saturating_sub(behind) => {
            Err(NodeError::Unavailable(format!("block {hash} is missing: the node is {behind} blocks behind")).into())
        }
        _ => Err(missing()),
    }
}

#[cfg(test)]
mod tests {
    use outrigger_scripted_node::ScriptedNode;

    use super::*;

    #[test]
    fn a_block_is_read_once_and_the_last_ones_are_kept() {
        let node = ScriptedNode::new();
        let script = bitcoin::ScriptBuf::from_bytes(vec![0x51]);
        let hashes: Vec<_> = (0..20).map(|_| node.chain.mine_to(script.clone(), vec![])).collect();
        let blocks = Blocks::default();
        let first = blocks.get(&*node, hashes[0]).unwrap();
        assert!(Arc::ptr_eq(&first, &blocks.get(&*node, hashes[0]).unwrap()));
        for hash in &hashes {
            blocks.get(&*node, *hash).unwrap();
        }
        assert_eq!(blocks.kept.lock().len(), MAX_BLOCKS);
        let last = blocks.get(&*node, hashes[19]).unwrap();
        assert!(Arc::ptr_eq(&last, &blocks.get(&*node, hashes[19]).unwrap()));
        assert!(!Arc::ptr_eq(&first, &blocks.get(&*node, hashes[0]).unwrap()));
    }
}
