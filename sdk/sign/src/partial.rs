//! Signs inputs of PSBTs (BIP 174), whose signatures are kept apart from scriptSig and witness until they suffice.
//!
//! The outcome includes what the solver found on its way: the keys that it requested, the scripts, and what was
//! missing. Methods that update, sign, finalise and analyse PSBTs build on that.

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

/// A public key that the solver requested a signature of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AskedKey {
    /// For a script: 33 or 65 bytes.
    Ecdsa(Vec<u8>),
    /// For a taproot output, x-only: as the internal key, or in the leaf with this hash.
    Taproot([u8; 32], Option<[u8; 32]>),
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
    pub met: Met,
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

/// An input between the solver's two runs.
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
            // With a key path signature, bitcoind does not look at leaves.
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
    /// Signs inputs, and completes those whose signatures suffice. Fails as
    /// [`sign_transaction_while`](super::sign_transaction_while).
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

/// A key source that signs for each key, with placeholders.
struct AnyKey;

impl KeySource for AnyKey {
    fn available(&self, public_keys: Vec<Blob>) -> outrigger_service::Result<Vec<bool>> {
        Ok(vec![true; public_keys.len()])
    }

    fn sign_many(&self, requests: Vec<SignRequest>) -> outrigger_service::Result<Vec<Option<Blob>>> {
        let sign = |request: SignRequest| match request.scheme {
            // Two integers of 32 bytes, the usual length with a low R.
            Scheme::Ecdsa => {
                let integer = [&[2, 32, 1][..], &[0; 31]].concat();
                [&[0x30, 68][..], &integer, &integer].concat()
            }
            _ => vec![0; 64],
        };
        Ok(requests.into_iter().map(|request| Some(Blob(sign(request)))).collect())
    }
}

/// A checker that accepts each signature and locktime.
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
