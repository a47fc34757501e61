//! `policy/1`: a plugin judges what a wallet signs, sends and gives out.
//!
//! The setting `[[wallet.policies]]` names the plugin and its wallets. The host asks all policies of a wallet wherever money or keys
//! can leave it, whatever method, plugin or user asks: before it or a provider of keys signs, before a transaction is sent or
//! replaced, before private keys are given out, before a backup or an export is written, and before an import. All policies must allow. Without an
//! answer in time nothing is signed, sent or given out, and the client's error (-4) names the plugin.
//!
//! The host asks with no lock held. While a policy judges, it may read the wallet of the call ([`crate::WalletRead`]); the functions that sign, pay,
//! give keys out, change the wallet or call methods are refused in that call.
//!
//! The example `spending-guard` of the SDK implements it.

use bitcoin::{Amount, OutPoint, TxOut, Txid};

use crate::provided::provided;
use crate::wire::{Blob, wire_enum, wire_struct};

/// The service's name in manifests.
pub const POLICY: &str = "policy/1";

wire_struct! {
    /// An input of a transaction, as the host knows it.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct JudgedInput {
        /// The output that it spends.
        pub outpoint: OutPoint,
        /// That output; none where the host does not know it.
        pub output: Option<TxOut>,
        /// Whether the output is the host's own knowledge. Otherwise the caller gave it, and nothing proves it.
        pub verified: bool,
        /// Whether the wallet owns the output, or a signature of this input is asked for.
        pub own: bool,
        /// The sighash bytes of the signatures that are asked for, each once; empty for an input that is not signed now.
        pub sighashes: Blob,
    }
}

wire_enum! {
    /// Whose an output is, by the host's own judgement.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum Owner {
        /// Not the wallet's.
        Foreign = 0,
        /// An address of the wallet.
        Own = 1,
        /// The wallet's change.
        Change = 2,
    }
}

wire_struct! {
    /// An output of a transaction.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct JudgedOutput {
        /// The output.
        pub output: TxOut,
        /// Whose it is.
        pub owner: Owner,
        /// Whether each signature that is asked for commits to it, and to all inputs. Otherwise others may replace the output.
        pub committed: bool,
    }
}

wire_struct! {
    /// A transaction.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct JudgedTransaction {
        /// The transaction, without the signatures that are asked for.
        pub transaction: Blob,
        /// Its inputs.
        pub inputs: Vec<JudgedInput>,
        /// Its outputs.
        pub outputs: Vec<JudgedOutput>,
        /// The most that the wallet gives away by it, fee included, in satoshi: its own inputs less those of its own outputs to which each
        /// signature commits. None where an own input is not verified, so that there is no bound.
        pub gives: Option<Amount>,
    }
}

wire_enum! {
    /// What the wallet is asked for.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub enum Act {
        /// Signatures of a transaction's inputs.
        Sign {
            /// The transaction.
            transaction: JudgedTransaction,
        } = 0,
        /// The signature of a message.
        SignMessage {
            /// The message.
            message: String,
        } = 1,
        /// The sending of a signed transaction.
        Send {
            /// The transaction.
            transaction: JudgedTransaction,
            /// The wallet's transaction that it replaces.
            replaces: Option<Txid>,
        } = 2,
        /// Private keys, or descriptors with them.
        GiveKeys = 3,
        /// A backup, which has the private keys.
        Backup = 4,
        /// A copy without private keys (exportwatchonlywallet).
        Export = 5,
        /// An import of keys, scripts, descriptors or transactions, from any of which the wallet learns that outputs or payments are its own.
        Import = 6,
    }
}

wire_struct! {
    /// What is to be judged.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct PolicyQuery {
        /// The wallet's name.
        pub wallet: String,
        /// The user whose call asks, or `plugin:ID` for a plugin outside of calls.
        pub user: String,
        /// The method of that call; empty outside of calls.
        pub method: String,
        /// What is asked for.
        pub act: Act,
    }
}

wire_enum! {
    /// A judgement.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub enum Judgement {
        /// The policy has nothing against it.
        Allow = 0,
        /// It must not be done.
        Refuse {
            /// Why, for the client.
            reason: String,
        } = 1,
    }
}

wire_struct! {
    /// What a policy keeps about a wallet, in the wallet's backup.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct SavedPolicy {
        /// The wallet's name.
        pub wallet: String,
        /// The bytes that [`Policy::save`] gave.
        pub state: Blob,
    }
}

provided! {
    /// Judges what wallets sign, send and give out.
    pub trait Policy = POLICY {
        /// Allows an act of a wallet, or refuses it.
        fn judge(query: PolicyQuery) -> Judgement;
        /// What the policy keeps about the wallet of this name, for a backup of the wallet; none if nothing.
        fn save(wallet: String) -> Option<Blob> = None;
        /// Takes back what a backup of the wallet has. What the policy knows already still holds: the stricter of both counts.
        fn restore(saved: SavedPolicy) -> () = ();
    }
}
