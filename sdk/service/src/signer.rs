//! `signer/1`: signatures by keys that never leave the host.
//!
//! A plugin names inputs of a transaction, or a message. The host computes the digest, so that a plugin cannot have a digest signed.
//! The SDK's module `sign` makes the requests for a whole transaction.
//!
//! The example `signer` of the SDK shows it in use.

use bitcoin::{ScriptBuf, TxOut};

use super::service;
use crate::wire::{Blob, wire_enum, wire_struct};

wire_enum! {
    /// The kind of a signature of an input.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub enum Scheme {
        /// ECDSA for a script without witness. ECDSA is with RFC 6979, low S and low R; DER, without the sighash byte.
        Legacy {
            /// The script code.
            script_code: ScriptBuf,
        } = 0,
        /// ECDSA for a witness of version 0 (BIP 143).
        SegwitV0 {
            /// The script code.
            script_code: ScriptBuf,
        } = 1,
        /// For the key path of taproot (BIP 341), by the internal key after the tweak. Schnorr signatures are by BIP 340 with no auxiliary
        /// randomness: 64 bytes, without the sighash byte.
        TaprootKey {
            /// The script tree's merkle root; none for an output without scripts (BIP 86).
            merkle_root: Option<[u8; 32]>,
        } = 2,
        /// For the key path of taproot, by the output key itself.
        TaprootOutputKey = 3,
        /// For a leaf of taproot (BIP 342), by the key itself.
        TaprootLeaf {
            /// The script.
            script: ScriptBuf,
            /// The leaf version; 0xc0 is tapscript.
            version: u8,
            /// The opcode position of the last executed OP_CODESEPARATOR; 0xffffffff if none.
            code_separator: u32,
        } = 4,
    }
}

wire_struct! {
    /// A signature that is wanted.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct SignRequest {
        /// The input's index.
        pub input: u32,
        /// The public key as it stands in the script: 33 or 65 bytes, or 32 for an x-only key (untweaked).
        pub public_key: Blob,
        /// The kind of the signature.
        pub scheme: Scheme,
        /// The sighash byte, 0 for taproot's default. Any of 256 for scripts without witness and witnesses of version 0.
        pub sighash: u8,
        /// The annex of the input's witness, as it stands there (BIP 341).
        pub annex: Option<Blob>,
    }
}

wire_struct! {
    /// Signatures that are wanted of one transaction.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct SignBatch {
        /// The transaction. The host ignores its scriptSigs and witnesses.
        pub transaction: Blob,
        /// The outputs that it spends, in the order of its inputs; none where one is not known.
        pub spent: Vec<Option<TxOut>>,
        /// The scripts whose keys may sign, and no others: those of the spent outputs, or also others that have keys in common with them.
        pub scripts: Vec<ScriptBuf>,
        /// What to sign.
        pub requests: Vec<SignRequest>,
    }
}

wire_struct! {
    /// A signature.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct Signed {
        /// The signature, as its scheme says.
        pub signature: Blob,
        /// Its signature hash.
        pub digest: [u8; 32],
    }
}

service! {
    /// Signatures by the keys of the call's wallet.
    ///
    /// [`super::wallet`] says how the host selects the wallet of a call, and which state the call sees. The host finds a key by its
    /// form in the script: a compressed key by its 33 bytes, an uncompressed one by its 65. It also finds a compressed key by its
    /// 32-byte x coordinate, for both points with that coordinate.
    ///
    /// A descriptor's key signs only for the scripts that the descriptor derives at the key's index. A key that was imported alone
    /// signs for any script.
    pub trait Signer as SignerClient = "signer/1" {
        /// Which of these public keys (33, 65 or 32 bytes) the wallet could sign with, for outputs with these scripts, in
        /// their order. A locked wallet answers as an unlocked one would, except that of a descriptor with only some of its
        /// private keys all keys count, and none of those behind a hardened wildcard.
        fn available(scripts: Vec<ScriptBuf>, public_keys: Vec<Blob>) -> Vec<bool>;
        /// Signs each request, in their order. The same request gives the same signature. A request gets none:
        ///
        /// * where the wallet has no such key for these scripts;
        /// * where the digest covers an unknown output: the input's own for a witness of version 0, any for taproot;
        /// * for taproot by a byte that BIP 341 does not have, or with SINGLE without the output of the input's index;
        /// * for a script without witness with SINGLE without that output: the signature would be valid for every transaction.
        ///
        /// An output of a transaction of the wallet need not be given. `Refused` if another amount or script is given for it, and for
        /// a transaction of more than 4,000,000 bytes; `WalletLocked`, also for no requests; `Stale` once nobody waits for the call.
        fn sign(batch: SignBatch) -> Vec<Option<Signed>>;
        /// Signs a message (signmessage) by the key of a script (P2PKH) that is given by its public key: the recovery id (0 to 3), then
        /// the 64 bytes of the compact form. None where the wallet has no such key for the script. `WalletLocked`.
        fn sign_message(script: ScriptBuf, public_key: Blob, message: String) -> Option<Blob>;
    }
}
