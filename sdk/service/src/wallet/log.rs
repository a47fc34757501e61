//! The numbered log of a wallet.

use bitcoin::{BlockHash, ScriptBuf, SignedAmount, Txid};
use outrigger_values::amount;
use serde_json::{Map, Value, json};

use crate::json::to_json;
use crate::wire::{wire_enum, wire_struct};

/// The number of confirmations at which the log gets an entry [`LogKind::Deep`].
pub const LOG_DEPTH: u32 = 6;

/// The most entries in one answer.
pub const MAX_LOG_ENTRIES: u32 = 256;

wire_enum! {
    /// A change of a wallet's transaction.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum LogKind {
        /// It is unconfirmed: new, or possible again after it was abandoned, replaced or conflicted.
        Seen = 0,
        /// A block confirmed it.
        Confirmed = 1,
        /// It has 6 confirmations.
        Deep = 2,
        /// A reorganisation took its block out of the chain.
        Reorganised = 3,
        /// A block confirmed a conflicting transaction.
        Conflicted = 4,
        /// A mempool transaction conflicts with it.
        Replaced = 5,
        /// It was abandoned, or is a coinbase without a block, or builds on such a transaction.
        Abandoned = 6,
        /// The wallet no longer has it: a client removed it, or the node failed before it got it.
        Removed = 7,
    }
}

wire_enum! {
    /// The category of a payment, as `listtransactions` names it.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum LogCategory {
        /// From the wallet.
        Send = 0,
        /// To the wallet.
        Receive = 1,
        /// To the wallet by a coinbase that can be spent.
        Generate = 2,
        /// To the wallet by a coinbase that cannot be spent yet.
        Immature = 3,
        /// To the wallet by a coinbase without a block.
        Orphan = 4,
    }
}

wire_struct! {
    /// A payment: an output to the wallet, or an output of a transaction that spends from the wallet. Change is left out.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct LogPayment {
        /// The output's number.
        pub vout: u32,
        /// Its script.
        pub script: ScriptBuf,
        /// Its address; none where the script has none.
        pub address: Option<String>,
        /// The label of the address; none where the address book has no entry.
        pub label: Option<String>,
        /// The category.
        pub category: LogCategory,
        /// What the wallet gains by it, in satoshi: negative for what it sends.
        pub amount: SignedAmount,
    }
}

wire_struct! {
    /// An entry of the log.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct LogEntry {
        /// Its number: greater than those of all entries before it. Numbers are not consecutive.
        pub number: u64,
        /// The change.
        pub kind: LogKind,
        /// The transaction.
        pub txid: Txid,
        /// The block that confirms or conflicts with the transaction, or that left the chain.
        pub block: Option<BlockHash>,
        /// The height of that block.
        pub height: Option<u32>,
        /// When the entry was written, in seconds.
        pub time: u64,
        /// The fee, as a negative amount: the part of the spent value that `payments` leaves out. None if the transaction spends nothing
        /// of the wallet.
        pub fee: Option<SignedAmount>,
        /// The payments, with their current labels; empty if the wallet no longer has the transaction. Payments and fee sum up to the
        /// wallet's gain.
        pub payments: Vec<LogPayment>,
    }
}

wire_struct! {
    /// A part of the log.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct WalletLog {
        /// The wallet's name.
        pub wallet: String,
        /// The entries, by number.
        pub entries: Vec<LogEntry>,
        /// The number of the newest entry ever written; 0 if there is none.
        pub last: u64,
        /// The number of the newest dropped entry, 0 if there is none. The wallet drops entries that are too old or too many. A reader
        /// whose last number is smaller has missed entries.
        pub dropped: u64,
    }
}

impl LogEntry {
    /// The JSON form of the entry of this wallet, as clients get it.
    pub fn to_json(&self, wallet: &str) -> Value {
        let mut event = Map::new();
        let mut put = |key: &str, value: Value| event.insert(key.to_owned(), value);
        put("number", json!(self.number));
        put("wallet", json!(wallet));
        put("kind", to_json(&self.kind).unwrap_or_default());
        put("txid", json!(self.txid));
        if let (Some(block), Some(height)) = (self.block, self.height) {
            put("blockhash", json!(block));
            put("blockheight", json!(height));
        }
        put("time", json!(self.time));
        if let Some(fee) = self.fee {
            put("fee", amount::to_json(fee));
        }
        put("payments", self.payments.iter().map(payment).collect());
        Value::Object(event)
    }
}

fn payment(payment: &LogPayment) -> Value {
    let category = to_json(&payment.category).unwrap_or_default();
    let mut object = json!({"category": category, "amount": amount::to_json(payment.amount), "vout": payment.vout});
    for (key, text) in [("address", &payment.address), ("label", &payment.label)] {
        if let Some(text) = text {
            object[key] = json!(text);
        }
    }
    object
}
