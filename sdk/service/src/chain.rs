//! `chain/1`: reads blocks, headers and coins, validates and submits blocks.
//!
//! The example `blocks` of the SDK shows it in use.

mod steps;

use bitcoin::hashes::Hash;
use bitcoin::{Amount, BlockHash, Network, OutPoint, ScriptBuf, TxOut, Txid};

pub use outrigger_values::Coin;
pub use steps::{MAX_STEP_BYTES, MAX_STEPS, NEVER_AGAIN, StepSource};

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

impl Default for Tip {
    /// A block that is on no chain.
    fn default() -> Self {
        Self { hash: BlockHash::all_zeros(), height: 0, time: 0, median_time: 0 }
    }
}

wire_enum! {
    /// Identifies a block.
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
        /// The block was connected before and is fully valid (`valid-fork`, `active`).
        Valid = 2,
        /// The block or one of its ancestors breaks a rule or was invalidated (`invalid`).
        Failed = 3,
    }
}

wire_struct! {
    /// A block's entry in the block index.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct BlockInfo {
        /// Its hash.
        pub hash: BlockHash,
        /// The 80 bytes of its header.
        pub header: [u8; 80],
        /// Its height.
        pub height: u32,
        /// The work of the chain up to and including it, big-endian.
        pub chain_work: [u8; 32],
        /// The number of its transactions, 0 while only the header is known; none if the node stores only headers.
        pub transactions: Option<u32>,
        /// The median time of it and its ten predecessors, in seconds.
        pub median_time: u32,
        /// How far it has been checked.
        pub state: BlockState,
        /// Whether it is part of the best chain.
        pub in_best_chain: bool,
        /// Its successor on the best chain.
        pub next: Option<BlockHash>,
        /// The block's serialised size in bytes, 0 while only the header is known; none if the node stores only headers.
        pub size: Option<u32>,
    }
}

wire_struct! {
    /// An unspent output with its outpoint.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct UnspentOutput {
        /// Its transaction and index.
        pub outpoint: OutPoint,
        /// The coin.
        pub coin: Coin,
    }
}

wire_struct! {
    /// An unspent output that a search found.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct FoundCoin {
        /// The output.
        pub output: UnspentOutput,
        /// The block of the best chain that created it.
        pub block: BlockHash,
    }
}

wire_struct! {
    /// The result of a search in a range of the unspent outputs.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct CoinSearch {
        /// The outputs with one of the scripts.
        pub found: Vec<FoundCoin>,
        /// The number of outputs searched; 0 at the end.
        pub searched: u32,
        /// The last output searched. The next search starts after it.
        pub last: Option<OutPoint>,
    }
}

wire_struct! {
    /// A confirmed transaction.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct ConfirmedTransaction {
        /// Its serialisation, with witness.
        pub raw: Blob,
        /// The block of the best chain that contains it.
        pub block: BlockHash,
        /// Its position in the block; the coinbase has 0.
        pub index: u32,
    }
}

view_by_value!(Tip);

wire_view! { NextBlockView of
    /// The header values and rules for the next block on the tip (BIP 22).
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct NextBlock {
        /// The tip it builds on.
        pub tip: Tip,
        /// Its version, with the bits of deployments in progress (BIP 9).
        pub version: i32,
        /// Its target in compact form (`nBits`).
        pub bits: u32,
        /// Its minimum time: the tip's median time plus one, in seconds.
        pub min_time: u32,
        /// The time to put in its header: now, but at least `min_time`, in seconds.
        pub time: u32,
        /// The subsidy at its height, in satoshi.
        pub subsidy: Amount,
        /// The names of the active rules, in order. A rule that clients must understand has the prefix `!`.
        pub rules: Vec<String>,
        /// The deployments that a block can signal: name and bit.
        pub available: Vec<(String, u8)>,
        /// The script that a signet's blocks must satisfy (BIP 325); none on other networks.
        pub signet_challenge: Option<ScriptBuf>,
    }
}

impl NextBlockView<'_> {
    /// Copies the value out of the message.
    pub fn read(&self) -> NextBlock {
        let Self { tip, version, bits, min_time, time, subsidy, rules, available, signet_challenge } = *self;
        let rules = rules.iter().map(str::to_owned).collect();
        let available = available.iter().map(|(name, bit)| (name.to_owned(), bit)).collect();
        let signet_challenge = signet_challenge.map(ToOwned::to_owned);
        NextBlock { tip, version, bits, min_time, time, subsidy, rules, available, signet_challenge }
    }
}

wire_enum! {
    /// The state of a deployment that miners signal (BIP 9).
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum DeploymentStage {
        /// Signals do not count yet (`defined`).
        Defined = 0,
        /// Signals count (`started`).
        Started = 1,
        /// Enough blocks of a period signalled (`locked_in`).
        LockedIn = 2,
        /// The rules are in force (`active`).
        Active = 3,
        /// The deployment timed out (`failed`).
        Failed = 4,
    }
}

wire_struct! {
    /// A deployment that miners signal (BIP 9), and its state at a block.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct SignalledDeployment {
        /// The version bit that signals it.
        pub bit: u8,
        /// The median time from which signals count, in seconds; -1 if the rules are always active.
        pub start_time: i64,
        /// The median time at which it times out, in seconds.
        pub timeout: i64,
        /// The minimum height at which the rules become active.
        pub min_activation_height: u32,
        /// Its stage for the block itself.
        pub stage: DeploymentStage,
        /// The height of the first block of that stage.
        pub since: u32,
        /// Its stage for the next block.
        pub next_stage: DeploymentStage,
        /// The height of the first block of that stage.
        pub next_since: u32,
        /// The number of blocks in a period.
        pub period: u32,
        /// The number of blocks in a period that must signal.
        pub threshold: u32,
        /// For each block of the period up to this one, in order, whether it signals; empty while signals do not count.
        pub signals: Vec<bool>,
    }
}

wire_enum! {
    /// How a deployment is activated.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub enum DeploymentRule {
        /// At a fixed height (`buried`).
        Buried {
            /// The height.
            height: u32,
        } = 0,
        /// By signals of miners (`bip9`).
        Signalled {
            /// The deployment and its state.
            progress: SignalledDeployment,
        } = 1,
    }
}

wire_struct! {
    /// A deployment of consensus rules.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct Deployment {
        /// Its name in bitcoind.
        pub name: String,
        /// How it is activated.
        pub rule: DeploymentRule,
    }
}

wire_enum! {
    /// The outcome of submitting or proposing a block.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub enum Verdict {
        /// Valid, and for a submission: connected.
        Valid = 0,
        /// Known already, and valid.
        Duplicate = 1,
        /// Known already, and invalid.
        DuplicateInvalid = 2,
        /// Known already, but not validated yet.
        DuplicateInconclusive = 3,
        /// Stored on a side branch, so not validated.
        Inconclusive = 4,
        /// A proposal that does not build on the tip.
        NotBestPrevious = 5,
        /// Breaks a rule.
        Invalid {
            /// The reason as BIP 22 and bitcoind word it, for example `bad-txnmrklroot`.
            reason: String,
            /// Details for people; may be empty.
            detail: String,
        } = 6,
        /// The bytes are not a valid encoding of a block.
        Undecodable = 7,
        /// The block has no transactions, or the first is not a coinbase: same as the reason `bad-cb-missing`.
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
    /// The network and the current state of the chain.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct ChainInfo {
        /// The network that the node is on.
        pub network: Network,
        /// The best block.
        pub tip: Tip,
        /// The height of the best known header.
        pub headers: u32,
        /// The size of the chain on disk, in bytes; none if the node does not report it.
        pub size_on_disk: Option<u64>,
        /// The number of unspent outputs; none if the node does not report it.
        pub coins: Option<u64>,
        /// Warnings for the operator: the file of the chain is damaged.
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
    /// A follower's position: the last block that it has connected.
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
        /// The outputs that it spends, one for each input in the block's order, without the coinbase's; empty if the caller did not
        /// request them.
        pub spent: Vec<TxOut>,
    }
}

wire_struct! {
    /// The next steps of a follower.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct Steps {
        /// The blocks to disconnect, the last one first.
        pub disconnect: Vec<Step>,
        /// The blocks to connect after that, by ascending height.
        pub connect: Vec<Step>,
        /// The best block. A follower at this block is up to date.
        pub tip: Cursor,
    }
}

wire_struct! {
    /// A topic that the host publishes over ZMQ, with its address.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct Publication {
        /// The topic, as getzmqnotifications names it: `pubhashblock`.
        pub topic: String,
        /// The address to which subscribers connect.
        pub address: String,
        /// The high-water mark: the most messages queued for a subscriber.
        pub high_water_mark: u32,
    }
}

service! {
    /// The chain. Reads within a call see one snapshot of it.
    pub trait Chain = "chain/1" {
        /// The best block.
        fn tip() -> Tip;
        /// The network and the current state of the chain.
        fn info() -> ChainInfo;
        /// A block's entry in the index; none if the block is unknown.
        fn block_info(block: BlockRef) -> Option<BlockInfo>;
        /// The serialisation of a block on any branch; none if the block is unknown, only its header is known, or the node has pruned it
        /// (`-prune`).
        fn block(hash: BlockHash) -> Option<Blob>;
        /// The outputs that each transaction of a connected block spent; the coinbase's entry is empty. None if the node has pruned
        /// them, or is a bitcoind before Bitcoin Core 23, which does not provide them.
        fn spent_outputs(hash: BlockHash) -> Option<Vec<SpentOutputs>>;
        /// The confirmed transaction with this id on the best chain. Fails with `Unsupported` on a bitcoind without `txindex=1`.
        fn transaction(txid: Txid) -> Option<ConfirmedTransaction>;
        /// The unspent outputs of the best chain at these outpoints, in their order.
        fn coins(outpoints: Vec<OutPoint>) -> Vec<Option<Coin>>;
        /// The last common block of a block's branch and the best chain; none if the block is unknown.
        fn fork_point(hash: BlockHash) -> Option<BlockInfo>;
        /// The ends of all branches, the best chain's first, then by descending height.
        fn tips() -> Vec<ChainTip>;
        /// The header values and rules for the next block on the tip. Fails with `NodeUnconnected` or `NodeDownloading` while bitcoind
        /// makes no templates.
        fn next_block() -> NextBlock;
        /// The host's time, in seconds: of the clock, or the mock time.
        fn time() -> u64;
        /// Validates a block on the tip without checking its proof of work, and stores nothing (BIP 23 proposal).
        fn check_block(raw: Blob) -> Verdict;
        /// Stores a block and connects it if its chain becomes the best. A block answered as valid is on disk.
        fn submit_block(raw: Blob) -> Verdict;
        /// Stores a header (80 bytes). It is invalid if its previous block is unknown.
        fn submit_header(raw: Blob) -> Verdict;
        /// Marks a block and its descendants as invalid, and activates the best remaining chain.
        fn invalidate_block(hash: BlockHash) -> ();
        /// Removes the mark of `invalidate_block` from a block, its ancestors and descendants.
        fn reconsider_block(hash: BlockHash) -> ();
        /// Prefers a block to others with the same work, as if the node had received it first.
        fn precious_block(hash: BlockHash) -> ();
        /// Sets the host's time in seconds; 0 goes back to the clock. Test chains only.
        fn set_mock_time(seconds: u64) -> ();
        /// The unspent outputs of the best chain after the given one, or from the first, ordered by the bytes of the txid
        /// and then by index. The host may return fewer than the limit to keep the answer small, but at least one if any is
        /// left. Fails with `Unsupported` on a bitcoind.
        fn coins_after(outpoint: Option<OutPoint>, limit: u32) -> Vec<UnspentOutput>;
        /// The deployments and their state at a block on any branch, in bitcoind's order; none if the block is unknown.
        /// Fails with `Unsupported` on a bitcoind before Bitcoin Core 23. While signals do not count, bitcoind omits the bit, the
        /// period and the threshold; they are 0 then.
        fn deployments(hash: BlockHash) -> Option<Vec<Deployment>>;
        /// The node's network. It never changes, and the host answers at once even if the node does not respond.
        fn network() -> Network;
        /// The topics that the host publishes over ZMQ, in sending order; empty in front of a bitcoind.
        fn publications() -> Vec<Publication>;
        /// Searches the unspent outputs after the given one, or from the first, for scripts, in the order of `coins_after`.
        /// The host may search fewer outputs than the limit to keep the answer small, but at least one if any is left.
        /// Fails with `Unsupported` on a bitcoind.
        fn find_coins(scripts: Encoded<Vec<ScriptBuf>>, outpoint: Option<OutPoint>, limit: u32) -> CoinSearch;
        /// Waits until the loaded wallets have processed all notifications that the node had sent at the time of the call (bitcoind's
        /// syncwithvalidationinterfacequeue). It does not wait for a wallet that cannot follow the chain.
        fn wait_for_wallets() -> ();
        /// The height from which the node has all blocks, while a node that started from a snapshot of the unspent outputs
        /// (assumeutxo) downloads and validates the earlier blocks in the background; none for any other node. The node
        /// downloads the missing blocks itself.
        fn background_validation() -> Option<u32>;
        /// The next steps of a follower at a block: the blocks to disconnect if the block is no longer on the best chain, then
        /// the blocks to connect. Without a block they begin at genesis. The host returns at most the limit and 1,000 blocks, fewer
        /// if they are large, but at least one if any is left. Fails with `NotFound` if the chain has no such block at that
        /// height, and with `Unsupported` if the node has pruned a block or the outputs that it spends.
        fn steps(after: Option<Cursor>, limit: u32, with_spent: bool) -> Steps;
    }
}
