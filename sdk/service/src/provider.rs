//! `keys-provider/1`: keys of wallets that a plugin has, for example in a hardware security module.
//!
//! A plugin implements this service, and the host calls it. The plugin's manifest lists the service under
//! `provides`, the host's setting `wallet.signer` names the plugin, and createwallet with `external_signer` makes a wallet for
//! it. Such a wallet has the descriptors' public keys alone. All methods that sign with the wallet's keys use the plugin.
//!
//! The host asks by calls of methods that no client can call: `keys-provider/1.available`, `.sign` and `.message`. The only
//! argument and the result are messages of this module as JSON ([`crate::json`]).
//!
//! The host verifies each signature. It asks from a thread that waits, holds no lock meanwhile, and gives up at the plugin's
//! deadline. The call is then refused with -4 and the plugin's name.
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
    /// Signatures that are wanted of one transaction.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct ProviderBatch {
        /// The wallet's name.
        pub wallet: String,
        /// The transaction, without scriptSigs and witnesses.
        pub transaction: Blob,
        /// The outputs that it spends, in the order of its inputs; none where one is not known.
        pub spent: Vec<Option<TxOut>>,
        /// What to sign.
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
        /// The digest, as the host computed it from the transaction.
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
        /// The digest, as the host computed it from the message.
        pub digest: [u8; 32],
    }
}

provided! {
    /// Keys of wallets that a plugin has.
    pub trait KeysProvider = KEYS_PROVIDER {
        /// Which of these keys the plugin has, in their order.
        fn available(query: KeysQuery) -> Vec<bool>;
        /// Signs each request, in their order; none for a key that the plugin does not have. ECDSA signatures are DER with low S, Schnorr
        /// signatures have 64 bytes, both without the sighash byte. For a key path of taproot the key is tweaked (BIP 341).
        fn sign(batch: ProviderBatch) -> Vec<Option<Blob>>;
        /// Signs a message: the recovery id (0 to 3), then the 64 bytes of the compact form; none without the key.
        fn message(query: MessageQuery) -> Option<Blob>;
    }
}
