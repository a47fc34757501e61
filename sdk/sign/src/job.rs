//! The signing of one input.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};

use bitcoin::hashes::{Hash, hash160, ripemd160};
use bitcoin::{Script, ScriptBuf, TxIn, TxOut};

use super::collect::Observer;
use super::findings::SolverFindings;
use super::keys::KeySource;
use super::sighash::Sighash;
use super::signatures::{AskedKey, MissingSignature};
use super::solving::{HashKind, SolvingSet};
use super::{INPUTS_PER_BATCH, InputError, MAX_SIGNED, MAX_SPENT_SCRIPTS, SignError};
use outrigger_memory::parallel::map_while;
use outrigger_script::TxContext;
use outrigger_service::Result;
use outrigger_service::signer::{Scheme, SignRequest, Signed};
use outrigger_service::wallet::TaprootData;

/// An input that the solver works on.
pub(super) struct Job<'a> {
    pub(super) context: &'a TxContext<'a>,
    pub(super) index: usize,
    /// The script of the spent output. `None`: the input stays as it is.
    pub(super) script: Option<&'a Script>,
    /// The input before signing. Its taproot witness stays unless it can be replaced.
    pub(super) original: &'a TxIn,
    /// The caller's solving data.
    pub(super) known: &'a SolvingSet,
    /// The solving data of the input itself.
    pub(super) own: SolvingSet,
    /// The public keys that may sign: 33 or 65 bytes, 32 for taproot. `None`: any.
    pub(super) signers: Option<&'a HashSet<Vec<u8>>>,
    pub(super) observer: Observer<'a>,
    /// Why the input does not verify as it is.
    pub(super) error: Option<InputError>,
    /// The findings of the last run.
    pub(super) met: SolverFindings,
    /// The keys whose signatures the first run requested.
    pub(super) asked: Vec<AskedKey>,
}

impl<'a> Job<'a> {
    /// A job that leaves the input as it is.
    pub(super) fn new(context: &'a TxContext<'a>, index: usize, original: &'a TxIn, known: &'a SolvingSet) -> Self {
        Self {
            context,
            index,
            script: None,
            original,
            known,
            own: SolvingSet::default(),
            signers: None,
            observer: Observer::new(context, index),
            error: None,
            met: SolverFindings::default(),
            asked: Vec::new(),
        }
    }

    /// The first run. Returns the requests for signatures that could help.
    fn wanted(&mut self, sighash: Sighash) -> Vec<SignRequest> {
        self.produce();
        let mut missing = self.observer.signatures.take_wanted();
        self.asked = missing.iter().filter_map(MissingSignature::asked).collect();
        if let Some(signers) = self.signers {
            missing.retain(|missing| signers.contains(&missing.public_key));
        }
        let (index, context) = (self.index, self.context);
        missing.into_iter().filter_map(|missing| missing.request(context, index, sighash)).collect()
    }
}

/// Signs inputs: runs `begin` on each, requests the signatures of all at once, and runs `finish` on each. `finish` also returns
/// the size of the new contents in bytes.
pub(super) fn solve<'a, I: Send, O: Send>(
    inputs: Vec<I>,
    begin: impl Fn(I) -> Job<'a> + Sync,
    finish: impl Fn(Job<'a>) -> (usize, O) + Sync,
    keys: &dyn KeySource,
    sighash: Sighash,
    wanted: &(dyn Fn() -> bool + Sync),
) -> std::result::Result<Vec<O>, SignError> {
    let begin = |input| {
        let mut job = begin(input);
        let wants = job.wanted(sighash);
        (job, wants)
    };
    let begun = map_while(inputs, INPUTS_PER_BATCH, wanted, begin).ok_or(SignError::Unwanted)?;
    let (mut jobs, wants): (Vec<_>, Vec<_>) = begun.into_iter().unzip();
    let places: BTreeMap<u64, usize> = (0..).zip(&jobs).map(|(place, job)| (job.index as u64, place)).collect();
    let wants: Vec<_> = wants.into_iter().flatten().collect();
    let made = match jobs.first() {
        Some(job) => sign_wanted(job.context, wants, keys)?,
        None => Vec::new(),
    };
    for (request, signed) in made {
        if let Some(job) = places.get(&request.input.into()).and_then(|place| jobs.get_mut(*place)) {
            if keys.computes_digests() {
                job.observer.remember(&request, signed.digest);
            }
            job.observer.signatures.add(request, signed.signature.0);
        }
    }
    let signed = AtomicUsize::new(0);
    let go_on = || signed.load(Ordering::Relaxed) <= MAX_SIGNED && wanted();
    let outcomes = map_while(jobs, INPUTS_PER_BATCH, &go_on, |job| {
        let (size, outcome) = finish(job);
        signed.fetch_add(size, Ordering::Relaxed);
        outcome
    });
    if signed.into_inner() > MAX_SIGNED {
        return Err(SignError::TooLarge);
    }
    outcomes.ok_or(SignError::Unwanted)
}

/// Fails with [`SignError::TooLarge`] if the spent outputs' scripts exceed [`MAX_SPENT_SCRIPTS`].
pub(super) fn check_spent(spent: &[Option<TxOut>]) -> std::result::Result<(), SignError> {
    let size: usize = spent.iter().flatten().map(|spent| spent.script_pubkey.len()).sum();
    if size > MAX_SPENT_SCRIPTS { Err(SignError::TooLarge) } else { Ok(()) }
}

/// Whether the signature suffices for its input.
fn is_key_path(request: &SignRequest) -> bool {
    matches!(request.scheme, Scheme::TaprootKey { .. } | Scheme::TaprootOutputKey)
}

/// Requests the signatures from the keys. Leaves out those that the keys cannot make.
fn sign_wanted(
    context: &TxContext<'_>,
    mut wanted: Vec<SignRequest>,
    keys: &dyn KeySource,
) -> Result<Vec<(SignRequest, Signed)>> {
    // An input needs only one key path signature. If several would do, the available keys decide.
    let choice = |wants: &[SignRequest]| wants.len() > 1 && wants.iter().any(is_key_path);
    if wanted.chunk_by(|one, other| one.input == other.input).any(choice) {
        let available = available_keys(&wanted, keys)?;
        let mut by_key_path = HashSet::new();
        // An input's requests for key paths come before those for leaves.
        wanted.retain(|request| {
            let signs = !by_key_path.contains(&request.input) && available.contains(&request.public_key.0);
            if signs && is_key_path(request) {
                by_key_path.insert(request.input);
            }
            signs
        });
    }
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let signatures = keys.sign(context, wanted.clone())?;
    Ok(wanted.into_iter().zip(signatures).filter_map(|(request, signed)| Some((request, signed?))).collect())
}

/// The public keys of the requests that can sign.
fn available_keys(wanted: &[SignRequest], keys: &dyn KeySource) -> Result<HashSet<Vec<u8>>> {
    let mut seen = HashSet::new();
    let wanted_keys = wanted.iter().map(|wanted| &wanted.public_key);
    let public_keys: Vec<_> = wanted_keys.filter(|key| seen.insert(&key.0)).cloned().collect();
    let available = keys.available(public_keys.clone())?;
    let found = public_keys.into_iter().zip(available).filter(|(_, available)| *available);
    Ok(found.map(|(key, _)| key.0).collect())
}

/// The solving data of an input: what its own request and all inputs know.
impl Job<'_> {
    pub(super) fn script(&self, hash: hash160::Hash) -> Option<ScriptBuf> {
        self.known.script(hash).or_else(|| self.own.script(hash)).map(Script::to_owned)
    }

    pub(super) fn witness_script(&self, program: &[u8; 32]) -> Option<ScriptBuf> {
        // HASH160 is RIPEMD-160 of SHA-256, so one table serves both hashes.
        self.script(hash160::Hash::from_byte_array(ripemd160::Hash::hash(program).to_byte_array()))
    }

    /// The public key with this HASH160, among those with signatures and in the solving data.
    pub(super) fn public_key(&self, hash: hash160::Hash) -> Option<Vec<u8>> {
        let signed =
            self.observer.signatures.ecdsa.keys().find(|key| hash160::Hash::hash(key) == hash).map(Vec::as_slice);
        signed.or_else(|| self.own.public_key(hash)).or_else(|| self.known.public_key(hash)).map(<[u8]>::to_vec)
    }

    /// The merged taproot data of the output with this key.
    pub(super) fn taproot(&self, output_key: &[u8; 32]) -> Option<TaprootData> {
        let (Some(known), Some(own)) = (self.known.taproot(output_key), self.own.taproot(output_key)) else {
            return self.known.taproot(output_key).or_else(|| self.own.taproot(output_key)).cloned();
        };
        let mut both = own.clone();
        if both.internal_key == [0; 32] {
            both.internal_key = known.internal_key;
        }
        both.merkle_root = both.merkle_root.or(known.merkle_root);
        both.leaves.extend(known.leaves.iter().filter(|leaf| !own.leaves.contains(leaf)).cloned());
        Some(both)
    }

    pub(super) fn preimage(&self, kind: HashKind, hash: &[u8]) -> Option<Vec<u8>> {
        self.own.preimage(kind, hash).map(<[u8]>::to_vec)
    }
}
