//! `mempool/1`: unconfirmed transactions, and the selection for the next block.

use bitcoin::{OutPoint, Txid, Wtxid};

use super::service;
use crate::wire::{Blob, wire_enum, wire_struct};

wire_struct! {
    /// The mempool as a whole.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct MempoolInfo {
        /// The number of transactions.
        pub transactions: u64,
        /// The sum of their virtual sizes, in virtual bytes.
        pub virtual_size: u64,
        /// The memory they take, in bytes.
        pub usage: u64,
        /// The sum of their fees, in satoshi.
        pub total_fee: u64,
        /// The limit of `usage`, in bytes.
        pub max_usage: u64,
        /// The least feerate that is accepted, in satoshi per 1000 virtual bytes.
        pub min_feerate: u64,
        /// The least feerate that is relayed, in satoshi per 1000 virtual bytes.
        pub relay_feerate: u64,
        /// The feerate by which a replacement must pay more, in satoshi per 1000 virtual bytes.
        pub incremental_feerate: u64,
        /// Counts every change of the mempool; a poller compares it.
        pub sequence: u64,
    }
}

wire_struct! {
    /// A transaction of the mempool.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct MempoolEntry {
        /// Its id.
        pub txid: Txid,
        /// Its id with witness.
        pub wtxid: Wtxid,
        /// Its weight, in weight units.
        pub weight: u64,
        /// Its virtual size by weight and signature operations, in virtual bytes.
        pub virtual_size: u64,
        /// Its fee, in satoshi.
        pub fee: u64,
        /// Its fee with what prioritisetransaction added, in satoshi.
        pub modified_fee: i64,
        /// When it came, in seconds.
        pub time: u64,
        /// The tip's height when it came.
        pub height: u32,
        /// Transactions of the mempool it builds on, itself included: their number.
        pub ancestor_count: u64,
        /// The same: their virtual size.
        pub ancestor_size: u64,
        /// The same: their fees with what was added, in satoshi.
        pub ancestor_fees: i64,
        /// Transactions of the mempool that build on it, itself included: their number.
        pub descendant_count: u64,
        /// The same: their virtual size.
        pub descendant_size: u64,
        /// The same: their fees with what was added, in satoshi.
        pub descendant_fees: i64,
        /// The transactions of the mempool whose outputs it spends.
        pub depends: Vec<Txid>,
        /// The transactions of the mempool that spend its outputs.
        pub spent_by: Vec<Txid>,
        /// Whether it, or one it builds on, signals replaceability (BIP 125).
        pub replaceable: bool,
    }
}

wire_struct! {
    /// A transaction selected for the next block.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct Selected {
        /// Its serialisation, with witness.
        pub raw: Blob,
        /// Its id.
        pub txid: Txid,
        /// Its id with witness.
        pub wtxid: Wtxid,
        /// Its fee, in satoshi.
        pub fee: u64,
        /// Its cost in signature operations (BIP 141).
        pub sigops: u64,
        /// Its weight, in weight units.
        pub weight: u64,
        /// For each input that spends an earlier selected one: that one's position, counted from 1.
        pub depends: Vec<u32>,
    }
}

wire_struct! {
    /// The selection for a block on the tip.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct Candidate {
        /// In an order in which parents precede their children.
        pub transactions: Vec<Selected>,
        /// The sum of their fees, in satoshi.
        pub fees: u64,
        /// The mempool's sequence when it was made.
        pub sequence: u64,
    }
}

wire_enum! {
    /// What became of a transaction that was submitted or tried.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub enum Admission {
        /// Accepted (or, when tried: it would be).
        Accepted {
            /// Its id.
            txid: Txid,
            /// Its id with witness.
            wtxid: Wtxid,
            /// Its virtual size, in virtual bytes.
            virtual_size: u64,
            /// Its fee, in satoshi.
            fee: u64,
        } = 0,
        /// In the mempool already.
        Known {
            /// Its id.
            txid: Txid,
        } = 1,
        /// Refused.
        Rejected {
            /// The reason as bitcoind words it, for example `txn-mempool-conflict`.
            reason: String,
            /// More of it; may be empty.
            detail: String,
        } = 2,
        /// Refused, because an input is unknown or spent.
        MissingInputs = 3,
        /// Confirmed already, with unspent outputs.
        AlreadyInChain = 4,
        /// The bytes are no transaction.
        Undecodable = 5,
        /// Its feerate is above what the caller allows.
        FeeTooHigh {
            /// The fee, in satoshi.
            fee: u64,
        } = 6,
    }
}

wire_struct! {
    /// A transaction of the mempool, serialised.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct RawTransaction {
        /// Its serialisation, with witness.
        pub raw: Blob,
    }
}

service! {
    /// The unconfirmed transactions.
    pub trait Mempool as MempoolClient = "mempool/1" {
        /// The mempool as a whole.
        fn info() -> MempoolInfo;
        /// All ids, in the order they came.
        fn ids() -> Vec<Txid>;
        /// The entries of these ids, in their order.
        fn entries(txids: Vec<Txid>) -> Vec<Option<MempoolEntry>>;
        /// The transactions of these ids, in their order.
        fn transactions(txids: Vec<Txid>) -> Vec<Option<RawTransaction>>;
        /// The transactions of the mempool that spend these outpoints, in their order.
        fn spenders(outpoints: Vec<OutPoint>) -> Vec<Option<Txid>>;
        /// Offers a transaction. `max_feerate` bounds its feerate in satoshi per 1000 virtual bytes, 0 being no bound.
        fn submit(raw: Blob, max_feerate: u64) -> Admission;
        /// As `submit`, keeping nothing.
        fn try_submit(raw: Blob, max_feerate: u64) -> Admission;
        /// The selection for a block on the tip.
        fn candidate() -> Candidate;
        /// Adds to (or takes from) the fee that a transaction is selected by, in satoshi.
        fn prioritise(txid: Txid, fee_delta: i64) -> ();
    }
}
