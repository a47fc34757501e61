//! `mempool/1`: unconfirmed transactions, and their selection for the next block.
//!
//! The example `mempool` of the SDK shows it in use.

use std::sync::Arc;

use bitcoin::{Amount, OutPoint, SignedAmount, Txid, Weight, Wtxid};
use outrigger_values::FeeRate;

use super::chain::NextBlock;
use super::service;
use crate::wire::{Blob, Encoded, wire_enum, wire_struct, wire_view};

wire_struct! {
    /// The mempool as a whole.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct MempoolInfo {
        /// The number of transactions.
        pub transactions: u64,
        /// The sum of their virtual sizes, in virtual bytes.
        pub virtual_size: u64,
        /// Their memory usage, in bytes.
        pub usage: u64,
        /// The sum of their fees, in satoshi.
        pub total_fee: Amount,
        /// The limit of `usage`, in bytes.
        pub max_usage: u64,
        /// The least feerate that the mempool accepts, in satoshi per 1000 virtual bytes.
        pub min_feerate: FeeRate,
        /// The least feerate that the node relays, in satoshi per 1000 virtual bytes.
        pub relay_feerate: FeeRate,
        /// The feerate by which a replacement must pay more, in satoshi per 1000 virtual bytes.
        pub incremental_feerate: FeeRate,
        /// Increases with every change of the mempool and every block, so that a poller detects changes.
        pub sequence: u64,
        /// The number of transactions added and removed for any reason: `mempool_sequence` of getrawmempool.
        pub moves: u64,
        /// The number of transactions for which `unbroadcast` is true.
        pub unbroadcast: u64,
        /// The limits of a cluster; none for a node that limits ancestors and descendants instead (before Bitcoin Core 31).
        pub clusters: Option<ClusterLimits>,
    }
}

wire_struct! {
    /// The limits of a cluster: transactions connected by spending each other's outputs.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct ClusterLimits {
        /// The most transactions.
        pub count: u64,
        /// The greatest size, in virtual bytes.
        pub size: u64,
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
        pub weight: Weight,
        /// Its virtual size by weight and signature operations, in virtual bytes.
        pub virtual_size: u64,
        /// Its fee, in satoshi.
        pub fee: Amount,
        /// Its fee with the delta of prioritisetransaction, in satoshi.
        pub modified_fee: SignedAmount,
        /// When the mempool accepted it, in seconds.
        pub time: u64,
        /// The tip's height when the mempool accepted it.
        pub height: u32,
        /// The number of its ancestors in the mempool, itself included.
        pub ancestor_count: u64,
        /// Their virtual size, in virtual bytes.
        pub ancestor_size: u64,
        /// Their fees with the deltas of prioritisetransaction, in satoshi.
        pub ancestor_fees: SignedAmount,
        /// The number of its descendants in the mempool, itself included.
        pub descendant_count: u64,
        /// Their virtual size, in virtual bytes.
        pub descendant_size: u64,
        /// Their fees with the deltas of prioritisetransaction, in satoshi.
        pub descendant_fees: SignedAmount,
        /// The transactions of the mempool whose outputs it spends.
        pub depends: Vec<Txid>,
        /// The transactions of the mempool that spend its outputs.
        pub spent_by: Vec<Txid>,
        /// Whether it or an ancestor signals replaceability (BIP 125).
        pub replaceable: bool,
        /// Whether `submit` added it to the mempool and no peer is known to have it. False for a transaction that returned from a
        /// disconnected block.
        pub unbroadcast: bool,
    }
}

wire_view! { SelectedView of
    /// A transaction selected for the next block.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct Selected {
        /// Its serialisation, with witness.
        pub raw: Arc<Blob>,
        /// Its id.
        pub txid: Txid,
        /// Its id with witness.
        pub wtxid: Wtxid,
        /// Its fee, in satoshi.
        pub fee: Amount,
        /// Its cost in signature operations (BIP 141).
        pub sigops: u64,
        /// Its weight, in weight units.
        pub weight: Weight,
        /// For each input that spends an earlier transaction of the selection: the position of that transaction, counted from 1.
        pub depends: Vec<u32>,
    }
}

wire_view! { CandidateView of
    /// A selection for the next block, and the values for its header.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct Candidate {
        /// Identifies the tip and the transactions: candidates with the same version have the same. Never 0, and never reused while
        /// the host runs.
        pub version: u64,
        /// The header values and rules for a block with it. `next.tip` is the previous block.
        pub next: NextBlock,
        /// The transactions, parents before their children.
        pub transactions: Arc<Vec<Selected>>,
        /// The sum of their fees, in satoshi.
        pub fees: Amount,
        /// The mempool's sequence when the selection was made.
        pub sequence: u64,
    }
}

wire_struct! {
    /// The fee delta of a transaction (prioritisetransaction). It changes only the selection.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct Prioritised {
        /// The transaction, which the mempool may not have.
        pub txid: Txid,
        /// The sum of the deltas, in satoshi. It may be negative, but is never 0.
        pub fee_delta: SignedAmount,
        /// The fee with the delta, in satoshi; none if the transaction is not in the mempool.
        pub modified_fee: Option<SignedAmount>,
    }
}

wire_enum! {
    /// The outcome of submitting or trying a transaction.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub enum Admission {
        /// Accepted, or acceptable if the caller only tried.
        Accepted {
            /// Its id.
            txid: Txid,
            /// Its id with witness.
            wtxid: Wtxid,
            /// Its virtual size, in virtual bytes.
            virtual_size: u64,
            /// Its fee, in satoshi.
            fee: Amount,
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
            /// Details; may be empty.
            detail: String,
        } = 2,
        /// Refused, because an input is unknown or spent.
        MissingInputs = 3,
        /// Confirmed already, with unspent outputs.
        AlreadyInChain = 4,
        /// The bytes are not a valid encoding of a transaction.
        Undecodable = 5,
        /// Its feerate exceeds the caller's maximum.
        FeeTooHigh {
            /// The fee, in satoshi.
            fee: Amount,
        } = 6,
    }
}

impl Admission {
    /// Why the transaction was refused, in bitcoind's words; none if it is accepted, or in the mempool or the chain already.
    pub fn refusal(&self) -> Option<String> {
        match self {
            Self::Accepted { .. } | Self::Known { .. } | Self::AlreadyInChain => None,
            Self::Rejected { reason, detail } if detail.is_empty() => Some(reason.clone()),
            Self::Rejected { reason, detail } => Some(format!("{reason}, {detail}")),
            Self::MissingInputs => Some("bad-txns-inputs-missingorspent".to_owned()),
            Self::Undecodable => Some("TX decode failed".to_owned()),
            Self::FeeTooHigh { .. } => Some("max-fee-exceeded".to_owned()),
        }
    }

    /// Whether a later block may make the transaction acceptable: its locktime or a sequence is not reached, or an input is missing or
    /// immature.
    pub fn awaits_block(&self) -> bool {
        match self {
            Self::Rejected { reason, .. } => {
                matches!(reason.as_str(), "non-final" | "non-BIP68-final" | "bad-txns-premature-spend-of-coinbase")
            }
            Self::MissingInputs => true,
            _ => false,
        }
    }
}

wire_enum! {
    /// The outcome for one transaction of a package.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub enum PackageMember {
        /// Accepted, or acceptable if the caller only tried.
        Accepted {
            /// Its virtual size, in virtual bytes.
            virtual_size: u64,
            /// Its fee, in satoshi.
            fee: Amount,
            /// The feerate that decided, with the deltas of prioritisetransaction, in satoshi per 1000 virtual bytes.
            feerate: FeeRate,
            /// The transactions with that joint feerate, by their ids with witness.
            included: Vec<Wtxid>,
        } = 0,
        /// In the mempool already.
        InMempool {
            /// Its virtual size, in virtual bytes.
            virtual_size: u64,
            /// Its fee, in satoshi.
            fee: Amount,
        } = 1,
        /// In the mempool already with another witness.
        OtherWitness {
            /// The id with witness of the transaction in the mempool.
            wtxid: Wtxid,
        } = 2,
        /// Refused.
        Rejected {
            /// The reason as bitcoind words it.
            reason: String,
            /// Details; may be empty.
            detail: String,
        } = 3,
        /// Not checked, since another transaction or the whole package was refused before.
        NotJudged = 4,
    }
}

wire_struct! {
    /// The outcome of submitting or trying a package.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct PackageOutcome {
        /// Why the mempool did not accept all of them, in bitcoind's words; empty if it did.
        pub reason: String,
        /// Details; may be empty.
        pub detail: String,
        /// Whether the package breaks a rule for packages, not one for a single transaction.
        pub is_policy: bool,
        /// The outcome for each transaction, in their order.
        pub members: Vec<PackageMember>,
        /// The transactions that were replaced, by their ids.
        pub replaced: Vec<Txid>,
    }
}

wire_struct! {
    /// The node's estimate of the feerate that a transaction needs.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct FeeEstimate {
        /// The feerate in satoshi per 1000 virtual bytes, at least the mempool's minimum; none if the node lacks the data.
        pub feerate: Option<FeeRate>,
        /// The number of blocks of the estimate: fewer than requested if the node lacks the data for that many.
        pub blocks: u32,
    }
}

service! {
    /// The unconfirmed transactions.
    pub trait Mempool = "mempool/1" {
        /// The mempool as a whole.
        fn info() -> MempoolInfo;
        /// All ids, in the order of acceptance.
        fn ids() -> Vec<Txid>;
        /// The entries of these ids, in their order; none for an id that the mempool does not have.
        fn entries(txids: Vec<Txid>) -> Vec<Option<MempoolEntry>>;
        /// The serialisations of the transactions with these ids, with witness, in their order; none for an id that the mempool does not
        /// have.
        fn transactions(txids: Vec<Txid>) -> Vec<Option<Blob>>;
        /// The transactions of the mempool that spend these outpoints, in their order; none for an outpoint that none spends.
        fn spenders(outpoints: Vec<OutPoint>) -> Vec<Option<Txid>>;
        /// Submits a transaction. `max_feerate` is its maximum feerate in satoshi per 1000 virtual bytes; 0 means no maximum.
        fn submit(raw: Blob, max_feerate: FeeRate) -> Admission;
        /// Checks whether `submit` would accept a transaction, without adding it to the mempool.
        fn try_submit(raw: Blob, max_feerate: FeeRate) -> Admission;
        /// The current selection for a block on the tip; none if its version is `known`, so that the host does not
        /// send an unchanged selection again. In front of a bitcoind it is the node's template, which
        /// the node renews for a new tip, and else at most every five seconds. Fails as `Chain::next_block`.
        fn candidate(known: Option<u64>) -> Encoded<Option<Candidate>>;
        /// Changes the fee by which a transaction is selected by this delta, in satoshi.
        fn prioritise(txid: Txid, fee_delta: SignedAmount) -> ();
        /// All fee deltas in effect, by txid. Fails with `Unsupported` on a bitcoind before Bitcoin Core 26.
        fn prioritised() -> Vec<Prioritised>;
        /// The feerate at which the node expects a confirmation within this many blocks. A conservative estimate uses a longer
        /// history, so it reacts later to falling fees; the other mode is economical (`estimate_mode`).
        fn fee_estimate(blocks: u32, conservative: bool) -> FeeEstimate;
        /// Submits a package: parents, then their only child. The mempool first tries each transaction alone, then jointly the ones
        /// that pay too little alone. `max_feerate` is as in `submit` and applies to each. Fails with `Unsupported` on a
        /// bitcoind.
        fn submit_package(transactions: Vec<Blob>, max_feerate: FeeRate) -> PackageOutcome;
        /// Checks whether the mempool would accept these transactions, without adding them. Each must pay for itself, and only a
        /// single transaction may replace others. Fails with `Unsupported` on a bitcoind.
        fn try_package(transactions: Vec<Blob>) -> PackageOutcome;
        /// Writes the mempool to its file and returns the path. Fails with `Refused` if it cannot write the file, and with `Unsupported`
        /// on a bitcoind.
        fn save() -> String;
    }
}

#[cfg(test)]
mod tests {
    use bitcoin::hashes::Hash;
    use bitcoin::{BlockHash, ScriptBuf, Txid, Wtxid};

    use super::*;
    use crate::chain::Tip;

    #[test]
    fn a_selection_is_read_where_the_host_wrote_it() {
        let next = NextBlock {
            tip: Tip { hash: BlockHash::all_zeros(), height: 1, time: 2, median_time: 3 },
            version: 4,
            bits: 5,
            min_time: 6,
            time: 7,
            subsidy: Amount::from_sat(8),
            rules: vec!["csv".to_owned(), "!segwit".to_owned()],
            available: vec![("taproot".to_owned(), 2)],
            signet_challenge: Some(ScriptBuf::from_bytes(vec![0x51])),
        };
        let selected = Selected {
            raw: Arc::new(Blob(vec![9; 100])),
            txid: Txid::from_byte_array([10; 32]),
            wtxid: Wtxid::from_byte_array([11; 32]),
            fee: Amount::from_sat(12),
            sigops: 13,
            weight: Weight::from_wu(14),
            depends: vec![1, 1],
        };
        let transactions = vec![selected.clone(), selected].into();
        let candidate = Candidate { version: 15, next, transactions, fees: Amount::from_sat(16), sequence: 17 };
        let message = Encoded::new(&Some(candidate.clone()));
        assert_eq!(message.read(), Ok(Some(candidate.clone())));
        let view = message.view().unwrap().unwrap();
        assert_eq!(
            (view.version, view.next.read(), view.fees, view.sequence),
            (15, candidate.next, candidate.fees, 17)
        );
        for (read, written) in view.transactions.iter().zip(candidate.transactions.iter()) {
            assert!(message.bytes().as_ptr_range().contains(&read.raw.as_ptr()), "not copied");
            assert_eq!((read.raw, read.txid, read.wtxid), (&**written.raw, written.txid, written.wtxid));
            assert_eq!((read.fee, read.sigops, read.weight), (written.fee, written.sigops, written.weight));
            assert_eq!(read.depends.iter().collect::<Vec<_>>(), written.depends);
        }
        assert_eq!(view.transactions.len(), 2);
    }
}
