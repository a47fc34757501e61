//! `chain/1`: blocks, headers, coins, and what is judged and submitted.
//!
//! The example `blocks` of the SDK shows it in use.

mod steps;

use bitcoin::{Amount, BlockHash, Network, OutPoint, ScriptBuf, TxOut, Txid};

pub use outrigger_values::Coin;
pub use steps::{MAX_STEP_BYTES, MAX_STEPS, StepSource};

use super::service;
use crate::wire::{Blob, Encoded, view_by_value, wire_enum, wire_struct, wire_view};

wire_struct! {
    /// The block at the end of the best chain.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct Tip {
        /// Its hash.
        pub hash: BlockHash,
        /// Its height; the genesis block has 0.
        pub height: u32,
        /// The time in its header, in seconds.
        pub time: u32,
        /// The median time of it and its ten predecessors (BIP 113), in seconds.
        pub median_time: u32,
    }
}

wire_enum! {
    /// How a block is named.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum BlockRef {
        /// By its hash, on any branch.
        Hash {
            /// The hash.
            hash: BlockHash,
        } = 0,
        /// By its height on the best chain.
        Height {
            /// The height.
            height: u32,
        } = 1,
    }
}

wire_enum! {
    /// How far a block has been checked.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum BlockState {
        /// Only its header is known (`headers-only`).
        HeaderOnly = 0,
        /// The block is stored and was never connected (`valid-headers`).
        Stored = 1,
        /// It was connected once and found valid in full (`valid-fork`, `active`).
        Valid = 2,
        /// It, or an ancestor of it, breaks a rule or was invalidated (`invalid`).
        Failed = 3,
    }
}

wire_struct! {
    /// What the index knows of a block.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct BlockInfo {
        /// Its hash.
        pub hash: BlockHash,
        /// The 80 bytes of its header.
        pub header: [u8; 80],
        /// Its height.
        pub height: u32,
        /// The work of the chain up to and with it, big-endian.
        pub chain_work: [u8; 32],
        /// The number of its transactions, 0 while only the header is known; none where the node knows headers alone.
        pub transactions: Option<u32>,
        /// The median time of it and its ten predecessors, in seconds.
        pub median_time: u32,
        /// How far it has been checked.
        pub state: BlockState,
        /// Whether it is part of the best chain.
        pub in_best_chain: bool,
        /// Its successor on the best chain.
        pub next: Option<BlockHash>,
        /// The block's serialised size in bytes, 0 while only the header is known; none where the node knows headers alone.
        pub size: Option<u32>,
    }
}

wire_struct! {
    /// An unspent output and where it stands.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct UnspentOutput {
        /// Its transaction and index.
        pub outpoint: OutPoint,
        /// What it holds.
        pub coin: Coin,
    }
}

wire_struct! {
    /// An unspent output that a search found.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct FoundCoin {
        /// The output.
        pub output: UnspentOutput,
        /// The block of the best chain that made it.
        pub block: BlockHash,
    }
}

wire_struct! {
    /// What a search among some of the unspent outputs came to.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct CoinSearch {
        /// The outputs that hold one of the scripts.
        pub found: Vec<FoundCoin>,
        /// How many outputs were looked at; 0 where none follows.
        pub searched: u32,
        /// The last of them, after which the search goes on.
        pub last: Option<OutPoint>,
    }
}

wire_struct! {
    /// A confirmed transaction.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct ConfirmedTransaction {
        /// Its serialisation, with witness.
        pub raw: Blob,
        /// The block of the best chain that holds it.
        pub block: BlockHash,
        /// Its position in the block; the coinbase has 0.
        pub index: u32,
    }
}

view_by_value!(Tip);

wire_view! { NextBlockView of
    /// What the next block on the tip must and may be (BIP 22).
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct NextBlock {
        /// The tip it builds on.
        pub tip: Tip,
        /// Its version, with the bits of deployments in progress (BIP 9).
        pub version: i32,
        /// Its target in compact form.
        pub bits: u32,
        /// The least time it may have: the tip's median time plus one, in seconds.
        pub min_time: u32,
        /// The time to put in its header: now, but at least `min_time`, in seconds.
        pub time: u32,
        /// The subsidy of its height, in satoshi.
        pub subsidy: Amount,
        /// The names of the rules it is under, in order, `!`-prefixed where a client must know the rule.
        pub rules: Vec<String>,
        /// Deployments that can be signalled: name and bit.
        pub available: Vec<(String, u8)>,
    }
}

impl NextBlockView<'_> {
    /// It, copied out of the message.
    pub fn read(&self) -> NextBlock {
        let Self { tip, version, bits, min_time, time, subsidy, rules, available } = *self;
        let rules = rules.iter().map(str::to_owned).collect();
        let available = available.iter().map(|(name, bit)| (name.to_owned(), bit)).collect();
        NextBlock { tip, version, bits, min_time, time, subsidy, rules, available }
    }
}

wire_enum! {
    /// How far a deployment that miners signal has come (BIP 9).
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum DeploymentStage {
        /// Signals do not count yet (`defined`).
        Defined = 0,
        /// Signals count (`started`).
        Started = 1,
        /// Enough blocks of a period have signalled (`locked_in`).
        LockedIn = 2,
        /// The rules are in force (`active`).
        Active = 3,
        /// The time for signals has passed (`failed`).
        Failed = 4,
    }
}

wire_struct! {
    /// A deployment that miners signal (BIP 9), as it stands with a block.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct SignalledDeployment {
        /// The bit of a block's version that signals.
        pub bit: u8,
        /// From which median time on signals count, in seconds; -1 where the rules are always in force.
        pub start_time: i64,
        /// The median time at which it fails, in seconds.
        pub timeout: i64,
        /// The least height at which the rules are in force.
        pub min_activation_height: u32,
        /// Its stage for the block itself.
        pub stage: DeploymentStage,
        /// The height of the first block of that stage.
        pub since: u32,
        /// Its stage for a block on that one.
        pub next_stage: DeploymentStage,
        /// The height of the first block of that stage.
        pub next_since: u32,
        /// How many blocks a period has.
        pub period: u32,
        /// How many of them must signal.
        pub threshold: u32,
        /// Which blocks of the period up to this one signal, the first of them first; empty where signals do not count.
        pub signals: Vec<bool>,
    }
}

wire_enum! {
    /// How it is found out whether the rules of a deployment are in force.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub enum DeploymentRule {
        /// They are, from a height on (`buried`).
        Buried {
            /// The height.
            height: u32,
        } = 0,
        /// Miners signal (`bip9`).
        Signalled {
            /// What came of it.
            progress: SignalledDeployment,
        } = 1,
    }
}

wire_struct! {
    /// A change of the rules.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct Deployment {
        /// The name that bitcoind gives it.
        pub name: String,
        /// How it is found out whether it is in force.
        pub rule: DeploymentRule,
    }
}

wire_enum! {
    /// What became of a block that was submitted or proposed.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub enum Verdict {
        /// Valid, and for a submission: connected.
        Valid = 0,
        /// Known already, and valid.
        Duplicate = 1,
        /// Known already, and invalid.
        DuplicateInvalid = 2,
        /// Known already, not judged yet.
        DuplicateInconclusive = 3,
        /// Stored, but not on the best chain, so not judged.
        Inconclusive = 4,
        /// A proposal that does not build on the tip.
        NotBestPrevious = 5,
        /// Breaks a rule.
        Invalid {
            /// The reason as BIP 22 and bitcoind word it, for example `bad-txnmrklroot`.
            reason: String,
            /// More of it, for people; may be empty.
            #[since(1)]
            detail: String,
        } = 6,
        /// The bytes are no block.
        Undecodable = 7,
        /// A block without transactions, or whose first is no coinbase: the same as the reason `bad-cb-missing`.
        NoCoinbase = 8,
    }
}

wire_struct! {
    /// The end of a branch.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct ChainTip {
        /// The last block of the branch.
        pub hash: BlockHash,
        /// Its height.
        pub height: u32,
        /// The number of blocks from the best chain to it; 0 for the best chain.
        pub branch_length: u32,
        /// How far it has been checked.
        pub state: BlockState,
    }
}

wire_struct! {
    /// Which chain this is and where it stands.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct ChainInfo {
        /// The network that the node is on.
        pub network: Network,
        /// The best block.
        pub tip: Tip,
        /// The height of the best known header.
        pub headers: u32,
        /// The bytes the chain takes on disk; none where the node does not tell.
        pub size_on_disk: Option<u64>,
        /// The number of unspent outputs; none where the node does not tell.
        pub coins: Option<u64>,
        /// What an operator has to know: that the chain's file was found to be damaged.
        #[since(1)]
        pub warnings: Vec<String>,
    }
}

wire_struct! {
    /// The outputs that one transaction of a block spent, in the order of its inputs.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct SpentOutputs {
        /// The coins; empty for a coinbase.
        pub coins: Vec<Coin>,
    }
}

wire_struct! {
    /// The block up to which a follower has followed the chain.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct Cursor {
        /// Its hash.
        pub hash: BlockHash,
        /// Its height.
        pub height: u32,
    }
}

wire_struct! {
    /// A block that a follower disconnects or connects.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct Step {
        /// Its hash.
        pub hash: BlockHash,
        /// Its height.
        pub height: u32,
        /// Its serialisation.
        pub block: Blob,
        /// The outputs that it spends, one for each input in the block's order, without the coinbase's; empty where they were not
        /// asked for.
        pub spent: Vec<TxOut>,
    }
}

wire_struct! {
    /// The next steps of a follower.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct Steps {
        /// The blocks to disconnect, the last one first.
        pub disconnect: Vec<Step>,
        /// The blocks to connect after that, in the order of their heights.
        pub connect: Vec<Step>,
        /// The best block. The follower has all blocks once it stands there.
        pub tip: Cursor,
    }
}

wire_struct! {
    /// A topic that is published over ZMQ at an address.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct Publication {
        /// The topic, as getzmqnotifications names it: `pubhashblock`.
        pub topic: String,
        /// Where subscribers connect.
        pub address: String,
        /// How many messages wait for a subscriber.
        pub high_water_mark: u32,
    }
}

service! {
    /// The chain. Reads within a call see one snapshot of it.
    pub trait Chain as ChainClient = "chain/1" {
        /// The best block.
        fn tip() -> Tip;
        /// Which chain this is and where it stands.
        fn info() -> ChainInfo;
        /// A block's entry in the index; none when it is unknown.
        fn block_info(block: BlockRef) -> Option<BlockInfo>;
        /// A block's serialisation, on any branch; none when it is unknown, only its header is known, or the node has dropped it
        /// (`-prune`).
        fn block(hash: BlockHash) -> Option<Blob>;
        /// What each transaction of a connected block spent, the coinbase's entry being empty; none where the node has dropped it,
        /// or is a bitcoind before Bitcoin Core 23, which does not tell it.
        fn spent_outputs(hash: BlockHash) -> Option<Vec<SpentOutputs>>;
        /// The confirmed transaction of an id on the best chain. Fails with `Unsupported` on a bitcoind without `txindex=1`.
        fn transaction(txid: Txid) -> Option<ConfirmedTransaction>;
        /// The unspent outputs of the best chain at these outpoints, in their order.
        fn coins(outpoints: Vec<OutPoint>) -> Vec<Option<Coin>>;
        /// The last block that a block and the best chain share; none when the block is unknown.
        fn fork_point(hash: BlockHash) -> Option<BlockInfo>;
        /// The ends of all branches, the best chain's first, then by falling height.
        fn tips() -> Vec<ChainTip>;
        /// What a block on the tip must and may be. Fails with `NodeUnavailable` on a bitcoind that makes no templates now: it has
        /// no peers, or is still fetching the chain.
        fn next_block() -> NextBlock;
        /// The host's time, in seconds: the clock's, or the mocked one.
        fn time() -> u64;
        /// Judges a block on the tip without its proof of work and without keeping anything (BIP 23 proposal).
        fn check_block(raw: Blob) -> Verdict;
        /// Stores a block and, where it makes the best chain, connects it. What is answered valid is on disk.
        fn submit_block(raw: Blob) -> Verdict;
        /// Stores a header (80 bytes) whose previous block is known.
        fn submit_header(raw: Blob) -> Verdict;
        /// Marks a block and all that builds on it as invalid, and goes to the best chain that remains.
        fn invalidate_block(hash: BlockHash) -> ();
        /// Takes back what `invalidate_block` did to a block, its ancestors and descendants.
        fn reconsider_block(hash: BlockHash) -> ();
        /// Prefers a block to others of the same work, as if it had come first.
        fn precious_block(hash: BlockHash) -> ();
        /// Sets the host's time in seconds; 0 goes back to the clock. Test chains only.
        fn set_mock_time(seconds: u64) -> ();
        /// The unspent outputs of the best chain that follow this one, or the first ones, by the bytes of the transaction's
        /// id and then by index: at most so many, and fewer where they would make a large answer, but one at least where
        /// there is any. Fails with `Unsupported` on a bitcoind.
        #[since(1)]
        fn coins_after(outpoint: Option<OutPoint>, limit: u32) -> Vec<UnspentOutput>;
        /// The changes of the rules as they stand with a block of any branch, in bitcoind's order; none when it is unknown.
        /// Fails with `Unsupported` on a bitcoind before Bitcoin Core 23. What it does not tell of a deployment is 0: the bit, the
        /// period and the threshold where signals do not count.
        #[since(1)]
        fn deployments(hash: BlockHash) -> Option<Vec<Deployment>>;
        /// The network that the node is on. It never changes, and is answered at once, whatever the node does.
        #[since(1)]
        fn network() -> Network;
        /// What is published over ZMQ, in the order in which it is sent; nothing in front of a bitcoind.
        #[since(1)]
        fn publications() -> Vec<Publication>;
        /// Looks for scripts among the unspent outputs that follow this one, or among the first ones, in the order of `coins_after`.
        /// At most so many are looked at, and fewer where what is found would make a large answer, but one at least where there
        /// is any. Fails with `Unsupported` on a bitcoind.
        #[since(1)]
        fn find_coins(scripts: Encoded<Vec<ScriptBuf>>, outpoint: Option<OutPoint>, limit: u32) -> CoinSearch;
        /// Waits until the loaded wallets have taken over all that the node had told them at the call (bitcoind's
        /// syncwithvalidationinterfacequeue). One that cannot follow the chain is not waited for.
        #[since(1)]
        fn wait_for_wallets() -> ();
        /// The height of the lowest block from which on the node has all, where it began with a snapshot of the unspent outputs
        /// (assumeutxo), and fetches and validates the blocks before in the background; none of any other node. Blocks that are
        /// lacking then come by themselves.
        #[since(1)]
        fn background_validation() -> Option<u32>;
        /// The next steps of a follower that has followed the chain up to a block: those to disconnect if the best chain has left
        /// it, then those to connect; without a block they begin at genesis. At most so many blocks (and 1,000), fewer where they
        /// are large, but one at least where there is any. Fails with `NotFound` for a block that the chain does not know at that
        /// height, and with `Unsupported` where the node has pruned a block or the outputs that it spends.
        #[since(1)]
        fn steps(after: Option<Cursor>, limit: u32, with_spent: bool) -> Steps;
    }
}
