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
        /// Whose it is: of others' are those that the wallet pays to.
        pub ownership: Ownership,
    }
}

wire_struct! {
    /// An address with a label that was asked for.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct LabelledAddress {
        /// The address's script.
        pub script: ScriptBuf,
        /// Whether its purpose is `send`, as in [`LabelBatch::sending`].
        pub sending: bool,
    }
}

wire_struct! {
    /// Entries of the address book.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct LabelBatch {
        /// They, in no order that means anything.
        pub entries: Vec<LabelledScript>,
        /// Where the next batch goes on; none at the end.
        pub next: Option<Blob>,
        /// The scripts of those that were another's when they got their labels: what is imported later does not change their
        /// purpose, which is `send`; that of the others is `receive`.
        #[since(1)]
        pub sending: Vec<ScriptBuf>,
    }
}

service! {
    /// Addresses, labels, texts and locks of coins: for shops. What is written here moves no coin.
    pub trait WalletBook as WalletBookClient = "wallet-book/1" {
        /// Hands out a fresh address and returns its script. The address gets the label in the address book; an address for change has
        /// none and no entry. The wallet takes the next index of the active descriptor of the type and side, and first derives scripts
        /// ahead of it. Without such a descriptor it takes the oldest key of the imported keypool, and then watches the address.
        ///
        /// A payment makes an address used. The wallet sees payments to an address only after it has derived the address: a rescan finds
        /// earlier ones in blocks, loading the wallet finds those in the mempool. A payment also uses up all lower indexes of its
        /// descriptor. Those of an active descriptor for receiving get entries with an empty label. After each payment the wallet
        /// derives scripts ahead again.
        ///
        /// `Refused` if the wallet has no addresses on that side; `KeypoolRanOut` if it has addresses of other types, or can derive no
        /// more (hardened steps in a locked wallet, a descriptor without a range).
        fn new_address(kind: AddressType, internal: bool, label: Option<String>) -> ScriptBuf;
        /// Gives back an address that `new_address` gave and that is not needed, as that of the change of a payment which is not
        /// made: its index is the next one again, and what was derived ahead stays. Whether it was: not where another one
        /// was drawn since or a payment passed over it, nor for a key of the imported keypool.
        fn return_address(script: ScriptBuf) -> bool;
        /// Derives scripts until `size` lie ahead of the next index of each active descriptor; none: as many as the host
        /// keeps ahead. Where more do, they stay. `Refused` for more than 1,000,000; `WalletLocked`.
        fn refill_keypool(size: Option<u32>) -> ();
        /// Sets a script's label in the address book, also of others' scripts. Nothing where it has no address form.
        /// Pay-to-pubkey has none. `Refused` for a label of more than 4,096 bytes, as of `new_address` and in imports.
        fn set_label(script: ScriptBuf, label: String) -> ();
        /// Stores a text with a transaction (`comment`, `to`) in the place of the former one of the key; an empty one is
        /// taken away. They are told sorted by key. `NotFound` for a transaction that the wallet does not have; `Refused` for
        /// a text of more than 16,384 bytes.
        fn set_metadata(txid: Txid, key: String, value: String) -> ();
        /// Locks outputs, the wallet's or not: who makes payments does not choose them. One that a transaction of the wallet
        /// spends (as for `coins`) is passed over. A lock ends when the wallet is unloaded, unless it is persistent; one that is
        /// persistent stays so. A new transaction of the wallet that spends the output ends it, and with a payment that `send` takes
        /// back it is there again.
        fn lock_coins(coins: Vec<OutPoint>, persistent: bool) -> ();
        /// Unlocks these outputs, and forgets persistent locks. Nothing for one that is not locked.
        fn unlock_coins(coins: Vec<OutPoint>) -> ();
    }
}
