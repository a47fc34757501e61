//! `signer/1`: signatures by keys that never leave the host.
//!
//! A plugin computes what is to be signed (the SDK's module `script` has the signature hashes) and the host signs it. The SDK's
//! module `sign` does both for a whole transaction.
//!
//! The example `signer` of the SDK shows it in use.

use bitcoin::ScriptBuf;

use super::service;
use crate::wire::{Blob, wire_enum, wire_struct};

wire_enum! {
    /// The kind of a signature.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub enum Scheme {
        /// ECDSA with RFC 6979, low S and low R; DER, without the sighash byte.
        Ecdsa = 0,
        /// BIP 340 with no auxiliary randomness, by the key itself (a tapscript leaf); 64 bytes.
        Schnorr = 1,
        /// BIP 340 by the key after the BIP 341 tweak (a key path); 64 bytes.
        SchnorrTweaked {
            /// The script tree's merkle root; none for an output without scripts (BIP 86).
            merkle_root: Option<[u8; 32]>,
        } = 2,
        /// ECDSA with RFC 6979 and low S, of which the public key can be recovered: the recovery id (0 to 3), then the 64 bytes of
        /// the compact form. Messages are signed so.
        #[since(1)]
        EcdsaRecoverable = 3,
    }
}

wire_struct! {
    /// A digest to sign.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct SignRequest {
        /// The public key as it stands in the script: 33 or 65 bytes, or 32 for an x-only key (untweaked).
        pub public_key: Blob,
        /// The signature hash.
        pub digest: [u8; 32],
        /// The kind of the signature.
        pub scheme: Scheme,
    }
}

wire_struct! {
    /// Digests of one transaction.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct SignBatch {
        /// The scriptPubKeys the transaction spends: the wallet's keys for these may sign, and no others.
        pub scripts: Vec<ScriptBuf>,
        /// What to sign.
        pub requests: Vec<SignRequest>,
    }
}

service! {
    /// Signatures by the keys of the call's wallet.
    ///
    /// Which wallet that is, and what a call sees of it, is as with [`super::wallet`]. Both functions fail with `NotGranted` where the plugin may not use the
    /// wallet's keys. Public keys are given as they stand in scripts, and are found by that form alone: a compressed key by
    /// its 33 bytes, an uncompressed one by its 65, and a compressed one also by its 32-byte x coordinate, whichever of the
    /// two points with it is the wallet's. Any other bytes are nobody's key.
    ///
    /// A descriptor's keys sign for the scripts that it derives, each for those of its own index; keys that were imported by
    /// themselves sign for any script.
    pub trait Signer as SignerClient = "signer/1" {
        /// Which of these public keys (33, 65 or 32 bytes) the wallet could sign with, for outputs with these scripts, in
        /// their order. A locked wallet answers as an unlocked one would, except that of a descriptor with only some of its
        /// private keys all keys count, and none of those behind a hardened wildcard.
        fn available(scripts: Vec<ScriptBuf>, public_keys: Vec<Blob>) -> Vec<bool>;
        /// Signs each request, in their order; none where the wallet has no such key for these scripts. The same request
        /// gives the same signature. Fails whole with `WalletLocked` when the wallet is locked, also for no requests.
        fn sign_many(batch: SignBatch) -> Vec<Option<Blob>>;
    }
}
