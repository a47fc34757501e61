//! Satisfies miniscripts in P2WSH outputs and tapscript leaves.
//!
//! The crate `miniscript` parses scripts and checks sanity. [`super::satisfaction`] chooses the satisfaction.

use std::collections::BTreeMap;

use bitcoin::hashes::hash160;
use bitcoin::taproot::TapLeafHash;
use bitcoin::{Script, XOnlyPublicKey};
use miniscript::{ExtParams, Miniscript, ScriptContext, Segwitv0, Tap, Terminal, ToPublicKey};

use super::findings::Elements;
use super::job::Job;
use super::satisfaction::{Assets, satisfy};

/// The elements that satisfy a witness script; `None` if it is not a sane miniscript, or data is missing.
pub(super) fn satisfy_witness_script(job: &mut Job<'_>, script: &Script) -> Option<Elements> {
    let policy = read::<Segwitv0>(script, |hash| {
        bitcoin::PublicKey::from_slice(&known(job, hash)?).ok().filter(|key| key.compressed)
    })?;
    satisfy(&policy, &mut Assets { job, script, leaf: None })
}

/// The elements that satisfy a leaf script; `None` as above.
pub(super) fn satisfy_leaf(job: &mut Job<'_>, script: &Script, leaf: TapLeafHash) -> Option<Elements> {
    let policy = read::<Tap>(script, |hash| XOnlyPublicKey::from_slice(&known(job, hash)?).ok())?;
    satisfy(&policy, &mut Assets { job, script, leaf: Some(leaf) })
}

/// The public key of a hash. An unknown one is recorded as missing.
fn known(job: &mut Job<'_>, hash: hash160::Hash) -> Option<Vec<u8>> {
    let key = job.public_key(hash);
    if key.is_none() {
        job.met.missing_public_keys.push(hash);
    }
    key
}

/// Parses a script as miniscript. `None` if `find` lacks the key of a hash, since sanity depends on it.
fn read<Ctx: ScriptContext>(
    script: &Script,
    mut find: impl FnMut(hash160::Hash) -> Option<Ctx::Key>,
) -> Option<Miniscript<Ctx::Key, Ctx>>
where
    Ctx::Key: ToPublicKey,
{
    let policy = Miniscript::<Ctx::Key, Ctx>::decode_with_ext(script, &ExtParams::sane().raw_pkh()).ok()?;
    let hashes: Vec<_> = policy
        .iter()
        .filter_map(|fragment| match fragment.as_inner() {
            Terminal::RawPkH(hash) => Some(*hash),
            _ => None,
        })
        .collect();
    let mut keys = BTreeMap::new();
    // bitcoind parses from the end and stops at the first unknown hash.
    for hash in hashes.into_iter().rev() {
        keys.insert(hash, find(hash)?);
    }
    if keys.is_empty() {
        return Some(policy);
    }
    let policy = policy.substitute_raw_pkh(&keys);
    policy.ext_check(&ExtParams::sane()).ok()?;
    Some(policy)
}
