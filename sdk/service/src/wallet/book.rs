//! The address book.

use bitcoin::ScriptBuf;

use super::script::Ownership;
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
