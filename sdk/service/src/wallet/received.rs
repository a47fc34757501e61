//! What the wallet's scripts received.

use bitcoin::{Amount, ScriptBuf, Txid};

use super::Ownership;
use crate::wire::{wire_enum, wire_struct, wire_view};

wire_enum! {
    /// Whose payments are summed up.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub enum ReceivedBy {
        /// All scripts of the wallet that have an entry in the address book.
        AddressBook = 0,
        /// Those of these scripts that are the wallet's.
        Scripts {
            /// They.
            scripts: Vec<ScriptBuf>,
        } = 1,
    }
}

wire_struct! {
    /// Which payments count. The depth of a transaction is counted from where the wallet stands: it is 1 in that block, 0 where it is
    /// not confirmed, and negative where a block made it impossible.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct ReceivedQuery {
        /// To which scripts.
        pub by: ReceivedBy,
        /// The least depth of a transaction that counts.
        pub min_depth: i64,
        /// The least depth of a coinbase that counts.
        pub min_coinbase_depth: i64,
    }
}

wire_view! { ReceivedView of
    /// What a script of the wallet received.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct Received {
        /// The script.
        pub script: ScriptBuf,
        /// Whose it is.
        pub ownership: Ownership,
        /// The label of its address; none where it has no entry in the address book.
        pub label: Option<String>,
        /// The sum of the outputs.
        pub amount: Amount,
        /// The least depth of their transactions.
        pub depth: i64,
        /// The transaction of each output, by order position.
        pub txids: Vec<Txid>,
    }
}
