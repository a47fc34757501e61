//! Searches the chain for a wallet's scripts.

use std::collections::HashSet;
use std::fmt::{self, Display, Formatter};

use bitcoin::{Block, BlockHash, Script, ScriptBuf, Transaction, Txid};
use outrigger_service::chain::SpentOutputs;

/// A search stops when the blocks that it has read exceed this size in total, in bytes.
pub const MAX_READ: usize = 8 << 20;

/// Wanted scripts.
#[derive(Default)]
pub struct ScriptSet {
    scripts: HashSet<ScriptBuf>,
    unfiltered: bool,
}

impl ScriptSet {
    pub fn insert(&mut self, script: &Script) {
        self.unfiltered |= script.is_op_return() || script.is_empty();
        self.scripts.insert(script.to_owned());
    }

    pub fn scripts(&self) -> impl Iterator<Item = &[u8]> {
        self.scripts.iter().map(|script| script.as_bytes())
    }

    /// Whether a wanted script is in no block filter: it is empty or begins with OP_RETURN.
    pub fn has_unfiltered(&self) -> bool {
        self.unfiltered
    }

    fn has(&self, script: &Script) -> bool {
        self.scripts.contains(script)
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

/// What a search reads of each block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SearchReads {
    /// Its filter (BIP 158).
    Filters,
    /// The whole block, since there is nothing shorter.
    Blocks,
}

impl Display for SearchReads {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
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
/// counts as one.
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
        tx.output.iter().any(|output| wanted.has(&output.script_pubkey))
            || (!tx.is_coinbase()
                && known().is_none_or(|spent| spent.coins.iter().any(|coin| wanted.has(&coin.output.script_pubkey))))
    };
    let id = |at: u32, tx: &Transaction| txids.get(at as usize).copied().unwrap_or_else(|| tx.compute_txid());
    (0_u32..).zip(block.txdata).filter(concerns).map(|(at, tx)| (at, id(at, &tx), tx)).collect()
}
