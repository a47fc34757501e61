//! The interface between the interpreter and the spending transaction.
//!
//! A signer wraps a [`TransactionChecker`] to observe which signatures verify while a script runs.

use bitcoin::hashes::{Hash, sha256};
use bitcoin::taproot::TapLeafHash;
use bitcoin::{Script, Sequence, TxIn};
use secp256k1::Message;

use super::ScriptError;
use super::crypto::{verify_ecdsa, verify_schnorr};
use super::sighash::TxContext;

/// Locktimes below are heights; from here on they are Unix times.
const LOCKTIME_THRESHOLD: i64 = 500_000_000;
/// The sequence bit that disables the relative locktime (BIP68).
pub(super) const SEQUENCE_LOCKTIME_DISABLE_FLAG: i64 = 1 << 31;
/// The sequence bit for relative locktimes in units of 512 seconds, not blocks (BIP68).
const SEQUENCE_LOCKTIME_TYPE_FLAG: i64 = 1 << 22;
/// The sequence bits of the relative locktime's value (BIP68).
const SEQUENCE_LOCKTIME_MASK: i64 = 0xffff;
/// The least transaction version with relative locktimes (BIP68).
const RELATIVE_LOCKTIME_VERSION: u32 = 2;

/// The version of the signature rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SigVersion {
    /// Scripts without a witness, P2SH included.
    Base,
    /// Witness version 0 (BIP143).
    WitnessV0,
    /// The taproot key path (BIP341), which runs no script.
    Taproot,
    /// The taproot script path, leaf version 0xc0 (BIP342).
    Tapscript,
}

/// The data of a taproot signature hash beyond the transaction, and the tapscript signature budget.
#[derive(Clone, Copy, Debug)]
pub struct ExecutionData {
    /// The executed leaf; `None` on the key path.
    pub leaf_hash: Option<TapLeafHash>,
    /// The opcode position of the last executed OP_CODESEPARATOR; `u32::MAX` if none.
    pub code_separator: u32,
    /// The hash of the annex; `None` without one.
    pub annex: Option<sha256::Hash>,
    /// The weight units left for signature checks in tapscript (BIP342).
    pub validation_weight_left: i64,
}

impl Default for ExecutionData {
    fn default() -> Self {
        ExecutionData { leaf_hash: None, code_separator: u32::MAX, annex: None, validation_weight_left: 0 }
    }
}

/// The checks of a script that depend on the spending transaction. Each default implementation fails.
pub trait Checker {
    /// Whether an ECDSA signature with its hash type is valid for the public key. Both may be arbitrary bytes: the
    /// interpreter has checked only the encodings that the flags require.
    fn check_ecdsa_signature(
        &mut self,
        _signature: &[u8],
        _pubkey: &[u8],
        _script_code: &Script,
        _sig_version: SigVersion,
    ) -> bool {
        false
    }

    /// Checks a Schnorr signature: 64 bytes, or 65 with a hash type. The script fails with the returned error.
    fn check_schnorr_signature(
        &mut self,
        _signature: &[u8],
        _pubkey: &[u8; 32],
        _sig_version: SigVersion,
        _execution: &ExecutionData,
    ) -> Result<(), ScriptError> {
        Err(ScriptError::UnknownError)
    }

    /// Whether the transaction's locktime satisfies the operand of OP_CHECKLOCKTIMEVERIFY (BIP65).
    fn check_lock_time(&mut self, _lock_time: i64) -> bool {
        false
    }

    /// Whether the input's sequence satisfies the operand of OP_CHECKSEQUENCEVERIFY (BIP112).
    fn check_sequence(&mut self, _sequence: i64) -> bool {
        false
    }
}

/// A checker without a transaction. Every check fails. Use it to evaluate scripts only for their stack.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoTransaction;

impl Checker for NoTransaction {}

/// Checks scripts against an input of a transaction.
#[derive(Debug)]
pub struct TransactionChecker<'a> {
    context: &'a TxContext<'a>,
    input_index: usize,
    last: Option<LastSighash>,
}

/// The last signature hash. OP_CHECKMULTISIG uses the same one for each key.
#[derive(Debug)]
struct LastSighash {
    sig_version: SigVersion,
    hash_type: u32,
    script_code: Vec<u8>,
    digest: [u8; 32],
}

impl<'a> TransactionChecker<'a> {
    /// A checker for this input. If the input does not exist, every check fails.
    pub const fn new(context: &'a TxContext<'a>, input_index: usize) -> TransactionChecker<'a> {
        TransactionChecker { context, input_index, last: None }
    }

    fn input(&self) -> Option<&'a TxIn> {
        self.context.tx().input.get(self.input_index)
    }

    /// The digest for an ECDSA signature; `None` if it depends on an unknown output. Caches the last digest, so that
    /// verifying a new signature does not hash again.
    pub fn ecdsa_digest(&mut self, script_code: &Script, hash_type: u32, sig_version: SigVersion) -> Option<[u8; 32]> {
        if let Some(last) = &self.last
            && (last.sig_version, last.hash_type) == (sig_version, hash_type)
            && last.script_code == script_code.as_bytes()
        {
            return Some(last.digest);
        }
        let digest = match sig_version {
            SigVersion::Base => {
                let sighash = self.context.legacy_sighash(self.input_index, script_code, hash_type)?;
                sighash.to_byte_array()
            }
            SigVersion::WitnessV0 => {
                let amount = self.context.spent_output(self.input_index)?.value;
                let sighash = self.context.segwit_v0_sighash(self.input_index, script_code, amount, hash_type)?;
                sighash.to_byte_array()
            }
            SigVersion::Taproot | SigVersion::Tapscript => return None,
        };
        let mut kept = self.last.take().map(|last| last.script_code).unwrap_or_default();
        kept.clear();
        kept.extend_from_slice(script_code.as_bytes());
        self.last = Some(LastSighash { sig_version, hash_type, script_code: kept, digest });
        Some(digest)
    }

    /// Caches a digest that the caller has computed for an ECDSA signature, so that verifying the signature does not
    /// hash again.
    pub fn remember(&mut self, script_code: &Script, hash_type: u32, sig_version: SigVersion, digest: [u8; 32]) {
        self.last = Some(LastSighash { sig_version, hash_type, script_code: script_code.to_bytes(), digest });
    }
}

impl Checker for TransactionChecker<'_> {
    fn check_ecdsa_signature(
        &mut self,
        signature: &[u8],
        pubkey: &[u8],
        script_code: &Script,
        sig_version: SigVersion,
    ) -> bool {
        let Some((hash_type, signature)) = signature.split_last() else {
            return false;
        };
        let digest = self.ecdsa_digest(script_code, u32::from(*hash_type), sig_version);
        digest.is_some_and(|digest| verify_ecdsa(&Message::from_digest(digest), signature, pubkey))
    }

    fn check_schnorr_signature(
        &mut self,
        signature: &[u8],
        pubkey: &[u8; 32],
        sig_version: SigVersion,
        execution: &ExecutionData,
    ) -> Result<(), ScriptError> {
        let (signature, hash_type) = match signature {
            [signature @ .., hash_type] if signature.len() == 64 => match hash_type {
                // Type 0 must be encoded by omitting the byte (BIP341).
                0 => return Err(ScriptError::SchnorrSigHashtype),
                _ => (signature, *hash_type),
            },
            signature if signature.len() == 64 => (signature, 0),
            _ => return Err(ScriptError::SchnorrSigSize),
        };
        let leaf = match sig_version {
            SigVersion::Tapscript => {
                let leaf_hash = execution.leaf_hash.ok_or(ScriptError::UnknownError)?;
                Some((leaf_hash, execution.code_separator))
            }
            _ => None,
        };
        let sighash = self
            .context
            .taproot_sighash(self.input_index, hash_type, execution.annex, leaf)
            .ok_or(ScriptError::SchnorrSigHashtype)?;
        let message = Message::from_digest(sighash.to_byte_array());
        if verify_schnorr(&message, signature, pubkey) { Ok(()) } else { Err(ScriptError::SchnorrSig) }
    }

    fn check_lock_time(&mut self, lock_time: i64) -> bool {
        let tx_lock_time = i64::from(self.context.tx().lock_time.to_consensus_u32());
        let same_unit = (tx_lock_time < LOCKTIME_THRESHOLD) == (lock_time < LOCKTIME_THRESHOLD);
        // A final input would disable the transaction's locktime.
        let enforced = self.input().is_some_and(|input| input.sequence != Sequence::MAX);
        same_unit && lock_time <= tx_lock_time && enforced
    }

    fn check_sequence(&mut self, sequence: i64) -> bool {
        let Some(input) = self.input() else {
            return false;
        };
        let tx_sequence = i64::from(input.sequence.to_consensus_u32());
        // BIP68 compares the version as unsigned.
        if (self.context.tx().version.0 as u32) < RELATIVE_LOCKTIME_VERSION
            || tx_sequence & SEQUENCE_LOCKTIME_DISABLE_FLAG != 0
        {
            return false;
        }
        let mask = SEQUENCE_LOCKTIME_TYPE_FLAG | SEQUENCE_LOCKTIME_MASK;
        let (wanted, actual) = (sequence & mask, tx_sequence & mask);
        let same_unit = (wanted < SEQUENCE_LOCKTIME_TYPE_FLAG) == (actual < SEQUENCE_LOCKTIME_TYPE_FLAG);
        same_unit && wanted <= actual
    }
}
