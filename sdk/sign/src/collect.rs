//! What an input that comes with something in it brings along: everything, where it verifies; otherwise signatures
//! that verify and the scripts it shows.
//!
//! Anything else in it is lost, also where no new signature can be made.

use std::collections::HashSet;

use bitcoin::{Script, ScriptBuf, TxIn, TxOut, Witness};

use super::signatures::Signatures;
use super::solving::SolvingSet;
use outrigger_script::{
    Checker, ExecutionData, Flags, NoTransaction, ScriptError, SigVersion, Stack, TransactionChecker, TxContext,
    eval_script, verify_script,
};
use outrigger_standard::{ScriptKind, classify};

/// What was found in an input that does not verify.
#[derive(Debug)]
pub(super) struct Carried {
    /// Why it does not.
    pub(super) error: ScriptError,
    /// The scripts it shows, whether or not they are those of the output.
    pub(super) shown: ShownScripts,
}

/// The scripts that an input shows.
#[derive(Debug, Default)]
pub(super) struct ShownScripts {
    /// The redeem script.
    pub(super) redeem: Option<ScriptBuf>,
    /// The witness script.
    pub(super) witness: Option<ScriptBuf>,
}

impl ShownScripts {
    /// They, for solving.
    pub(super) fn into_solving(self) -> SolvingSet {
        let mut solving = SolvingSet::default();
        [self.redeem, self.witness].into_iter().flatten().for_each(|script| solving.add_script(script));
        solving
    }
}

/// Looks at an input. None where it verifies under the standard flags as it is. Its ECDSA signatures that verify stay with
/// the observer; taproot witnesses are made whole or not at all, so theirs are not kept.
pub(super) fn collect(observer: &mut Observer<'_>, input: &TxIn, spent: &TxOut) -> Option<Carried> {
    let error = observer.verify(&input.script_sig, &spent.script_pubkey, &input.witness).err()?;
    let mut shown = ShownScripts::default();
    if !input.script_sig.is_empty() || !input.witness.is_empty() {
        scan(input, &spent.script_pubkey, observer, &mut shown);
    }
    Some(Carried { error, shown })
}

/// Follows the input to the innermost script it shows; where that is a multisig, tries each push as a signature.
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

/// Goes through the pushes from left to right and only forward through the keys, so a signature that comes before one
/// of an earlier key is found and the one after it is not.
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
            observer.signatures.has_ecdsa(key) || observer.check_ecdsa_signature(push, key, script, version)
        });
        if let Some((position, _)) = found {
            first = position + 1;
        }
    }
}

/// What a scriptSig leaves on the stack; up to where it fails, if it fails.
fn script_sig_stack(script_sig: &Script) -> Vec<Vec<u8>> {
    let mut stack = Stack::new();
    let mut execution = ExecutionData::default();
    // A failure is no matter: what was pushed before it counts.
    let _ = eval_script(&mut stack, script_sig, Flags::STRICTENC, &mut NoTransaction, SigVersion::Base, &mut execution);
    stack.iter().map(<[u8]>::to_vec).collect()
}

/// Takes the last element off as a script. An empty one stays.
fn pop_script(elements: &mut Vec<Vec<u8>>) -> Option<ScriptBuf> {
    if elements.last()?.is_empty() {
        return None;
    }
    elements.pop().map(ScriptBuf::from_bytes)
}

/// Runs the scripts of one input, and keeps the ECDSA signatures that verify while they run. None of these is verified
/// twice, however often it is come across.
pub(super) struct Observer<'a> {
    /// Answers the scripts.
    pub(super) checker: TransactionChecker<'a>,
    /// The signatures there are.
    pub(super) signatures: Signatures,
    /// Those that verified: digest, public key, signature with its type byte.
    verified: HashSet<([u8; 32], Vec<u8>, Vec<u8>)>,
}

impl<'a> Observer<'a> {
    /// The observer of the input of this index.
    pub(super) fn new(context: &'a TxContext<'a>, index: usize) -> Self {
        let checker = TransactionChecker::new(context, index);
        Self { checker, signatures: Signatures::default(), verified: HashSet::new() }
    }

    /// How many signatures were verified and found good.
    #[cfg(test)]
    pub(super) fn verified(&self) -> usize {
        self.verified.len()
    }

    /// Verifies contents of the input under the standard flags.
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
