//! Finding the transactions of a wallet's scripts without reading the blocks that cannot hold any.
//!
//! Each block of the best chain has a *digest*: a short hash of every script that it pays to or spends from. Walking the
//! digests costs one look-up in a set for each script in the chain, however many scripts are looked for; a block is read
//! only where a hash is found. Two scripts may share a hash: then a block is read in vain, and nothing is missed.

use std::collections::HashSet;
use std::fmt::{self, Display, Formatter};
use std::hash::{BuildHasherDefault, Hasher};

use bitcoin::hashes::siphash24;
use bitcoin::{Block, BlockHash, Script, Transaction, Txid};
use outrigger_service::chain::SpentOutputs;

/// The keys of the hash. They are the same for all blocks, so that a set of scripts is hashed once.
const KEYS: (u64, u64) = (0x6f75_7472_6967_6765, 0x7220_6469_6765_7374);
/// A search is cut off where the blocks with findings have this many bytes together.
pub const MAX_READ: usize = 8 << 20;

/// The hash by which a script stands in digests.
pub fn script_hash(script: &Script) -> u64 {
    siphash24::Hash::hash_to_u64_with_keys(KEYS.0, KEYS.1, script.as_bytes())
}

/// Takes a number that is a hash already.
#[derive(Default)]
pub struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}

/// The scripts that are looked for: their hashes for digests, and themselves for block filters, which key their hashes by block
/// (BIP 158).
#[derive(Default)]
pub struct ScriptSet {
    hashes: HashSet<u64, BuildHasherDefault<AsIs>>,
    /// All scripts, one behind the other, and where each ends.
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

    /// Whether there is a script that no block filter has: one that is empty or begins with OP_RETURN.
    pub fn has_unfiltered(&self) -> bool {
        self.unfiltered
    }

    /// Whether a script with this hash is looked for.
    #[inline]
    pub fn has(&self, hash: u64) -> bool {
        self.hashes.contains(&hash)
    }

    fn has_script(&self, script: &Script) -> bool {
        self.has(script_hash(script))
    }
}

/// A block with something to find, or one that cannot be read.
pub struct FoundBlock {
    pub hash: BlockHash,
    pub height: u32,
    /// The greatest time of it and all before it, in seconds.
    pub max_time: u32,
    /// What is in it; none where it cannot be read.
    pub found: Option<Found>,
}

/// What is found in a block.
pub struct Found {
    /// The time in the block's header, in seconds.
    pub time: u32,
    /// The transactions that pay to the scripts or spend from them, with their places in the block.
    pub transactions: Vec<(u32, Txid, Transaction)>,
}

/// What a search reads of each block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SearchReads {
    /// Digests that the host keeps of it.
    Digests,
    /// Its filter (BIP 158).
    Filters,
    /// All of it, since there is nothing shorter.
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

/// What a search has found.
pub struct Findings {
    /// The tip of the chain that was searched.
    pub tip: BlockHash,
    /// The blocks, by rising height.
    pub blocks: Vec<FoundBlock>,
    /// The height at which to go on: the end of what was to be searched, unless much was found before.
    pub next: u32,
}

/// The transactions of a block that pay to wanted scripts or spend from them. Where it is not known what a transaction
/// spends, it counts as one of them.
///
/// `txids` are the ids of all transactions, or empty: then only those found are hashed.
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
