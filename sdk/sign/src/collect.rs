//! Collects the valid signatures and the scripts of an input that does not verify, before signing.
//!
//! The solver drops everything else in the input, even if no new signature can be made.

use std::collections::HashSet;

use bitcoin::{Script, ScriptBuf, TxIn, TxOut, Witness};

use super::signatures::Signatures;
use super::solving::SolvingSet;
use outrigger_script::{
    Checker, ExecutionData, Flags, NoTransaction, ScriptError, SigVersion, Stack, TransactionChecker, TxContext,
    eval_script, verify_script,
};
use outrigger_service::signer::{Scheme, SignRequest};
use outrigger_standard::{ScriptKind, classify};

/// The scripts in an input, whether or not the output commits to them.
#[derive(Debug, Default)]
pub(super) struct ShownScripts {
    pub(super) redeem: Option<ScriptBuf>,
    pub(super) witness: Option<ScriptBuf>,
}

impl ShownScripts {
    /// The scripts as solving data.
    pub(super) fn into_solving(self) -> SolvingSet {
        let mut solving = SolvingSet::default();
        [self.redeem, self.witness].into_iter().flatten().for_each(|script| solving.add_script(script));
        solving
    }
}

/// The error and the scripts of an input; `None` if it verifies under the standard flags. The observer keeps its valid
/// ECDSA signatures. Taproot witnesses are replaced as a whole, so their signatures are not kept.
pub(super) fn collect(observer: &mut Observer<'_>, input: &TxIn, spent: &TxOut) -> Option<(ScriptError, ShownScripts)> {
    let error = observer.verify(&input.script_sig, &spent.script_pubkey, &input.witness).err()?;
    let mut shown = ShownScripts::default();
    if !input.script_sig.is_empty() || !input.witness.is_empty() {
        scan(input, &spent.script_pubkey, observer, &mut shown);
    }
    Some((error, shown))
}

/// Descends to the innermost script of the input. If it is a multisig, tries each push as a signature.
fn scan(input: &TxIn, script_pubkey: &Script, observer: &mut Observer<'_>, shown: &mut ShownScripts) {
    let mut pushes = script_sig_stack(&input.script_sig);
    let mut innermost = script_pubkey.to_owned();
    let mut version = SigVersion::Base;
    if matches!(classify(&innermost), ScriptKind::ScriptHash { .. })
        && let Some(redeem_script) = pop_script(&mut pushes)
    {
        shown.redeem = Some(redeem_script.clone());
        innermost = redeem_script;
    }
    let mut witness = input.witness.to_vec();
    if matches!(classify(&innermost), ScriptKind::WitnessV0ScriptHash { .. })
        && let Some(witness_script) = pop_script(&mut witness)
    {
        shown.witness = Some(witness_script.clone());
        innermost = witness_script;
        pushes = witness;
        version = SigVersion::WitnessV0;
    }
    if let ScriptKind::Multisig { keys, .. } = classify(&innermost) {
        match_signatures(&pushes, &keys, &innermost, version, observer);
    }
}

/// Tries each push against the keys after the last match, as bitcoind does. A signature out of order is lost.
fn match_signatures(
    pushes: &[Vec<u8>],
    keys: &[&[u8]],
    script: &Script,
    version: SigVersion,
    observer: &mut Observer<'_>,
) {
    let mut first = 0;
    for push in pushes {
        let found = keys.iter().enumerate().skip(first).find(|(_, key)| {
            observer.signatures.ecdsa.contains_key(**key) || observer.check_ecdsa_signature(push, key, script, version)
        });
        if let Some((position, _)) = found {
            first = position + 1;
        }
    }
}

/// The stack after a scriptSig has run, or up to the point where it fails.
fn script_sig_stack(script_sig: &Script) -> Vec<Vec<u8>> {
    let mut stack = Stack::new();
    let mut execution = ExecutionData::default();
    // The pushes before a failure count.
    let _ = eval_script(&mut stack, script_sig, Flags::STRICTENC, &mut NoTransaction, SigVersion::Base, &mut execution);
    stack.iter().map(<[u8]>::to_vec).collect()
}

/// Pops the last element as a script, unless it is empty.
fn pop_script(elements: &mut Vec<Vec<u8>>) -> Option<ScriptBuf> {
    if elements.last()?.is_empty() {
        return None;
    }
    elements.pop().map(ScriptBuf::from_bytes)
}

/// Runs the scripts of an input, and keeps the valid ECDSA signatures. It verifies no valid signature twice.
pub(super) struct Observer<'a> {
    pub(super) checker: TransactionChecker<'a>,
    pub(super) signatures: Signatures,
    /// The valid signatures: digest, public key, and signature with its hash type.
    verified: HashSet<([u8; 32], Vec<u8>, Vec<u8>)>,
}

impl<'a> Observer<'a> {
    pub(super) fn new(context: &'a TxContext<'a>, index: usize) -> Self {
        let checker = TransactionChecker::new(context, index);
        Self { checker, signatures: Signatures::default(), verified: HashSet::new() }
    }

    /// Caches the digest of a new signature.
    pub(super) fn remember(&mut self, request: &SignRequest, digest: [u8; 32]) {
        let (script_code, version) = match &request.scheme {
            Scheme::Legacy { script_code } => (script_code, SigVersion::Base),
            Scheme::SegwitV0 { script_code } => (script_code, SigVersion::WitnessV0),
            _ => return,
        };
        self.checker.remember(script_code, request.sighash.into(), version, digest);
    }

    #[cfg(test)]
    pub(super) fn verified(&self) -> usize {
        self.verified.len()
    }

    /// Verifies this scriptSig and witness for the input under the standard flags.
    pub(super) fn verify(
        &mut self,
        script_sig: &Script,
        script_pubkey: &Script,
        witness: &Witness,
    ) -> Result<(), ScriptError> {
        verify_script(script_sig, script_pubkey, witness, Flags::STANDARD, self)
    }
}

impl Checker for Observer<'_> {
    fn check_ecdsa_signature(
        &mut self,
        signature: &[u8],
        pubkey: &[u8],
        script_code: &Script,
        sig_version: SigVersion,
    ) -> bool {
        let Some(hash_type) = signature.last() else { return false };
        let Some(digest) = self.checker.ecdsa_digest(script_code, u32::from(*hash_type), sig_version) else {
            return false;
        };
        let seen = (digest, pubkey.to_vec(), signature.to_vec());
        if self.verified.contains(&seen) {
            return true;
        }
        let verified = self.checker.check_ecdsa_signature(signature, pubkey, script_code, sig_version);
        if verified {
            self.signatures.keep_verified(pubkey, signature);
            self.verified.insert(seen);
        }
        verified
    }

    fn check_schnorr_signature(
        &mut self,
        signature: &[u8],
        pubkey: &[u8; 32],
        sig_version: SigVersion,
        execution: &ExecutionData,
    ) -> Result<(), ScriptError> {
        self.checker.check_schnorr_signature(signature, pubkey, sig_version, execution)
    }

    fn check_lock_time(&mut self, lock_time: i64) -> bool {
        self.checker.check_lock_time(lock_time)
    }

    fn check_sequence(&mut self, sequence: i64) -> bool {
        self.checker.check_sequence(sequence)
    }
}
