//! The signing of one input.

use std::collections::HashSet;

use bitcoin::{TxIn, TxOut};

use super::InputError;
use super::collect::{Carried, Observer, collect};
use super::keys::KeySource;
use super::produce::Production;
use super::producer::{Met, Producer};
use super::sighash::Sighash;
use super::signatures::{MissingSignature, Slot};
use super::solving::SolvingSet;
use outrigger_script::{ScriptError, TransactionChecker, TxContext};
use outrigger_service::Result;
use outrigger_service::signer::SignRequest;

/// A signature that an input could use.
pub(super) struct Wanted {
    index: usize,
    slot: Slot,
    request: SignRequest,
}

impl Wanted {
    /// The requests for an input's missing signatures.
    pub(super) fn of(
        index: usize,
        missing: Vec<MissingSignature>,
        checker: &mut TransactionChecker<'_>,
        sighash: Sighash,
    ) -> Vec<Self> {
        let wanted = missing.into_iter().filter_map(|want| {
            let (slot, request) = want.request(checker, sighash)?;
            Some(Self { index, slot, request })
        });
        wanted.collect()
    }
}

/// A new signature for an input.
pub(super) struct Made {
    pub(super) index: usize,
    pub(super) slot: Slot,
    /// The signature without hash type.
    pub(super) signature: Vec<u8>,
}

pub(super) struct Job<'a> {
    context: &'a TxContext<'a>,
    index: usize,
    input: &'a TxIn,
    observer: Observer<'a>,
    state: State<'a>,
}

enum State<'a> {
    /// The spent output is unknown.
    Unknown,
    /// The input verified as it was.
    Complete,
    /// It did not.
    Open { spent: &'a TxOut, error: ScriptError, own: Box<SolvingSet> },
}

impl<'a> Job<'a> {
    /// Verifies the input as it is, and collects its signatures and scripts.
    pub(super) fn new(context: &'a TxContext<'_>, index: usize, input: &'a TxIn) -> Self {
        let mut observer = Observer::new(context, index);
        let state = match context.spent_output(index) {
            None => State::Unknown,
            Some(spent) => match collect(&mut observer, input, spent) {
                None => State::Complete,
                Some(Carried { error, shown }) => State::Open { spent, error, own: Box::new(shown.into_solving()) },
            },
        };
        Self { context, index, input, observer, state }
    }

    /// The requests for signatures that could help.
    pub(super) fn wanted(&mut self, known: &SolvingSet, sighash: Sighash) -> Vec<Wanted> {
        if self.produce(known, sighash).is_none() {
            return Vec::new();
        }
        let wants = self.observer.signatures.take_wanted();
        Wanted::of(self.index, wants, &mut self.observer.checker, sighash)
    }

    /// Adds a requested signature.
    pub(super) fn add(&mut self, slot: Slot, signature: Vec<u8>, sighash: Sighash) {
        self.observer.signatures.add(slot, signature, sighash);
    }

    /// The new contents if they differ, and the error of an incomplete input.
    pub(super) fn finish(mut self, known: &SolvingSet, sighash: Sighash) -> (Option<Production>, Option<InputError>) {
        let production = self.produce(known, sighash).filter(|production| !production.is_of(self.input));
        let error = match &self.state {
            State::Unknown => Some(InputError::NotFound),
            State::Complete => None,
            State::Open { spent, error, .. } => {
                let error = match &production {
                    Some(Production { script_sig, witness }) => {
                        self.observer.verify(script_sig, &spent.script_pubkey, witness).err()
                    }
                    None => Some(*error),
                };
                error.map(InputError::Script)
            }
        };
        (production, error)
    }

    /// Solves the input with the signatures it has. `None` if it stays as it is: it is complete or unknown, or the type
    /// is SINGLE without a matching output.
    fn produce(&mut self, known: &SolvingSet, sighash: Sighash) -> Option<Production> {
        let State::Open { spent, own, .. } = &self.state else {
            return None;
        };
        if sighash.is_single() && self.index >= self.context.tx().output.len() {
            return None;
        }
        let mut producer = Producer {
            context: self.context,
            index: self.index,
            known,
            own,
            signatures: &mut self.observer.signatures,
            met: Met::default(),
        };
        Some(producer.produce(&spent.script_pubkey, self.input))
    }
}

/// Has the keys sign the requests, as far as they can.
pub(super) fn sign_wanted(mut wanted: Vec<Wanted>, keys: &dyn KeySource) -> Result<Vec<Made>> {
    // An input needs only one key path signature. If several would do, the available keys decide.
    let choice = |wants: &[Wanted]| wants.len() > 1 && wants.iter().any(|want| want.slot.is_key_path());
    if wanted.chunk_by(|one, other| one.index == other.index).any(choice) {
        let available = available_keys(&wanted, keys)?;
        let mut by_key_path = HashSet::new();
        // An input's requests for key paths come before those for leaves.
        wanted.retain(|Wanted { index, slot, request }| {
            let signs = !by_key_path.contains(index) && available.contains(&request.public_key.0);
            if signs && slot.is_key_path() {
                by_key_path.insert(*index);
            }
            signs
        });
    }
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let (places, requests): (Vec<_>, Vec<_>) =
        wanted.into_iter().map(|Wanted { index, slot, request }| ((index, slot), request)).unzip();
    let signatures = keys.sign_many(requests)?;
    let made = places.into_iter().zip(signatures);
    Ok(made.filter_map(|((index, slot), signature)| Some(Made { index, slot, signature: signature?.0 })).collect())
}

/// The public keys of the requests that can sign.
fn available_keys(wanted: &[Wanted], keys: &dyn KeySource) -> Result<HashSet<Vec<u8>>> {
    let mut seen = HashSet::new();
    let wanted_keys = wanted.iter().map(|wanted| &wanted.request.public_key);
    let public_keys: Vec<_> = wanted_keys.filter(|key| seen.insert(&key.0)).cloned().collect();
    let available = keys.available(public_keys.clone())?;
    let found = public_keys.into_iter().zip(available).filter(|(_, available)| *available);
    Ok(found.map(|(key, _)| key.0).collect())
}
