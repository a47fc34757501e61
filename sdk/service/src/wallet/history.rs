//! A wallet's transactions and coins in the wallet services.

use bitcoin::{Amount, BlockHash, OutPoint, ScriptBuf, Txid, Wtxid};

use super::Ownership;
use crate::wire::{Blob, Framed, ListView, view_by_value, wire_enum, wire_struct, wire_view};

wire_enum! {
    /// The state of a wallet's transaction.
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
        /// In neither, but it may still confirm.
        Inactive = 2,
        /// In neither, and abandoned: its inputs may be spent again.
        Abandoned = 3,
        /// Impossible because of a conflicting transaction in a block.
        Conflicted {
            /// The block with the conflicting transaction.
            block: BlockHash,
            /// The block's height.
            height: u32,
        } = 4,
    }
}

impl TxState {
    /// The number of confirmations for a wallet that has followed the chain to the height `synced`: 0 if unconfirmed, negative if a block
    /// conflicts with it.
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
        /// It cannot be replaced, or is confirmed.
        No = 0,
        /// It, or an unconfirmed ancestor, signals replaceability.
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
        /// Whether it is change: the wallet's, and without an entry in the address book.
        pub change: bool,
        /// The label of its address; none where it has no entry in the address book.
        pub label: Option<String>,
        /// The numbers of the wallet's descriptors that derive its script; [`super::WalletRead::descriptor_texts`] has the texts.
        pub descriptors: Vec<u32>,
    }
}

wire_view! { WalletTransactionView of
    /// A transaction as the wallet stores it. Ownership, debit and labels are current: imports update them.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct WalletTransaction {
        /// Whether another transaction of the wallet spends one of its inputs.
        pub contested: bool,
        /// Its state.
        pub state: TxState,
        /// Its id.
        pub txid: Txid,
        /// Its wtxid.
        pub wtxid: Wtxid,
        /// Its position in the order in which the wallet first saw its transactions.
        pub order_position: u64,
        /// Its smart time (`nTimeSmart` of Bitcoin Core), in Unix seconds.
        pub time: u64,
        /// When the wallet first saw it, in Unix seconds.
        pub time_received: u64,
        /// Whether it is a coinbase.
        pub coinbase: bool,
        /// Whether one of its own inputs signals replaceability (BIP 125).
        pub signals: bool,
        /// Its lock time where an input's sequence enforces it, else 0.
        pub lock_time: u32,
        /// The sum of all its outputs, in satoshi.
        pub total_output: Amount,
        /// The value of the wallet's spendable outputs that it spends, in satoshi.
        pub debit_spendable: Amount,
        /// The value of the watched outputs that it spends, in satoshi.
        pub debit_watch_only: Amount,
        /// The texts stored with it (`comment`, `to`, ...), by key.
        pub metadata: Vec<(String, String)>,
        /// The outputs that it spends; empty for a coinbase.
        pub inputs: Vec<OutPoint>,
        /// All its outputs.
        pub outputs: Vec<WalletOutput>,
    }
}

impl WalletTransaction {
    /// Whether a transaction is in the best chain and not contested, read from the first bytes of its encoding. Such a transaction has no
    /// [`UnsettledState`].
    pub fn is_settled(encoded: &[u8]) -> bool {
        // `contested` is false, and `state` begins with the tag of `TxState::Confirmed`.
        matches!(encoded, [0, 0, ..])
    }

    /// Whether it spends an output of the wallet.
    pub fn is_from_us(&self) -> bool {
        self.debit_spendable > Amount::ZERO || self.debit_watch_only > Amount::ZERO
    }

    /// The output at a position.
    pub fn output(&self, vout: u32) -> Option<&WalletOutput> {
        self.outputs.get(usize::try_from(vout).ok()?)
    }
}

impl WalletTransactionView<'_> {
    /// Whether it spends an output of the wallet.
    pub fn is_from_us(&self) -> bool {
        self.debit_spendable > Amount::ZERO || self.debit_watch_only > Amount::ZERO
    }
}

wire_view! { UnsettledStateView of
    /// The facts about an unsettled transaction that change with the mempool and the wallet. The host computes them for each answer, and
    /// never stores them.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct UnsettledState {
        /// Other transactions of the wallet that spend one of its inputs, sorted by internal bytes.
        pub conflicts: Vec<Txid>,
        /// Mempool transactions that spend an input of this transaction, or of an unconfirmed ancestor of it in the wallet that is not in
        /// the mempool either, sorted by internal bytes. Empty while this transaction is in the chain or the mempool.
        pub mempool_conflicts: Vec<Txid>,
        /// Whether its outputs can be relied on: it is in the best chain, or is expected to be (`CachedTxIsTrusted` in Bitcoin Core).
        pub trusted: bool,
        /// Whether it can be replaced, as far as the wallet knows: `Unknown` for a mempool transaction that does not signal it.
        /// [`super::WalletRead::replaceable`] asks the node.
        pub replaceable: Replaceable,
    }
}

impl UnsettledStateView<'_> {
    /// The state of a transaction in the best chain that is not contested.
    pub const SETTLED: Self = Self {
        conflicts: ListView::EMPTY,
        mempool_conflicts: ListView::EMPTY,
        trusted: true,
        replaceable: Replaceable::No,
    };
}

wire_view! { HistoryRowView of
    /// A row of the history.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct HistoryRow {
        /// The transaction as it is stored.
        pub transaction: Framed<WalletTransaction>,
        /// Its unsettled state; none for a transaction in the best chain that is not contested: it is trusted, cannot be replaced, and
        /// has no conflicts.
        pub unsettled: Option<UnsettledState>,
    }
}

impl<'a> HistoryRowView<'a> {
    /// The transaction and its unsettled state; [`UnsettledStateView::SETTLED`] if the row has none.
    ///
    /// # Errors
    /// `Malformed` if the row is damaged.
    pub fn open(&self) -> crate::Result<(WalletTransactionView<'a>, UnsettledStateView<'a>)> {
        Ok((self.transaction.open()?, self.unsettled.unwrap_or(UnsettledStateView::SETTLED)))
    }
}

wire_enum! {
    /// The transactions of a query, and their order.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum HistoryRange {
        /// Transactions in the best chain from this height on, by height and position.
        Confirmed {
            /// The first height.
            from_height: u32,
        } = 0,
        /// Transactions that are in the mempool, inactive or abandoned, by order position.
        Unconfirmed = 1,
        /// Transactions whose conflict confirmed at this height or above, by that height, then order position.
        Conflicted {
            /// The first height.
            from_height: u32,
        } = 2,
        /// All, by order position.
        All = 3,
    }
}

wire_struct! {
    /// A request for a part of the history.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct HistoryQuery {
        /// Which transactions.
        pub range: HistoryRange,
        /// Whether to read backwards from the end.
        pub reverse: bool,
        /// The `next` of the last batch; none for the first batch.
        pub after: Option<Blob>,
        /// The most transactions to return; the host ends a batch earlier if it grows large.
        pub limit: u32,
    }
}

wire_view! { HistoryBatchView of
    /// A part of the history.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct HistoryBatch {
        /// The transactions.
        pub rows: Vec<HistoryRow>,
        /// The position of the next batch; none at the end.
        pub next: Option<Blob>,
    }
}

wire_struct! {
    /// An output of the wallet that no transaction in the chain, the mempool or the wallet spends.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct WalletCoin {
        /// The outpoint.
        pub outpoint: OutPoint,
        /// Its value, in satoshi.
        pub value: Amount,
        /// Its script.
        pub script: ScriptBuf,
        /// The state of its transaction: confirmed, in the mempool or inactive.
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
        /// Whether its transaction spends an output of the wallet.
        pub from_us: bool,
    }
}

wire_struct! {
    /// A part of the coins.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct CoinBatch {
        /// The coins, by outpoint.
        pub coins: Vec<WalletCoin>,
        /// The position of the next batch; none at the end.
        pub next: Option<Blob>,
    }
}
