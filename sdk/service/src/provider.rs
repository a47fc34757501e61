//! `keys-provider/1`: a plugin holds the private keys of wallets, for example in a hardware security module.
//!
//! A plugin implements this service, and the host calls it. The plugin's manifest lists the service under
//! `provides`, the host's setting `wallet.signer` names the plugin, and createwallet with `external_signer` makes a wallet for
//! it. This wallet has only the public keys of its descriptors. All methods that sign with the wallet's keys use the plugin.
//!
//! The host calls methods that no client can call: `keys-provider/1.available`, `.sign` and `.message`. The only
//! argument and the result are messages of this module.
//!
//! The host verifies each signature. Its thread waits for the answer without holding a lock, until the plugin's
//! deadline. Then the host refuses the call with -4 and the plugin's name.
//!
//! The example `hsm-signer` of the SDK implements it.

use bitcoin::TxOut;
use outrigger_values::KeyOrigin;

use crate::provided::provided;
use crate::signer::SignRequest;
use crate::wire::{Blob, wire_struct};

/// The service's name in manifests.
pub const KEYS_PROVIDER: &str = "keys-provider/1";

wire_struct! {
    /// Keys that a wallet's descriptors derive.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct KeysQuery {
        /// The wallet's name.
        pub wallet: String,
        /// The keys, each with the fingerprint of its master key and the path from there, such as `m/84h/1h/0h/0/5`.
        pub keys: Vec<KeyOrigin>,
    }
}

wire_struct! {
    /// A request for signatures of one transaction.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct ProviderBatch {
        /// The wallet's name.
        pub wallet: String,
        /// The transaction, without scriptSigs and witnesses.
        pub transaction: Blob,
        /// The outputs that it spends, in the order of its inputs; none for an unknown output.
        pub spent: Vec<Option<TxOut>>,
        /// The signatures to make.
        pub requests: Vec<ProviderRequest>,
    }
}

wire_struct! {
    /// A signature that is wanted.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct ProviderRequest {
        /// The key.
        pub key: KeyOrigin,
        /// The input, the scheme and the sighash byte. The public key is the one in the script.
        pub request: SignRequest,
        /// The digest that the host computed from the transaction.
        pub digest: [u8; 32],
    }
}

wire_struct! {
    /// A message to be signed (signmessage).
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct MessageQuery {
        /// The wallet's name.
        pub wallet: String,
        /// The key.
        pub key: KeyOrigin,
        /// The message.
        pub message: String,
        /// The digest that the host computed from the message.
        pub digest: [u8; 32],
    }
}

provided! {
    /// A plugin that holds the private keys of wallets.
    pub trait KeysProvider = KEYS_PROVIDER {
        /// For each of these keys, in order, whether the plugin has it.
        fn available(query: KeysQuery) -> Vec<bool>;
        /// Signs each request, in order; none for a key that the plugin does not have. ECDSA signatures are DER with low S, Schnorr
        /// signatures have 64 bytes, both without the sighash byte. For the taproot key path the plugin tweaks the key (BIP 341).
        fn sign(batch: ProviderBatch) -> Vec<Option<Blob>>;
        /// Signs a message. Returns the recovery id (0 to 3), then the compact signature (64 bytes); none if the plugin lacks the key.
        fn message(query: MessageQuery) -> Option<Blob>;
    }
}
