//! Payments that the wallet's scripts received.

use bitcoin::{Amount, ScriptBuf, Txid};

use super::Ownership;
use crate::wire::{wire_enum, wire_struct, wire_view};

wire_enum! {
    /// The scripts of a query.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub enum ReceivedBy {
        /// All scripts of the wallet with an entry in the address book.
        AddressBook = 0,
        /// These scripts, as far as they are the wallet's.
        Scripts {
            /// The scripts.
            scripts: Vec<ScriptBuf>,
        } = 1,
    }
}

wire_struct! {
    /// A query for received payments. Depths are counted from the wallet's last block: 1 in that block, 0 if unconfirmed, negative if a
    /// block conflicts with the transaction.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct ReceivedQuery {
        /// The scripts.
        pub by: ReceivedBy,
        /// The least depth of transactions that count.
        pub min_depth: i64,
        /// The least depth of coinbases that count.
        pub min_coinbase_depth: i64,
    }
}

wire_view! { ReceivedView of
    /// The payments that a script of the wallet received.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct Received {
        /// The script.
        pub script: ScriptBuf,
        /// Its ownership.
        pub ownership: Ownership,
        /// The label of its address; none where it has no entry in the address book.
        pub label: Option<String>,
        /// The sum of the outputs, in satoshi.
        pub amount: Amount,
        /// The least depth of their transactions.
        pub depth: i64,
        /// The transaction of each output, by order position.
        pub txids: Vec<Txid>,
    }
}
