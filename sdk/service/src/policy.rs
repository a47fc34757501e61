//! `policy/1`: a plugin approves or refuses what a wallet signs, sends and exports.
//!
//! The setting `[[wallet.policies]]` names the plugin and its wallets. The host asks all policies of a wallet before money or keys
//! can leave it, for any method, plugin or user: before the host or a key provider signs, before it sends or replaces a
//! transaction, before it exports private keys, before it writes a backup or an export, and before an import. All policies must allow
//! it. If a policy does not answer in time, the host refuses, and the client's error (-4) names the plugin.
//!
//! The host holds no lock while it asks. During the call, a policy may read the call's wallet ([`crate::WalletRead`]). The host refuses
//! functions that sign, pay, export keys, change a wallet or call methods, and refuses them to the instance outside of calls as well.
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
        /// That output; none if the host does not know it.
        pub output: Option<TxOut>,
        /// Whether the host knows the output itself. Otherwise it is an unverified claim of the caller.
        pub verified: bool,
        /// Whether the wallet owns the output, or the caller requests a signature for this input.
        pub own: bool,
        /// The sighash bytes of the requested signatures, without duplicates; empty for an input that is not signed now.
        pub sighashes: Blob,
    }
}

wire_enum! {
    /// The owner of an output, as the host determines it.
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
        /// Its owner.
        pub owner: Owner,
        /// Whether every requested signature commits to it and to all inputs. Otherwise others may replace the output. With SIGHASH_SINGLE,
        /// others may also add outputs: a rule about recipients must refuse all of [`JudgedInput::sighashes`] but ALL and DEFAULT.
        pub committed: bool,
    }
}

wire_struct! {
    /// A transaction.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct JudgedTransaction {
        /// The transaction, without the requested signatures.
        pub transaction: Blob,
        /// Its inputs.
        pub inputs: Vec<JudgedInput>,
        /// Its outputs.
        pub outputs: Vec<JudgedOutput>,
        /// The most that the wallet can lose, in satoshi, with the fee: its inputs less its outputs to which every signature
        /// commits. None if an input of the wallet is not verified, since there is no bound then.
        pub gives: Option<Amount>,
    }
}

wire_enum! {
    /// The action to approve.
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
        /// An export of private keys, or of descriptors with them, to the plugin that answers a call. createwalletdescriptor and
        /// derivehdkey get private keys, too, even though their answers may have none.
        GiveKeys = 3,
        /// A backup, which contains the private keys.
        Backup = 4,
        /// A copy without private keys (exportwatchonlywallet).
        Export = 5,
        /// An import of keys, scripts, descriptors or transactions. It can make the wallet treat outputs or payments as its own.
        Import = 6,
    }
}

wire_struct! {
    /// A request to a policy.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct PolicyQuery {
        /// The wallet's name.
        pub wallet: String,
        /// The user of the call, or `plugin:ID` for a plugin outside of calls.
        pub user: String,
        /// The method of that call; empty outside of calls.
        pub method: String,
        /// The action.
        pub act: Act,
    }
}

wire_enum! {
    /// The answer of a policy.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub enum Judgement {
        /// The policy allows the action.
        Allow = 0,
        /// The policy refuses the action.
        Refuse {
            /// Why, for the client: at most 1,000 characters, the host cuts off the rest.
            reason: String,
        } = 1,
    }
}

wire_struct! {
    /// A policy's state for a wallet, stored in the wallet's backup.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct SavedPolicy {
        /// The wallet's name.
        pub wallet: String,
        /// The bytes from [`Policy::save`].
        pub state: Blob,
    }
}

provided! {
    /// Approves or refuses what wallets sign, send and export.
    pub trait Policy = POLICY {
        /// Allows or refuses an action of a wallet.
        fn judge(query: PolicyQuery) -> Judgement;
        /// The policy's state for the wallet with this name, for a backup of the wallet; none if it has none.
        fn save(wallet: String) -> Option<Blob> = None;
        /// Restores the state from a backup of the wallet. Where it differs from the current state, the stricter one applies. The bytes
        /// come from a client's file, which the client may have changed, so they must not allow anything.
        fn restore(saved: SavedPolicy) -> () = ();
    }
}
