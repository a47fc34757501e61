//! Inputs of partially signed transactions (BIP 174): signatures stand apart from scriptSigs and witnesses until all are there.
//!
//! What a solver met on its way is told beside what it made: which keys it asked for, which scripts it followed, and what it
//! lacked. Updating, signing, finalising and analysing a PSBT are made of that.

use std::collections::{BTreeMap, HashSet};

use bitcoin::hashes::hash160;
use bitcoin::{Script, ScriptBuf, Transaction, TxIn, TxOut, Witness};

use super::job::{Made, Wanted, sign_wanted};
use super::keys::KeySource;
use super::produce::Production;
use super::producer::{Met, Producer};
use super::sighash::Sighash;
use super::signatures::{MissingSignature, PartialSignatures, Signatures, TaprootPath};
use super::solving::SolvingSet;
use super::{INPUTS_PER_BATCH, MAX_SPENT_SCRIPTS, SignError};
use outrigger_memory::parallel::map_while;
use outrigger_script::{
    Checker, ExecutionData, Flags, ScriptError, SigVersion, TransactionChecker, TxContext, verify_script,
};
use outrigger_service::signer::{Scheme, SignRequest};
use outrigger_service::wire::Blob;

/// An input to sign.
#[derive(Clone, Default, Debug)]
pub struct PartialInput<'k> {
    /// Its index.
    pub index: usize,
    /// What it knows of the output that it spends.
    pub own: SolvingSet,
    /// What is known of that beside it.
    pub known: Option<&'k SolvingSet>,
    /// The public keys whose signatures may be asked for, of 33 or 65 bytes, or of 32 in taproot outputs; none where all may be.
    pub signers: Option<&'k HashSet<Vec<u8>>>,
    /// The signatures it has.
    pub signatures: PartialSignatures,
}

/// A public key whose signature was asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AskedKey {
    /// In a script: 33 or 65 bytes.
    Ecdsa(Vec<u8>),
    /// In a taproot output, x only: as its internal key, or in the leaf of this hash.
    Taproot([u8; 32], Option<[u8; 32]>),
}

/// What became of an input, or what is known of an output.
#[derive(Clone, Default, Debug)]
pub struct PartialOutcome {
    /// The input's index.
    pub index: usize,
    /// Its signatures, with those that were made.
    pub signatures: PartialSignatures,
    /// The scriptSig and the witness that spend it, where they verify.
    pub complete: Option<(ScriptBuf, Witness)>,
    /// What the solver met.
    pub met: Met,
    /// The keys whose signatures it asked for and did not have, in the order of asking.
    pub asked: Vec<AskedKey>,
    /// Of the ECDSA signatures that could not be had, the HASH160 of the keys.
    pub missing_signatures: Vec<hash160::Hash>,
}

/// A transaction whose inputs are signed one by one.
pub struct PartialTransaction<'a> {
    /// It.
    pub tx: &'a Transaction,
    /// The outputs that all its inputs spend, in their order.
    pub spent: &'a [Option<TxOut>],
    /// Whether the answer is still wanted.
    pub wanted: &'a (dyn Fn() -> bool + Sync),
}

/// What is known of spending outputs with these scripts, each with what it says itself and what is known beside that, had a
/// transaction them for its first input.
pub fn inspect_scripts<'a>(
    tx: &Transaction,
    scripts: impl Iterator<Item = (&'a Script, SolvingSet, Option<&'a SolvingSet>)>,
) -> Vec<PartialOutcome> {
    let context = TxContext::new(tx, Vec::<TxOut>::new());
    let nothing = SolvingSet::default();
    let inspect = |(script, own, known): (&Script, SolvingSet, Option<&SolvingSet>)| {
        let input = PartialInput { own, known, ..PartialInput::default() };
        let mut job = PartialJob::new(input, &nothing);
        job.produce(&context, script);
        let missing = job.signatures.take_wanted();
        PartialOutcome { met: job.met, asked: missing.iter().filter_map(asked).collect(), ..Default::default() }
    };
    scripts.map(inspect).collect()
}

/// An input between its two solutions.
struct PartialJob<'k> {
    input: PartialInput<'k>,
    known: &'k SolvingSet,
    signatures: Signatures,
    met: Met,
    asked: Vec<AskedKey>,
}

impl<'k> PartialJob<'k> {
    fn new(mut input: PartialInput<'k>, nothing: &'k SolvingSet) -> Self {
        let signatures = Signatures::of_partial(std::mem::take(&mut input.signatures));
        let known = input.known.unwrap_or(nothing);
        Self { input, known, signatures, met: Met::default(), asked: Vec::new() }
    }

    fn produce(&mut self, context: &TxContext<'_>, script: &Script) -> Production {
        let mut producer = Producer {
            context,
            index: self.input.index,
            known: self.known,
            own: &self.input.own,
            signatures: &mut self.signatures,
            met: Met::default(),
        };
        let production = producer.produce(script, &TxIn::default());
        self.met = producer.met;
        production
    }

    /// The signatures that could help.
    fn wanted(&mut self, context: &TxContext<'_>, sighash: Sighash) -> Vec<Wanted> {
        let Some(spent) = context.spent_output(self.input.index) else { return Vec::new() };
        self.produce(context, &spent.script_pubkey);
        let mut missing = self.signatures.take_wanted();
        self.asked = missing.iter().filter_map(asked).collect();
        if let Some(signers) = self.input.signers {
            missing.retain(|missing| signers.contains(missing.public_key()));
        }
        let mut checker = TransactionChecker::new(context, self.input.index);
        Wanted::of(self.input.index, missing, &mut checker, sighash)
    }

    fn finish(mut self, context: &TxContext<'_>, fake: bool) -> PartialOutcome {
        let index = self.input.index;
        let mut complete = None;
        let mut missing = Vec::new();
        if let Some(spent) = context.spent_output(index) {
            let Production { script_sig, witness } = self.produce(context, &spent.script_pubkey);
            missing = self.signatures.take_wanted();
            let verify = |checker: &mut dyn Checker| {
                verify_script(&script_sig, &spent.script_pubkey, &witness, Flags::STANDARD, checker).is_ok()
            };
            let verified =
                if fake { verify(&mut AnySignature) } else { verify(&mut TransactionChecker::new(context, index)) };
            complete = verified.then_some((script_sig, witness));
        }
        let signatures = self.signatures.into_partial();
        if !signatures.key_path.is_empty() {
            // With the key path's signature, no leaf is looked at.
            self.asked.retain(|asked| !matches!(asked, AskedKey::Taproot(_, Some(_))));
        }
        let key = |missing: MissingSignature| match missing {
            MissingSignature::Ecdsa { public_key, .. } => Some(bitcoin::hashes::Hash::hash(&public_key)),
            MissingSignature::Schnorr { .. } => None,
        };
        let missing_signatures = missing.into_iter().filter_map(key).collect();
        PartialOutcome { index, signatures, complete, met: self.met, asked: self.asked, missing_signatures }
    }
}

fn asked(missing: &MissingSignature) -> Option<AskedKey> {
    match missing {
        MissingSignature::Ecdsa { public_key, .. } => Some(AskedKey::Ecdsa(public_key.clone())),
        MissingSignature::Schnorr { public_key, path } => match path {
            TaprootPath::InternalKey { .. } => Some(AskedKey::Taproot(*public_key, None)),
            TaprootPath::Leaf(leaf) => {
                Some(AskedKey::Taproot(*public_key, Some(bitcoin::hashes::Hash::to_byte_array(*leaf))))
            }
            TaprootPath::OutputKey => None,
        },
    }
}

impl PartialTransaction<'_> {
    /// Signs inputs, and puts together those whose signatures are all there.
    ///
    /// # Errors
    /// As of [`sign_transaction_while`](super::sign_transaction_while).
    pub fn sign(
        &self,
        inputs: Vec<PartialInput<'_>>,
        keys: &dyn KeySource,
        sighash: Sighash,
    ) -> Result<Vec<PartialOutcome>, SignError> {
        self.solve(inputs, keys, sighash, false)
    }

    /// The scriptSigs and witnesses that inputs will have once they are signed, with signatures that are none: for their sizes.
    ///
    /// # Errors
    /// As of [`PartialTransaction::sign`].
    pub fn estimate(&self, inputs: Vec<PartialInput<'_>>) -> Result<Vec<PartialOutcome>, SignError> {
        self.solve(inputs, &AnyKey, Sighash::DEFAULT, true)
    }

    fn solve(
        &self,
        inputs: Vec<PartialInput<'_>>,
        keys: &dyn KeySource,
        sighash: Sighash,
        fake: bool,
    ) -> Result<Vec<PartialOutcome>, SignError> {
        let Self { tx, spent, wanted } = *self;
        if spent.iter().flatten().map(|spent| spent.script_pubkey.len()).sum::<usize>() > MAX_SPENT_SCRIPTS {
            return Err(SignError::TooLarge);
        }
        let context = TxContext::new(tx, spent);
        let nothing = SolvingSet::default();
        let begin = |input| {
            let mut job = PartialJob::new(input, &nothing);
            let wants = job.wanted(&context, sighash);
            (job, wants)
        };
        let begun = map_while(inputs, INPUTS_PER_BATCH, wanted, begin).ok_or(SignError::Unwanted)?;
        let (mut jobs, wants): (Vec<_>, Vec<_>) = begun.into_iter().unzip();
        let places: BTreeMap<usize, usize> =
            jobs.iter().enumerate().map(|(place, job)| (job.input.index, place)).collect();
        for Made { index, slot, signature } in sign_wanted(wants.into_iter().flatten().collect(), keys)? {
            if let Some(job) = places.get(&index).and_then(|place| jobs.get_mut(*place)) {
                job.signatures.add(slot, signature, sighash);
            }
        }
        map_while(jobs, INPUTS_PER_BATCH, wanted, |job| job.finish(&context, fake)).ok_or(SignError::Unwanted)
    }
}

/// Has every key, and signs with nothing.
struct AnyKey;

impl KeySource for AnyKey {
    fn available(&self, public_keys: Vec<Blob>) -> outrigger_service::Result<Vec<bool>> {
        Ok(vec![true; public_keys.len()])
    }

    fn sign_many(&self, requests: Vec<SignRequest>) -> outrigger_service::Result<Vec<Option<Blob>>> {
        let sign = |request: SignRequest| match request.scheme {
            // Two integers of 32 bytes, as in most signatures with a low R.
            Scheme::Ecdsa => {
                let integer = [&[2, 32, 1][..], &[0; 31]].concat();
                [&[0x30, 68][..], &integer, &integer].concat()
            }
            _ => vec![0; 64],
        };
        Ok(requests.into_iter().map(|request| Some(Blob(sign(request)))).collect())
    }
}

/// Takes every signature and every lock time.
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
