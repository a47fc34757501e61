//! `mempool/1`: unconfirmed transactions, and the selection for the next block.
//!
//! The example `mempool` of the SDK shows it in use.

use std::ops::Deref;
use std::sync::Arc;

use bitcoin::{Amount, OutPoint, SignedAmount, Txid, Weight, Wtxid};
use outrigger_values::FeeRate;

use super::chain::NextBlock;
use super::service;
use crate::wire::{
    Blob, Encoded, ListView, Reader, Shape, Viewed, Wire, WireError, Writer, wire_enum, wire_struct, wire_view,
};

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
        pub total_fee: Amount,
        /// The limit of `usage`, in bytes.
        pub max_usage: u64,
        /// The least feerate that is accepted, in satoshi per 1000 virtual bytes.
        pub min_feerate: FeeRate,
        /// The least feerate that is relayed, in satoshi per 1000 virtual bytes.
        pub relay_feerate: FeeRate,
        /// The feerate by which a replacement must pay more, in satoshi per 1000 virtual bytes.
        pub incremental_feerate: FeeRate,
        /// Counts every change of the mempool, and every block; a poller compares it.
        pub sequence: u64,
        /// Counts the transactions that came and those that left, for whatever reason: `mempool_sequence` of getrawmempool.
        #[since(1)]
        pub moves: u64,
        /// The number of transactions that `unbroadcast` names.
        #[since(1)]
        pub unbroadcast: u64,
        /// The limits of its clusters; none on a node that limits ancestors and descendants instead (before Bitcoin Core 31).
        #[since(1)]
        pub clusters: Option<ClusterLimits>,
    }
}

wire_struct! {
    /// The limits of a cluster: transactions that are connected by spending one another.
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
        /// Its fee with what prioritisetransaction added, in satoshi.
        pub modified_fee: SignedAmount,
        /// When it came, in seconds.
        pub time: u64,
        /// The tip's height when it came.
        pub height: u32,
        /// Transactions of the mempool it builds on, itself included: their number.
        pub ancestor_count: u64,
        /// The same: their virtual size.
        pub ancestor_size: u64,
        /// The same: their fees with what was added, in satoshi.
        pub ancestor_fees: SignedAmount,
        /// Transactions of the mempool that build on it, itself included: their number.
        pub descendant_count: u64,
        /// The same: their virtual size.
        pub descendant_size: u64,
        /// The same: their fees with what was added, in satoshi.
        pub descendant_fees: SignedAmount,
        /// The transactions of the mempool whose outputs it spends.
        pub depends: Vec<Txid>,
        /// The transactions of the mempool that spend its outputs.
        pub spent_by: Vec<Txid>,
        /// Whether it, or one it builds on, signals replaceability (BIP 125).
        pub replaceable: bool,
    }
}

/// A byte string in a message that others share: a copy of it copies nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SharedBlob(pub Arc<[u8]>);

impl Deref for SharedBlob {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl From<Vec<u8>> for SharedBlob {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }
}

impl Wire for SharedBlob {
    const SHAPE: &'static Shape = Blob::SHAPE;

    fn put(&self, out: &mut Writer) {
        out.put_byte_string(self);
    }

    fn get(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        Ok(Self(reader.byte_string()?.into()))
    }
}

impl Viewed for SharedBlob {
    type View<'a> = &'a [u8];
    fn view<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], WireError> {
        reader.byte_string()
    }
}

wire_view! { SelectedView of
    /// A transaction selected for the next block.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct Selected {
        /// Its serialisation, with witness.
        pub raw: SharedBlob,
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
        /// For each input that spends an earlier selected one: that one's position, counted from 1.
        pub depends: Vec<u32>,
    }
}

/// The transactions of a selection. A copy shares them.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Selection(Arc<Vec<Selected>>);

impl From<Vec<Selected>> for Selection {
    fn from(transactions: Vec<Selected>) -> Self {
        Self(Arc::new(transactions))
    }
}

impl Deref for Selection {
    type Target = [Selected];

    fn deref(&self) -> &[Selected] {
        &self.0
    }
}

impl Wire for Selection {
    const SHAPE: &'static Shape = Vec::<Selected>::SHAPE;

    fn put(&self, out: &mut Writer) {
        self.0.put(out);
    }

    fn get(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        Wire::get(reader).map(|transactions: Vec<Selected>| transactions.into())
    }
}

impl Viewed for Selection {
    type View<'a> = ListView<'a, Selected>;
    fn view<'a>(reader: &mut Reader<'a>) -> Result<Self::View<'a>, WireError> {
        Vec::<Selected>::view(reader)
    }
}

wire_view! { CandidateView of
    /// A selection for the next block, and what that block must be.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct Candidate {
        /// Names tip and transactions: another one of the same version has the same. Never 0, and not used again while the
        /// host runs.
        pub version: u64,
        /// What a block of it must and may be. `next.tip` is the tip that it builds on.
        pub next: NextBlock,
        /// In an order in which parents precede their children.
        pub transactions: Selection,
        /// The sum of their fees, in satoshi.
        pub fees: Amount,
        /// The mempool's sequence when it was made.
        pub sequence: u64,
    }
}

wire_struct! {
    /// What was added to the fee that a transaction is selected by.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct Prioritised {
        /// The transaction, which need not be known.
        pub txid: Txid,
        /// What was added, in satoshi; below 0 it was taken away. Never 0.
        pub fee_delta: SignedAmount,
        /// The fee with it, in satoshi; none where the transaction is not in the mempool.
        pub modified_fee: Option<SignedAmount>,
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
            fee: Amount,
        } = 6,
    }
}

impl Admission {
    /// Why the transaction was refused, in bitcoind's words; none where the mempool or the chain has it, or it would be accepted.
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

    /// Whether a later block may end the reason of the refusal: a locktime or a sequence lies ahead, or an input is not known yet.
    pub fn awaits_block(&self) -> bool {
        match self {
            Self::Rejected { reason, .. } => matches!(reason.as_str(), "non-final" | "non-BIP68-final"),
            Self::MissingInputs => true,
            _ => false,
        }
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

wire_enum! {
    /// What became of one of several transactions that were offered together.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub enum PackageMember {
        /// Accepted (or, when tried: it would be).
        Accepted {
            /// Its virtual size, in virtual bytes.
            virtual_size: u64,
            /// Its fee, in satoshi.
            fee: Amount,
            /// The feerate that it was judged by, with what prioritisetransaction added, in satoshi per 1000 virtual bytes.
            feerate: FeeRate,
            /// The transactions whose feerate together that is, by their ids with witness.
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
            /// The id of that one, with witness.
            wtxid: Wtxid,
        } = 2,
        /// Refused.
        Rejected {
            /// The reason as bitcoind words it.
            reason: String,
            /// More of it; may be empty.
            detail: String,
        } = 3,
        /// Another one, or all together, were refused before.
        NotJudged = 4,
    }
}

wire_struct! {
    /// What became of several transactions that were offered together.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct PackageOutcome {
        /// Why not all of them are accepted, as bitcoind words it; empty where they are.
        pub reason: String,
        /// More of it; may be empty.
        pub detail: String,
        /// Whether a rule of packages is broken, and not one of a transaction.
        pub is_policy: bool,
        /// What became of each, in their order.
        pub members: Vec<PackageMember>,
        /// The transactions that were replaced, by their ids.
        pub replaced: Vec<Txid>,
    }
}

wire_struct! {
    /// What the node estimates that a transaction has to pay.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct FeeEstimate {
        /// The feerate, in satoshi per 1000 virtual bytes, and no less than the mempool accepts; none where the node knows too little.
        pub feerate: Option<FeeRate>,
        /// The number of blocks that it is for: fewer than were asked for where the node knows too little of so many.
        pub blocks: u32,
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
        fn submit(raw: Blob, max_feerate: FeeRate) -> Admission;
        /// As `submit`, keeping nothing.
        fn try_submit(raw: Blob, max_feerate: FeeRate) -> Admission;
        /// The selection for a block on the tip, of the mempool as it stands; none when its version is the one that the
        /// caller knows, so that what has not changed is not handed over again. In front of a bitcoind it is the node's own, which
        /// it makes anew for another tip and else every five seconds at most; it fails as `Chain::next_block` does.
        fn candidate(known: Option<u64>) -> Encoded<Option<Candidate>>;
        /// Adds to (or takes from) the fee that a transaction is selected by, in satoshi.
        fn prioritise(txid: Txid, fee_delta: SignedAmount) -> ();
        /// All that was added and stands, by txid. Fails with `Unsupported` on a bitcoind before Bitcoin Core 26.
        fn prioritised() -> Vec<Prioritised>;
        /// For each of these ids whether it is of a transaction of the mempool that was offered by `submit` and that no peer
        /// is known to have. One that came back from a block is none.
        #[since(1)]
        fn unbroadcast(txids: Vec<Txid>) -> Vec<bool>;
        /// The feerate at which a transaction is expected to be confirmed within so many blocks. A conservative one also looks
        /// further back, so that it falls later when fees fall; the other is economical (`estimate_mode`).
        #[since(1)]
        fn fee_estimate(blocks: u32, conservative: bool) -> FeeEstimate;
        /// Offers transactions that build on one another, parents before their one child: first each by itself, then those together
        /// that pay too little by themselves. `max_feerate` is that of `submit`, and bounds each. Fails with `Unsupported` on a
        /// bitcoind.
        #[since(1)]
        fn submit_package(transactions: Vec<Blob>, max_feerate: FeeRate) -> PackageOutcome;
        /// What the mempool would say of these transactions, of which each pays for itself and none replaces others, unless it is
        /// the only one; keeping nothing. Fails with `Unsupported` on a bitcoind.
        #[since(1)]
        fn try_package(transactions: Vec<Blob>) -> PackageOutcome;
        /// Writes the mempool to its file, and returns the path. `Refused` when it cannot be written. Fails with `Unsupported` on a
        /// bitcoind.
        #[since(1)]
        fn save() -> String;
    }
}

#[cfg(test)]
mod tests {
    use bitcoin::hashes::Hash;
    use bitcoin::{BlockHash, Txid, Wtxid};

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
        };
        let selected = Selected {
            raw: vec![9; 100].into(),
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
            assert_eq!((read.raw, read.txid, read.wtxid), (&*written.raw, written.txid, written.wtxid));
            assert_eq!((read.fee, read.sigops, read.weight), (written.fee, written.sigops, written.weight));
            assert_eq!(read.depends.iter().collect::<Vec<_>>(), written.depends);
        }
        assert_eq!(view.transactions.len(), 2);
    }
}
