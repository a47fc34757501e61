//! Signs inputs of PSBTs (BIP 174), whose signatures are kept apart from scriptSig and witness until they suffice.
//!
//! The outcome includes the solver's findings: the requested keys, the scripts, and the missing data. Methods that update,
//! sign, finalise and analyse PSBTs use them.

use std::collections::HashSet;

use bitcoin::hashes::hash160;
use bitcoin::{Script, ScriptBuf, Transaction, TxIn, TxOut, Witness};

use super::SignError;
use super::digest::SignatureKind;
use super::findings::SolverFindings;
use super::job::{Job, check_spent, solve};
use super::keys::KeySource;
use super::produce::Production;
use super::sighash::Sighash;
use super::signatures::{AskedKey, MissingSignature, PartialSignatures, Signatures};
use super::solving::SolvingSet;
use outrigger_script::{Checker, ExecutionData, Flags, ScriptError, SigVersion, TxContext, verify_script};
use outrigger_service::signer::{SignRequest, Signed};
use outrigger_service::wire::Blob;

/// An input to sign.
#[derive(Clone, Default, Debug)]
pub struct PartialInput<'k> {
    /// The index in the transaction.
    pub index: usize,
    /// The solving data of the PSBT's input.
    pub own: SolvingSet,
    /// Further solving data, for example the wallet's.
    pub known: Option<&'k SolvingSet>,
    /// The public keys that may sign: 33 or 65 bytes, 32 for taproot. `None`: any.
    pub signers: Option<&'k HashSet<Vec<u8>>>,
    /// The signatures that the input has.
    pub signatures: PartialSignatures,
}

/// The outcome for an input, or the solver's findings for an output.
#[derive(Clone, Default, Debug)]
pub struct PartialOutcome {
    /// The input's index.
    pub index: usize,
    /// The signatures, new ones included.
    pub signatures: PartialSignatures,
    /// The scriptSig and the witness, if they verify.
    pub complete: Option<(ScriptBuf, Witness)>,
    /// The solver's findings.
    pub met: SolverFindings,
    /// The keys of missing signatures, in the order of the solver's requests.
    pub asked: Vec<AskedKey>,
    /// The HASH160 of keys whose ECDSA signatures are still missing after signing.
    pub missing_signatures: Vec<hash160::Hash>,
}

/// A transaction with inputs to sign.
pub struct PartialTransaction<'a> {
    /// The unsigned transaction.
    pub tx: &'a Transaction,
    /// The outputs that it spends, in the order of its inputs; `None` if unknown.
    pub spent: &'a [Option<TxOut>],
    /// Whether the caller still waits for the result.
    pub wanted: &'a (dyn Fn() -> bool + Sync),
}

/// The solver's findings for outputs with these scripts and solving data, as if the first input of `tx` spent them.
pub fn inspect_scripts<'a>(
    tx: &Transaction,
    scripts: impl Iterator<Item = (&'a Script, SolvingSet, Option<&'a SolvingSet>)>,
) -> Vec<PartialOutcome> {
    let context = TxContext::new(tx, Vec::<Option<TxOut>>::new());
    let (original, nothing) = (TxIn::default(), SolvingSet::default());
    let inspect = |(script, own, known): (&Script, SolvingSet, Option<&SolvingSet>)| {
        let mut job = Job::new(&context, 0, &original, known.unwrap_or(&nothing));
        (job.script, job.own) = (Some(script), own);
        job.produce();
        let missing = job.observer.signatures.take_wanted();
        let asked = missing.iter().filter_map(MissingSignature::asked).collect();
        PartialOutcome { met: job.met, asked, ..PartialOutcome::default() }
    };
    scripts.map(inspect).collect()
}

fn finish(mut job: Job<'_>, fake: bool) -> (usize, PartialOutcome) {
    let production = job.produce();
    let missing = job.observer.signatures.take_wanted();
    let signatures = std::mem::take(&mut job.observer.signatures).into_partial();
    let size = production.as_ref().map_or(0, Production::size);
    let complete = production.zip(job.script).filter(|(Production { script_sig, witness }, script)| {
        let verify =
            |checker: &mut dyn Checker| verify_script(script_sig, script, witness, Flags::STANDARD, checker).is_ok();
        if fake { verify(&mut AnySignature) } else { verify(&mut job.observer.checker) }
    });
    if !signatures.key_path.is_empty() {
        // With a key path signature, bitcoind does not look at leaves.
        job.asked.retain(|asked| !matches!(asked, AskedKey::Taproot(_, Some(_))));
    }
    let outcome = PartialOutcome {
        index: job.index,
        signatures,
        complete: complete.map(|(Production { script_sig, witness }, _)| (script_sig, witness)),
        met: job.met,
        asked: job.asked,
        missing_signatures: missing.iter().filter_map(MissingSignature::ecdsa_key).collect(),
    };
    (size, outcome)
}

impl PartialTransaction<'_> {
    /// Signs inputs, and completes inputs with sufficient signatures. Fails as
    /// [`sign_transaction`](super::sign_transaction).
    pub fn sign(
        &self,
        inputs: Vec<PartialInput<'_>>,
        keys: &dyn KeySource,
        sighash: Sighash,
    ) -> Result<Vec<PartialOutcome>, SignError> {
        self.solve(inputs, keys, sighash, false)
    }

    /// Completes inputs with placeholder signatures to estimate sizes. Fails as [`PartialTransaction::sign`].
    pub fn estimate(&self, inputs: Vec<PartialInput<'_>>) -> Result<Vec<PartialOutcome>, SignError> {
        self.solve(inputs, &AnyKey, Sighash::DEFAULT, true)
    }

    fn solve<'k>(
        &self,
        inputs: Vec<PartialInput<'k>>,
        keys: &dyn KeySource,
        sighash: Sighash,
        fake: bool,
    ) -> Result<Vec<PartialOutcome>, SignError> {
        let Self { tx, spent, wanted } = *self;
        check_spent(spent)?;
        let context = TxContext::new(tx, spent);
        let (original, nothing) = (TxIn::default(), SolvingSet::default());
        let begin = |input: PartialInput<'k>| {
            let mut job = Job::new(&context, input.index, &original, input.known.unwrap_or(&nothing));
            job.script = context.spent_output(input.index).map(|spent| &*spent.script_pubkey);
            (job.own, job.signers) = (input.own, input.signers);
            job.observer.signatures = Signatures::of_partial(input.signatures);
            job
        };
        solve(inputs, begin, |job| finish(job, fake), keys, sighash, wanted)
    }
}

/// A key source that returns placeholder signatures for every key.
struct AnyKey;

impl KeySource for AnyKey {
    fn available(&self, public_keys: Vec<Blob>) -> outrigger_service::Result<Vec<bool>> {
        Ok(vec![true; public_keys.len()])
    }

    fn sign(&self, _: &TxContext<'_>, requests: Vec<SignRequest>) -> outrigger_service::Result<Vec<Option<Signed>>> {
        let sign = |request: SignRequest| match SignatureKind::from(&request) {
            // Two integers of 32 bytes, the usual length with a low R.
            SignatureKind::Ecdsa => {
                let integer = [&[2, 32, 1][..], &[0; 31]].concat();
                [&[0x30, 68][..], &integer, &integer].concat()
            }
            _ => vec![0; 64],
        };
        let signed = |request| Some(Signed { signature: Blob(sign(request)), digest: [0; 32] });
        Ok(requests.into_iter().map(signed).collect())
    }
}

/// A checker that accepts every non-empty signature and every locktime.
struct AnySignature;

impl Checker for AnySignature {
    fn check_ecdsa_signature(&mut self, signature: &[u8], _: &[u8], _: &Script, _: SigVersion) -> bool {
        !signature.is_empty()
    }

    fn check_schnorr_signature(
        &mut self,
        _: &[u8],
        _: &[u8; 32],
        _: SigVersion,
        _: &ExecutionData,
    ) -> Result<(), ScriptError> {
        Ok(())
    }

    fn check_lock_time(&mut self, _: i64) -> bool {
        true
    }

    fn check_sequence(&mut self, _: i64) -> bool {
        true
    }
}
