//! A wallet's transactions and coins, as the services of wallets tell them.

use bitcoin::{Amount, BlockHash, OutPoint, ScriptBuf, Txid, Wtxid};

use super::Ownership;
use crate::wire::{Blob, Framed, ListView, view_by_value, wire_enum, wire_struct, wire_view};

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

impl TxState {
    /// How deep a transaction is for a wallet that stands at `synced`: 0 when unconfirmed, negative when another one made it
    /// impossible.
    pub fn depth(self, synced: u32) -> i64 {
        let depth_of = |height: u32| i64::from(synced) - i64::from(height) + 1;
        match self {
            Self::Confirmed { height, .. } => depth_of(height),
            Self::Conflicted { height, .. } => -depth_of(height),
            Self::InMempool | Self::Inactive | Self::Abandoned => 0,
        }
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

view_by_value!(TxState, Replaceable, Ownership);

wire_view! { WalletOutputView of
    /// An output of a wallet's transaction.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct WalletOutput {
        /// Its value, in satoshi.
        pub value: Amount,
        /// Its script.
        pub script: ScriptBuf,
        /// Whose it is.
        pub ownership: Ownership,
        /// Whether it is change: ours, and without an entry in the address book.
        pub change: bool,
        /// The label of its address; none where it has no entry in the address book.
        pub label: Option<String>,
        /// The numbers of the wallet's descriptors it was derived from; [`super::WalletRead::descriptor_texts`] has the texts.
        pub descriptors: Vec<u32>,
    }
}

wire_view! { WalletTransactionView of
    /// A transaction as the wallet stores it. Ownership, debit and labels are those of now: imports re-derive them.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct WalletTransaction {
        /// Whether another transaction of the wallet spends one of its inputs.
        pub contested: bool,
        /// Where it stands.
        pub state: TxState,
        /// Its id.
        pub txid: Txid,
        /// Its id with witness.
        pub wtxid: Wtxid,
        /// Its number in the order in which the wallet met its transactions.
        pub order_position: u64,
        /// Its smart time, in seconds.
        pub time: u64,
        /// When the wallet met it, in seconds.
        pub time_received: u64,
        /// Whether it is a coinbase.
        pub coinbase: bool,
        /// Whether an input of its own signals replaceability (BIP 125).
        pub signals: bool,
        /// Its lock time where an input's sequence enforces it, else 0.
        pub lock_time: u32,
        /// The sum of all its outputs, in satoshi.
        pub total_output: Amount,
        /// What it spends of ours that is spendable, in satoshi.
        pub debit_spendable: Amount,
        /// What it spends of ours that is watched, in satoshi.
        pub debit_watch_only: Amount,
        /// What was stored with it (`comment`, `to`, ...), by key.
        pub metadata: Vec<(String, String)>,
        /// What it spends; empty for a coinbase.
        pub inputs: Vec<OutPoint>,
        /// All its outputs.
        pub outputs: Vec<WalletOutput>,
    }
}

impl WalletTransaction {
    /// Whether a transaction is in the best chain and not contested, given the beginning of its encoding: then the moment
    /// has nothing to say of it.
    pub fn is_settled(encoded: &[u8]) -> bool {
        // Of its first two fields, the first is false, and the second begins with the tag of `TxState::Confirmed`.
        matches!(encoded, [0, 0, ..])
    }

    /// Whether it spends anything of ours.
    pub fn is_from_us(&self) -> bool {
        self.debit_spendable > Amount::ZERO || self.debit_watch_only > Amount::ZERO
    }

    /// The output at a position.
    pub fn output(&self, vout: u32) -> Option<&WalletOutput> {
        self.outputs.get(usize::try_from(vout).ok()?)
    }
}

impl WalletTransactionView<'_> {
    /// Whether it spends anything of ours.
    pub fn is_from_us(&self) -> bool {
        self.debit_spendable > Amount::ZERO || self.debit_watch_only > Amount::ZERO
    }
}

wire_view! { UnsettledStateView of
    /// What is known of a transaction that is not settled: computed for each answer, never stored.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct UnsettledState {
        /// Other transactions of the wallet that spend one of its inputs, by internal bytes.
        pub conflicts: Vec<Txid>,
        /// Transactions of the mempool that spend one of its inputs, or one of those of the wallet's transactions that it
        /// builds on and that wait as well, by internal bytes; none looked for while it is in the chain or the mempool
        /// itself.
        pub mempool_conflicts: Vec<Txid>,
        /// Whether its outputs may be relied on: it is in the best chain, or will be by all that can be foreseen.
        pub trusted: bool,
        /// Whether it can be replaced, as far as the wallet knows by itself: unknown of one in the mempool that does not signal it,
        /// of which [`super::WalletRead::replaceable`] asks the node.
        pub replaceable: Replaceable,
    }
}

impl UnsettledStateView<'_> {
    /// That of a transaction in the best chain that is not contested.
    pub const SETTLED: Self = Self {
        conflicts: ListView::EMPTY,
        mempool_conflicts: ListView::EMPTY,
        trusted: true,
        replaceable: Replaceable::No,
    };
}

wire_view! { HistoryRowView of
    /// A transaction of the wallet as it is told.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct HistoryRow {
        /// It, as it is stored.
        pub transaction: Framed<WalletTransaction>,
        /// What the moment says of it. None for one in the best chain that is not contested: it is trusted, cannot be
        /// replaced, and has no conflicts.
        pub unsettled: Option<UnsettledState>,
    }
}

impl<'a> HistoryRowView<'a> {
    /// The transaction and what the moment says of it.
    ///
    /// # Errors
    /// `Malformed` when the row is damaged.
    pub fn open(&self) -> crate::Result<(WalletTransactionView<'a>, UnsettledStateView<'a>)> {
        Ok((self.transaction.open()?, self.unsettled.unwrap_or(UnsettledStateView::SETTLED)))
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
        /// Those in the mempool, inactive or abandoned, by order position.
        Unconfirmed = 1,
        /// Those whose conflict confirmed at a height or above, by that height, then order position.
        Conflicted {
            /// The first height.
            from_height: u32,
        } = 2,
        /// All, by order position.
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
        /// The most to give; the host ends a batch sooner when it grows large.
        pub limit: u32,
    }
}

wire_view! { HistoryBatchView of
    /// A part of the history.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct HistoryBatch {
        /// The transactions.
        pub rows: Vec<HistoryRow>,
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
        pub value: Amount,
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
