//! One input on its way from what it came with to what it leaves with.

use std::collections::HashSet;

use bitcoin::{TxIn, TxOut};

use super::InputError;
use super::collect::{Carried, collect};
use super::keys::KeySource;
use super::produce::{Producer, Production};
use super::sighash::Sighash;
use super::signatures::Want;
use super::solving::SolvingSet;
use crate::script::{Flags, TransactionChecker, TxContext, verify_script};
use crate::service::Result;
use crate::service::signer::SignRequest;
use crate::wire::Blob;

/// A signature that an input could use.
pub(super) struct Wanted {
    /// The input's index.
    pub(super) index: usize,
    /// The signature.
    pub(super) want: Want,
}

/// One input.
pub(super) struct Job<'a> {
    index: usize,
    input: &'a TxIn,
    state: State<'a>,
}

enum State<'a> {
    /// The output it spends is not known.
    Unknown,
    /// It verifies as it came.
    Complete,
    /// It does not.
    Open { spent: &'a TxOut, carried: Carried },
}

impl<'a> Job<'a> {
    /// Looks at the input as it came.
    pub(super) fn new(context: &'a TxContext<'_>, index: usize, input: &'a TxIn) -> Self {
        let state = match context.spent_output(index) {
            None => State::Unknown,
            Some(spent) => match collect(context, index, input, spent) {
                None => State::Complete,
                Some(carried) => State::Open { spent, carried },
            },
        };
        Self { index, input, state }
    }

    /// The signatures that could help.
    pub(super) fn wanted(&mut self, context: &TxContext<'_>, known: &SolvingSet, sighash: Sighash) -> Vec<Wanted> {
        if self.produce(context, known, sighash).is_none() {
            return Vec::new();
        }
        let State::Open { carried, .. } = &mut self.state else {
            return Vec::new();
        };
        let index = self.index;
        carried.signatures.take_wanted().into_iter().map(|want| Wanted { index, want }).collect()
    }

    /// Takes a signature that was made for a want of the input.
    pub(super) fn add(&mut self, want: &Want, signature: Vec<u8>, sighash: Sighash) {
        if let State::Open { carried, .. } = &mut self.state {
            carried.signatures.add(want, signature, sighash);
        }
    }

    /// The input's new contents, where they change, and why it is not complete.
    pub(super) fn finish(
        mut self,
        context: &TxContext<'_>,
        known: &SolvingSet,
        sighash: Sighash,
    ) -> (Option<Production>, Option<InputError>) {
        let production = self.produce(context, known, sighash);
        let error = match &self.state {
            State::Unknown => Some(InputError::NotFound),
            State::Complete => None,
            State::Open { spent, .. } => {
                let (script_sig, witness) = match &production {
                    Some(production) => (&production.script_sig, &production.witness),
                    None => (&self.input.script_sig, &self.input.witness),
                };
                let mut checker = TransactionChecker::new(context, self.index);
                verify_script(script_sig, &spent.script_pubkey, witness, Flags::STANDARD, &mut checker)
                    .err()
                    .map(InputError::Script)
            }
        };
        (production, error)
    }

    /// Solves the input with the signatures there are. None where it stays as it came: it is complete or unknown, or
    /// the type is SINGLE and there is no output of its index.
    fn produce(&mut self, context: &TxContext<'_>, known: &SolvingSet, sighash: Sighash) -> Option<Production> {
        let State::Open { spent, carried } = &mut self.state else {
            return None;
        };
        if sighash.is_single() && self.index >= context.tx().output.len() {
            return None;
        }
        let mut producer = Producer {
            context,
            index: self.index,
            known,
            carried_scripts: &carried.scripts,
            signatures: &mut carried.signatures,
        };
        Some(producer.produce(&spent.script_pubkey, self.input))
    }
}

/// Has the keys sign what is wanted, as far as they can: bare signatures, without type bytes.
pub(super) fn sign_wanted(
    context: &TxContext<'_>,
    wanted: Vec<Wanted>,
    keys: &dyn KeySource,
    sighash: Sighash,
) -> Result<Vec<(Wanted, Vec<u8>)>> {
    let available = available_keys(&wanted, keys)?;
    let mut by_key_path = HashSet::new();
    let mut signable = Vec::new();
    let mut requests = Vec::new();
    for wanted in wanted {
        // One signature by a key path is all that its input needs; an input's key paths come before its leaves.
        if by_key_path.contains(&wanted.index) || !available.contains(wanted.want.public_key()) {
            continue;
        }
        if let Ok(digest) = wanted.want.digest(context, wanted.index, sighash) {
            if wanted.want.is_key_path() {
                by_key_path.insert(wanted.index);
            }
            let public_key = Blob(wanted.want.public_key().to_vec());
            requests.push(SignRequest { public_key, digest, scheme: wanted.want.scheme() });
            signable.push(wanted);
        }
    }
    if requests.is_empty() {
        return Ok(Vec::new());
    }
    let signatures = keys.sign_many(requests)?;
    let signed = signable.into_iter().zip(signatures);
    Ok(signed.filter_map(|(wanted, signature)| Some((wanted, signature?.0))).collect())
}

/// The public keys among the wanted ones that can sign.
fn available_keys(wanted: &[Wanted], keys: &dyn KeySource) -> Result<HashSet<Vec<u8>>> {
    let mut seen = HashSet::new();
    let mut public_keys = Vec::new();
    for wanted in wanted {
        let key = wanted.want.public_key();
        if seen.insert(key) {
            public_keys.push(Blob(key.to_vec()));
        }
    }
    if public_keys.is_empty() {
        return Ok(HashSet::new());
    }
    let available = keys.available(public_keys.clone())?;
    let found = public_keys.into_iter().zip(available).filter(|(_, available)| *available);
    Ok(found.map(|(key, _)| key.0).collect())
}
