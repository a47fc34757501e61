//! A wallet's transactions and coins, as `wallet/1` tells them.

use bitcoin::{BlockHash, OutPoint, ScriptBuf, Txid, Wtxid};

use super::Ownership;
use crate::wire::{Blob, wire_enum, wire_struct};

wire_enum! {
    /// Where a wallet's transaction stands.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum TxState {
        /// In the best chain.
        Confirmed {
            /// The block.
            block: BlockHash,
            /// The block's height.
            height: u32,
            /// The position in the block.
            index: u32,
            /// The block's time, in seconds.
            time: u32,
        } = 0,
        /// In the mempool.
        InMempool = 1,
        /// Neither, though nothing speaks against it.
        Inactive = 2,
        /// Neither, and given up: its inputs may be spent again.
        Abandoned = 3,
        /// Made impossible by another transaction in a block.
        Conflicted {
            /// The block of the other.
            block: BlockHash,
            /// Its height.
            height: u32,
        } = 4,
    }
}

wire_enum! {
    /// Whether a transaction can be replaced (BIP 125).
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum Replaceable {
        /// It cannot, or is confirmed.
        No = 0,
        /// It, or an unconfirmed ancestor, signals it.
        Yes = 1,
        /// It is not in the mempool, so its ancestors are not known.
        Unknown = 2,
    }
}

wire_struct! {
    /// An output of a wallet's transaction.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct WalletOutput {
        /// Its value, in satoshi.
        pub value: u64,
        /// Its script.
        pub script: ScriptBuf,
        /// Whose it is.
        pub ownership: Ownership,
        /// Whether it is change: ours, and without an entry in the address book.
        pub change: bool,
        /// The label of its address; none where it has no entry in the address book.
        pub label: Option<String>,
        /// The descriptors of the wallet it was derived from, public and with checksum.
        pub parents: Vec<String>,
    }
}

wire_struct! {
    /// A transaction as the wallet knows it. Ownership, debit and labels are those of now: imports re-derive them.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct WalletTransaction {
        /// Its id.
        pub txid: Txid,
        /// Its id with witness.
        pub wtxid: Wtxid,
        /// Where it stands.
        pub state: TxState,
        /// Its number in the order in which the wallet met its transactions.
        pub arrival: u64,
        /// Its smart time, in seconds.
        pub time: u64,
        /// When the wallet met it, in seconds.
        pub time_received: u64,
        /// Whether it is a coinbase.
        pub coinbase: bool,
        /// The sum of all its outputs, in satoshi.
        pub total_output: u64,
        /// What it spends of ours that is spendable, in satoshi.
        pub debit_spendable: u64,
        /// What it spends of ours that is watched, in satoshi.
        pub debit_watch_only: u64,
        /// All its outputs.
        pub outputs: Vec<WalletOutput>,
        /// Other transactions of the wallet that spend one of its inputs, by internal bytes.
        pub conflicts: Vec<Txid>,
        /// Transactions of the mempool that spend one of its inputs, by internal bytes.
        pub mempool_conflicts: Vec<Txid>,
        /// What was stored with it (`comment`, `to`, ...), by key.
        pub metadata: Vec<(String, String)>,
        /// Whether its unconfirmed outputs may be relied on; meaningful while it is unconfirmed.
        pub trusted: bool,
        /// Whether it can be replaced.
        pub replaceable: Replaceable,
    }
}

wire_enum! {
    /// Which transactions, and in which order.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum HistoryRange {
        /// Those in the best chain from a height on, by height and position.
        Confirmed {
            /// The first height.
            from_height: u32,
        } = 0,
        /// Those in the mempool, inactive or abandoned, by arrival.
        Unconfirmed = 1,
        /// Those whose conflict confirmed at a height or above, by that height, then arrival.
        Conflicted {
            /// The first height.
            from_height: u32,
        } = 2,
        /// All, by arrival.
        All = 3,
    }
}

wire_struct! {
    /// A question for a part of the history.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct HistoryQuery {
        /// Which transactions.
        pub range: HistoryRange,
        /// From the end backwards.
        pub reverse: bool,
        /// Where the last batch ended; none for the first.
        pub after: Option<Blob>,
        /// The most to give; the host may give fewer.
        pub limit: u32,
    }
}

wire_struct! {
    /// A part of the history.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct HistoryBatch {
        /// The transactions.
        pub transactions: Vec<WalletTransaction>,
        /// Where to go on; none when this was the end.
        pub next: Option<Blob>,
    }
}

wire_struct! {
    /// An output of ours that nothing in the chain, the mempool or the wallet spends.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct WalletCoin {
        /// Which.
        pub outpoint: OutPoint,
        /// Its value, in satoshi.
        pub value: u64,
        /// Its script.
        pub script: ScriptBuf,
        /// Where its transaction stands: confirmed, in the mempool or inactive.
        pub state: TxState,
        /// Whether its transaction is a coinbase.
        pub coinbase: bool,
        /// Whose it is.
        pub ownership: Ownership,
        /// Whether it is change.
        pub change: bool,
        /// The label of its address.
        pub label: Option<String>,
        /// Whether its transaction is confirmed or trusted.
        pub trusted: bool,
        /// Whether the wallet spent something of its own in its transaction.
        pub from_us: bool,
    }
}

wire_struct! {
    /// A part of the coins.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct CoinBatch {
        /// The coins, by outpoint.
        pub coins: Vec<WalletCoin>,
        /// Where to go on; none when this was the end.
        pub next: Option<Blob>,
    }
}
