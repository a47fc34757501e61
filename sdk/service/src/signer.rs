//! `signer/1`: signatures by keys that stay in the host.
//!
//! A plugin names inputs of a transaction, or a message. The host computes the digest, so that a plugin cannot choose it.
//! The SDK's module `sign` makes the requests for a whole transaction.
//!
//! The example `signer` of the SDK shows it in use.

use bitcoin::{Amount, ScriptBuf, TxOut};

use super::service;
use crate::wire::{Blob, wire_enum, wire_struct};

/// The amount of a spent output of which only the script is known, as in bitcoind. The host takes the amounts of outputs of the wallet's
/// transactions from there.
pub const UNKNOWN_AMOUNT: Amount = Amount::MAX_MONEY;

/// The most bytes of a message to sign: as many as bitcoind reads of a request.
pub const MAX_MESSAGE: usize = 32 << 20;

wire_enum! {
    /// The kind of a signature of an input.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub enum Scheme {
        /// ECDSA for a script without witness. ECDSA signatures use RFC 6979, low S and low R; they are DER without the sighash byte.
        Legacy {
            /// The script code.
            script_code: ScriptBuf,
        } = 0,
        /// ECDSA for a witness of version 0 (BIP 143).
        SegwitV0 {
            /// The script code.
            script_code: ScriptBuf,
        } = 1,
        /// For a taproot key path (BIP 341), by the tweaked internal key. Schnorr signatures follow BIP 340 with no auxiliary randomness:
        /// 64 bytes, without the sighash byte.
        TaprootKey {
            /// The script tree's merkle root; none for an output without scripts (BIP 86).
            merkle_root: Option<[u8; 32]>,
        } = 2,
        /// For a taproot key path, by the untweaked output key.
        TaprootOutputKey = 3,
        /// For a taproot leaf (BIP 342), by the untweaked key.
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
        /// The public key as in the script: 33 or 65 bytes, or 32 for an untweaked x-only key.
        pub public_key: Blob,
        /// The kind of the signature.
        pub scheme: Scheme,
        /// The sighash byte, 0 for taproot's default. Any value for scripts without witness and witnesses of version 0.
        pub sighash: u8,
        /// The annex of the input's witness, unchanged (BIP 341).
        pub annex: Option<Blob>,
    }
}

wire_struct! {
    /// Requests for signatures of one transaction.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct SignBatch {
        /// The transaction. The host ignores its scriptSigs and witnesses.
        pub transaction: Blob,
        /// The outputs that it spends, in the order of its inputs; none for an unknown output. If only the script is known, the amount
        /// is [`UNKNOWN_AMOUNT`].
        pub spent: Vec<Option<TxOut>>,
        /// The scripts whose keys may sign: those of the spent outputs, and possibly others with the same keys.
        pub scripts: Vec<ScriptBuf>,
        /// The requested signatures.
        pub requests: Vec<SignRequest>,
    }
}

wire_struct! {
    /// A signature.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct Signed {
        /// The signature, in the form of its scheme.
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
    pub trait Signer = "signer/1" {
        /// Whether the wallet could sign with each of these public keys (33, 65 or 32 bytes), in their order, for outputs with these
        /// scripts. A locked wallet answers as if unlocked, with two exceptions: for a descriptor with only some private keys, all its
        /// keys count; keys behind a hardened wildcard do not.
        fn available(scripts: Vec<ScriptBuf>, public_keys: Vec<Blob>) -> Vec<bool>;
        /// Signs the requests, in their order. The same request gives the same signature. There is no signature:
        ///
        /// * if the wallet has no such key for these scripts;
        /// * if the digest covers an unknown output: the input's own for a witness of version 0, any for taproot;
        /// * for taproot with a sighash byte that BIP 341 does not define, or with SINGLE and no output at the input's index;
        /// * for a script without witness with SINGLE and no such output: the signature would be valid for every transaction.
        ///
        /// Outputs of the wallet's transactions may be omitted. `Refused` if a given one has another amount or script, and for a
        /// transaction of more than 4,000,000 bytes; `WalletLocked`, also for no requests; `Stale` once nobody waits for the call.
        fn sign(batch: SignBatch) -> Vec<Option<Signed>>;
        /// Signs a message (signmessage) with the key of a P2PKH script that this public key belongs to. Returns the recovery id (0 to
        /// 3), then the 64 bytes of the compact form. None if the wallet has no such key for the script. `WalletLocked`. `Refused` for
        /// a message of more than [`MAX_MESSAGE`] bytes.
        fn sign_message(script: ScriptBuf, public_key: Blob, message: String) -> Option<Blob>;
    }
}
