//! The search of the chain for a wallet's scripts, which reads only blocks that may match.
//!
//! A block's *digest* is a short hash of each script that the block pays to or spends from. A search looks each hash up
//! in a set, so its cost does not depend on the number of wanted scripts. A collision makes it read a block needlessly;
//! no match is missed.

use std::collections::HashSet;
use std::fmt::{self, Display, Formatter};

use bitcoin::hashes::siphash24;
use bitcoin::{Block, BlockHash, Script, Transaction, Txid};
use foldhash::fast::RandomState;
use outrigger_service::chain::SpentOutputs;

/// The keys of the hash. All blocks share them, so that wanted scripts are hashed once.
const KEYS: (u64, u64) = (0x6f75_7472_6967_6765, 0x7220_6469_6765_7374);
/// A search stops when the matching blocks exceed this size in total, in bytes.
pub const MAX_READ: usize = 8 << 20;

/// The hash of a script in digests.
pub fn script_hash(script: &Script) -> u64 {
    siphash24::Hash::hash_to_u64_with_keys(KEYS.0, KEYS.1, script.as_bytes())
}

/// Wanted scripts: hashed for digests, and whole for block filters, whose hashes are keyed by block (BIP 158).
#[derive(Default)]
pub struct ScriptSet {
    hashes: HashSet<u64, RandomState>,
    /// All scripts, concatenated, and the end of each.
    bytes: Vec<u8>,
    ends: Vec<usize>,
    unfiltered: bool,
}

impl ScriptSet {
    pub fn insert(&mut self, script: &Script) {
        if self.hashes.insert(script_hash(script)) {
            self.bytes.extend_from_slice(script.as_bytes());
            self.ends.push(self.bytes.len());
            self.unfiltered |= script.is_op_return() || script.is_empty();
        }
    }

    pub fn scripts(&self) -> impl Iterator<Item = &[u8]> {
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        begins.zip(&self.ends).filter_map(|(begin, end)| self.bytes.get(begin..*end))
    }

    /// Whether a wanted script is in no block filter: it is empty or begins with OP_RETURN.
    pub fn has_unfiltered(&self) -> bool {
        self.unfiltered
    }

    #[inline]
    pub fn has(&self, hash: u64) -> bool {
        self.hashes.contains(&hash)
    }

    fn has_script(&self, script: &Script) -> bool {
        self.has(script_hash(script))
    }
}

/// A block that matches or cannot be read.
pub struct FoundBlock {
    pub hash: BlockHash,
    pub height: u32,
    /// The greatest time of the block and its ancestors, in Unix seconds.
    pub max_time: u32,
    /// `None` if the block cannot be read.
    pub found: Option<Found>,
}

pub struct Found {
    /// The time in the block's header, in Unix seconds.
    pub time: u32,
    /// The transactions that pay to or spend from the scripts, with their positions in the block.
    pub transactions: Vec<(u32, Txid, Transaction)>,
}

/// The data that a search reads of each block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SearchReads {
    /// The block's digest, which the host keeps.
    Digests,
    /// The block's filter (BIP 158).
    Filters,
    /// The whole block, if there are neither digests nor filters.
    Blocks,
}

impl Display for SearchReads {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Digests => "digests",
            Self::Filters => "block filters",
            Self::Blocks => "blocks",
        })
    }
}

pub struct Findings {
    /// The tip of the searched chain.
    pub tip: BlockHash,
    /// The matching blocks, by rising height.
    pub blocks: Vec<FoundBlock>,
    /// The height at which to continue: the end of the range, unless the search stopped before.
    pub next: u32,
}

/// The transactions of a block that pay to or spend from wanted scripts. A transaction whose spent outputs are unknown
/// counts as a match.
///
/// `txids` are the ids of all transactions. If it is empty, only the matches are hashed.
pub fn matching(
    block: Block,
    txids: &[Txid],
    spent: &[SpentOutputs],
    wanted: &ScriptSet,
) -> Vec<(u32, Txid, Transaction)> {
    let concerns = |(at, tx): &(u32, Transaction)| {
        let known = || spent.get(*at as usize).filter(|spent| spent.coins.len() == tx.input.len());
        tx.output.iter().any(|output| wanted.has_script(&output.script_pubkey))
            || (!tx.is_coinbase()
                && known()
                    .is_none_or(|spent| spent.coins.iter().any(|coin| wanted.has_script(&coin.output.script_pubkey))))
    };
    let id = |at: u32, tx: &Transaction| txids.get(at as usize).copied().unwrap_or_else(|| tx.compute_txid());
    (0_u32..).zip(block.txdata).filter(concerns).map(|(at, tx)| (at, id(at, &tx), tx)).collect()
}
