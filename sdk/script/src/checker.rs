//! The questions about the spending transaction that a script may ask.
//!
//! The interpreter reaches the transaction through [`Checker`] only. A signer wraps a [`TransactionChecker`] to
//! learn which signatures verified while a script ran.

use bitcoin::hashes::{Hash, sha256};
use bitcoin::taproot::TapLeafHash;
use bitcoin::{Script, Sequence, TxIn};
use secp256k1::Message;

use super::ScriptError;
use super::crypto::{verify_ecdsa, verify_schnorr};
use super::sighash::{SighashError, TxContext};

/// Lock times from this value on are times and not heights.
const LOCKTIME_THRESHOLD: i64 = 500_000_000;
/// With this bit a sequence number is no relative lock time (BIP68).
pub(super) const SEQUENCE_LOCKTIME_DISABLE_FLAG: i64 = 1 << 31;
/// With this bit a relative lock time is in units of 512 seconds.
const SEQUENCE_LOCKTIME_TYPE_FLAG: i64 = 1 << 22;
/// The bits of a sequence number that are the relative lock time itself.
const SEQUENCE_LOCKTIME_MASK: i64 = 0xffff;
/// First transaction version whose sequence numbers are relative lock times.
const RELATIVE_LOCKTIME_VERSION: u32 = 2;

/// The rules under which a signature is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SigVersion {
    /// Scripts without a witness, including those of pay-to-script-hash.
    Base,
    /// Witness version 0 (BIP143).
    WitnessV0,
    /// The taproot key path (BIP341). No script runs under it.
    Taproot,
    /// The taproot script path with a leaf of version 0xc0 (BIP342).
    Tapscript,
}

/// What a taproot signature commits to beyond the transaction, and the weight that tapscript has left.
#[derive(Clone, Copy, Debug)]
pub struct ExecutionData {
    /// The leaf that runs, in the script path.
    pub leaf_hash: Option<TapLeafHash>,
    /// Position in opcodes of the last executed OP_CODESEPARATOR; `u32::MAX` if there was none.
    pub code_separator: u32,
    /// Hash of the annex, if the witness has one.
    pub annex: Option<sha256::Hash>,
    /// Weight units left for signatures in tapscript.
    pub validation_weight_left: i64,
}

impl Default for ExecutionData {
    fn default() -> Self {
        ExecutionData { leaf_hash: None, code_separator: u32::MAX, annex: None, validation_weight_left: 0 }
    }
}

/// Answers what a script asks about the transaction that spends it.
pub trait Checker {
    /// Whether an ECDSA signature, with its hash type as last byte, signs the transaction under `pubkey`.
    ///
    /// The encodings have been checked as far as the flags demand; both may still be any bytes.
    fn check_ecdsa_signature(
        &mut self,
        signature: &[u8],
        pubkey: &[u8],
        script_code: &Script,
        sig_version: SigVersion,
    ) -> bool;

    /// Checks a Schnorr signature of 64 bytes, or 65 with its hash type.
    ///
    /// # Errors
    ///
    /// The reason for which the signature is bad, which makes the script fail.
    fn check_schnorr_signature(
        &mut self,
        signature: &[u8],
        pubkey: &[u8; 32],
        sig_version: SigVersion,
        execution: &ExecutionData,
    ) -> Result<(), ScriptError>;

    /// Whether the transaction's lock time satisfies the operand of OP_CHECKLOCKTIMEVERIFY (BIP65).
    fn check_lock_time(&mut self, lock_time: i64) -> bool;

    /// Whether the input's sequence satisfies the operand of OP_CHECKSEQUENCEVERIFY (BIP112).
    fn check_sequence(&mut self, sequence: i64) -> bool;
}

impl<C: Checker + ?Sized> Checker for &mut C {
    fn check_ecdsa_signature(
        &mut self,
        signature: &[u8],
        pubkey: &[u8],
        script_code: &Script,
        sig_version: SigVersion,
    ) -> bool {
        (**self).check_ecdsa_signature(signature, pubkey, script_code, sig_version)
    }

    fn check_schnorr_signature(
        &mut self,
        signature: &[u8],
        pubkey: &[u8; 32],
        sig_version: SigVersion,
        execution: &ExecutionData,
    ) -> Result<(), ScriptError> {
        (**self).check_schnorr_signature(signature, pubkey, sig_version, execution)
    }

    fn check_lock_time(&mut self, lock_time: i64) -> bool {
        (**self).check_lock_time(lock_time)
    }

    fn check_sequence(&mut self, sequence: i64) -> bool {
        (**self).check_sequence(sequence)
    }
}

/// A checker without a transaction: every answer is no. For scripts of which only the stack is of interest.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoTransaction;

impl Checker for NoTransaction {
    fn check_ecdsa_signature(&mut self, _: &[u8], _: &[u8], _: &Script, _: SigVersion) -> bool {
        false
    }

    fn check_schnorr_signature(
        &mut self,
        _: &[u8],
        _: &[u8; 32],
        _: SigVersion,
        _: &ExecutionData,
    ) -> Result<(), ScriptError> {
        Err(ScriptError::UnknownError)
    }

    fn check_lock_time(&mut self, _: i64) -> bool {
        false
    }

    fn check_sequence(&mut self, _: i64) -> bool {
        false
    }
}

/// Checks against one input of a real transaction.
#[derive(Debug)]
pub struct TransactionChecker<'a> {
    context: &'a TxContext<'a>,
    input_index: usize,
    last: Option<LastSighash>,
}

/// The signature hash computed last: multisig asks for the same one once per key.
#[derive(Debug)]
struct LastSighash {
    sig_version: SigVersion,
    hash_type: u32,
    script_code: Vec<u8>,
    message: Message,
}

impl<'a> TransactionChecker<'a> {
    /// A checker for the input of this index. If there is no such input, every answer is no.
    pub const fn new(context: &'a TxContext<'a>, input_index: usize) -> TransactionChecker<'a> {
        TransactionChecker { context, input_index, last: None }
    }

    fn input(&self) -> Option<&'a TxIn> {
        self.context.tx().input.get(self.input_index)
    }

    /// What an ECDSA signature of this type signs; none if the spent amount is not known. The one computed last is kept:
    /// who signs, and then has the script verify the signature, has it hashed once.
    pub fn ecdsa_digest(&mut self, script_code: &Script, hash_type: u32, sig_version: SigVersion) -> Option<[u8; 32]> {
        self.ecdsa_message(script_code, hash_type, sig_version).map(|message| *message.as_ref())
    }

    /// What a taproot signature of this type signs, without an annex; in a leaf where one is given, with the position of the
    /// last executed OP_CODESEPARATOR. None if an output that it covers is not known.
    pub fn taproot_digest(&self, hash_type: u8, leaf: Option<(TapLeafHash, u32)>) -> Option<[u8; 32]> {
        let sighash = self.context.taproot_sighash(self.input_index, hash_type, None, leaf).ok()?;
        Some(sighash.to_byte_array())
    }

    /// The message that an ECDSA signature of this type signs; `None` if the spent amount is not known.
    fn ecdsa_message(&mut self, script_code: &Script, hash_type: u32, sig_version: SigVersion) -> Option<Message> {
        if let Some(last) = &self.last
            && (last.sig_version, last.hash_type) == (sig_version, hash_type)
            && last.script_code == script_code.as_bytes()
        {
            return Some(last.message);
        }
        let message = match sig_version {
            SigVersion::Base => {
                let sighash = self.context.legacy_sighash(self.input_index, script_code, hash_type).ok()?;
                Message::from_digest(sighash.to_byte_array())
            }
            SigVersion::WitnessV0 => {
                let amount = self.context.spent_output(self.input_index)?.value;
                let sighash = self.context.segwit_v0_sighash(self.input_index, script_code, amount, hash_type).ok()?;
                Message::from_digest(sighash.to_byte_array())
            }
            SigVersion::Taproot | SigVersion::Tapscript => return None,
        };
        let mut kept = self.last.take().map(|last| last.script_code).unwrap_or_default();
        kept.clear();
        kept.extend_from_slice(script_code.as_bytes());
        self.last = Some(LastSighash { sig_version, hash_type, script_code: kept, message });
        Some(message)
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
        let message = self.ecdsa_message(script_code, u32::from(*hash_type), sig_version);
        message.is_some_and(|message| verify_ecdsa(&message, signature, pubkey))
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
                // Type 0 is written by leaving the byte out.
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
            .map_err(|_: SighashError| ScriptError::SchnorrSigHashtype)?;
        let message = Message::from_digest(sighash.to_byte_array());
        if verify_schnorr(&message, signature, pubkey) { Ok(()) } else { Err(ScriptError::SchnorrSig) }
    }

    fn check_lock_time(&mut self, lock_time: i64) -> bool {
        let tx_lock_time = i64::from(self.context.tx().lock_time.to_consensus_u32());
        let same_unit = (tx_lock_time < LOCKTIME_THRESHOLD) == (lock_time < LOCKTIME_THRESHOLD);
        // A final input would let the transaction ignore its lock time.
        let enforced = self.input().is_some_and(|input| input.sequence != Sequence::MAX);
        same_unit && lock_time <= tx_lock_time && enforced
    }

    fn check_sequence(&mut self, sequence: i64) -> bool {
        let Some(input) = self.input() else {
            return false;
        };
        let tx_sequence = i64::from(input.sequence.to_consensus_u32());
        // The version counts as unsigned here.
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
