//! `wallet-book/1`, and the address book.

use bitcoin::{OutPoint, ScriptBuf, Txid};

use super::AddressType;
use super::script::Ownership;
use crate::service;
use crate::wire::{Blob, wire_struct};

wire_struct! {
    /// An entry of the address book.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct LabelledScript {
        /// The address's script.
        pub script: ScriptBuf,
        /// Its label.
        pub label: String,
        /// The script's ownership; [`Ownership::None`] for an address of someone else.
        pub ownership: Ownership,
        /// Whether its purpose is `send`: the script was not the wallet's when it got its label, even if the wallet imported it later. The
        /// purpose of the other scripts is `receive`.
        pub sending: bool,
    }
}

wire_struct! {
    /// Entries of the address book.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct LabelBatch {
        /// The entries, in no particular order.
        pub entries: Vec<LabelledScript>,
        /// The position of the next batch; none at the end.
        pub next: Option<Blob>,
    }
}

service! {
    /// Addresses, labels, texts of transactions and coin locks, for example for shops. No function of this service moves a coin.
    pub trait WalletBook = "wallet-book/1" {
        /// Draws a new address and returns its script. The address gets the label in the address book; a change address gets neither a
        /// label nor an entry. The wallet takes the next index of the active descriptor of the type and side, and first derives scripts
        /// ahead of it. Without such a descriptor it takes the oldest key of the imported keypool, and then watches the address.
        ///
        /// A payment makes an address used. The wallet sees payments to an address only after it has derived the address: a rescan finds
        /// earlier payments in blocks, and loading the wallet finds those in the mempool. A payment also uses up all lower indexes of its
        /// descriptor; in an active descriptor for receiving they get entries with an empty label. After each payment the wallet derives
        /// scripts ahead again.
        ///
        /// `Refused` if the wallet has no addresses on that side; `KeypoolRanOut` if it has addresses of other types, or can derive no
        /// more (hardened steps in a locked wallet, a descriptor without a range).
        fn new_address(kind: AddressType, internal: bool, label: Option<String>) -> ScriptBuf;
        /// Returns an unused address of `new_address`, such as the change address of a payment that is not made. Its index becomes the
        /// next one again; scripts derived ahead stay. False if a later address was drawn since, a payment has used a later index, or the
        /// key is of the imported keypool.
        fn return_address(script: ScriptBuf) -> bool;
        /// Derives scripts until `size` lie ahead of the next index of each active descriptor; none: as many as the host keeps ahead. It
        /// removes no scripts. `Refused` for more than 1,000,000; `WalletLocked`.
        fn refill_keypool(size: Option<u32>) -> ();
        /// Sets a script's label in the address book, also for scripts of others. Does nothing for a script without an address, such as
        /// pay-to-pubkey. `Refused` for a label of more than 4,096 bytes, as in `new_address` and in imports.
        fn set_label(script: ScriptBuf, label: String) -> ();
        /// Stores a text with a transaction under a key (`comment`, `to`), in place of an earlier text; an empty text deletes it.
        /// Services return the texts sorted by key. `NotFound` if the wallet does not have the transaction; `Refused` for a text of more
        /// than 16,384 bytes.
        fn set_metadata(txid: Txid, key: String, value: String) -> ();
        /// Locks outputs, the wallet's or not, so that payments do not select them. Outputs that a transaction of the wallet spends (as
        /// for `coins`) are skipped. A lock ends when the wallet is unloaded, unless it is persistent; a persistent lock stays
        /// persistent. A new transaction of the wallet that spends the output ends its lock; if `send` takes the payment back, the lock
        /// is restored.
        fn lock_coins(coins: Vec<OutPoint>, persistent: bool) -> ();
        /// Unlocks these outputs, persistent locks included. Outputs without a lock are ignored.
        fn unlock_coins(coins: Vec<OutPoint>) -> ();
    }
}
