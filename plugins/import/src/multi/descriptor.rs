//! A request of importmulti with a descriptor.

use std::sync::atomic::Ordering;

use bitcoin::secp256k1::SecretKey;
use bitcoin::secp256k1::constants::PUBLIC_KEY_SIZE;
use bitcoin::{Network, NetworkKind, PrivateKey};
use outrigger_kit::descriptor::{Descriptor, Expansion, Syntax};
use outrigger_kit::parallel;
use outrigger_sdk::params::descriptor_range;
use outrigger_sdk::service::wallet::{AddressType, KeyOrigin};
use outrigger_sdk::wire::Secret;
use outrigger_sdk::{RpcError, RpcErrorCode};

use super::{Checks, IRRELEVANT_KEY, Material, Part, key_id, ordered, private_key, spendable_warning};
use crate::descriptors::{internal_of_multipath, label_of_multipath, range_of_unranged, range_too_large};
use crate::request::{self, Fields, malformed};

/// The number of indexes to derive between two checks for a stopping host.
const CHUNK: u32 = 10_000;
/// The minimum number of indexes for another thread.
const INDEXES_PER_BATCH: usize = 64;

/// Checks the request, and returns its warnings and its parts: one for each path of a multipath descriptor.
pub(super) fn read(
    fields: Fields<'_>,
    internal: bool,
    checks: &mut Checks<'_>,
) -> Result<(Vec<Part>, Vec<String>), RpcError> {
    let text = fields.text("desc")?.ok_or_else(malformed)?;
    let descriptors = request::descriptors(text, checks.network, Syntax::ANY)?;
    let first = descriptors.first().ok_or_else(malformed)?;
    if first.output_type() == Some(AddressType::Bech32m) {
        return Err(RpcError::not_found("Bech32m descriptors cannot be imported into legacy wallets"));
    }
    let multipath = descriptors.len() > 1;
    if multipath && fields.has("internal") {
        return Err(internal_of_multipath());
    }
    if multipath && fields.has("label") {
        return Err(label_of_multipath());
    }
    let watch_only = fields.flag("watchonly")?;
    let (begin, end) = match (first.is_ranged(), fields.get("range")) {
        (false, Some(_)) => return Err(range_of_unranged()),
        (false, None) => (0, 0),
        (true, None) => return Err(RpcError::invalid_parameter("Descriptor is ranged, please specify the range")),
        // A number that is not a 64-bit integer has a wrong type.
        (true, Some(range)) => descriptor_range(range)
            .map_err(|error| if error.code == RpcErrorCode::MISC { malformed() } else { error })?,
    };
    let private_keys = fields.list("keys")?;
    let cost = (u64::from(end - begin) + 1) * (first.key_count() * descriptors.len()) as u64;
    checks.budget = checks.budget.checked_sub(cost).ok_or_else(range_too_large)?;

    let mut parts: Vec<Part> = Vec::with_capacity(descriptors.len());
    for (place, descriptor) in descriptors.iter().enumerate() {
        let internal = if descriptors.len() == 2 { place == 1 } else { internal };
        parts.push((expand_all(descriptor, begin, end, checks), internal));
    }
    let mut warnings = Vec::new();
    for value in private_keys {
        let (id, key) = private_key(value, checks.network)?;
        let mut owners = parts.iter_mut().filter(|(part, _)| part.public_keys.contains_key(&id)).peekable();
        if owners.peek().is_none() {
            warnings.push(IRRELEVANT_KEY.to_owned());
        }
        for (owner, _) in owners {
            owner.private_keys.entry(id).or_insert_with(|| key.clone());
        }
    }
    warnings.extend(spendable_warning(watch_only, parts.iter().all(|(part, _)| is_spendable(part))));
    Ok((parts, warnings))
}

/// The keys and scripts of the descriptor at all indexes. A descriptor that cannot be expanded has none, as in bitcoind.
fn expand_all(descriptor: &Descriptor, begin: u32, end: u32, checks: &mut Checks<'_>) -> Material {
    let mut material = Material { solving_data: descriptor.is_solvable(), ..Material::default() };
    let branches = descriptor.private_branches();
    let keep_public_keys = descriptor.pays_to_key_hash();
    let at = |index: u32| Some((descriptor.expand(index).ok()?, branches.secret_keys(index)));
    for first in (begin..=end).step_by(CHUNK as usize) {
        if first > begin && checks.stopping.load(Ordering::Relaxed) {
            checks.aborted = true;
            break;
        }
        let chunk = (first..=end.min(first.saturating_add(CHUNK - 1))).collect();
        for (expansion, secrets) in parallel::map(chunk, INDEXES_PER_BATCH, at).into_iter().flatten() {
            add_private_keys(&expansion, secrets, checks.network, &mut material);
            add_expansion(expansion, keep_public_keys, &mut material);
        }
    }
    material.origins.sort_by(|a, b| a.public_key.cmp(&b.public_key));
    material.origins.dedup_by(|a, b| a.public_key == b.public_key);
    material
}

/// Adds the public keys, origins and scripts of an index.
fn add_expansion(expansion: Expansion, keep_public_keys: bool, material: &mut Material) {
    for (place, script) in expansion.scripts.into_iter().enumerate() {
        // All scripts of one index have the same keys.
        if place == 0 {
            if keep_public_keys {
                for key in script.solving.public_keys {
                    material.add_public_key(key.0);
                }
            }
            material.origins.extend(script.origins);
        }
        material.scripts.extend(script.solving.scripts.into_iter().map(ordered));
        material.script_pubkeys.insert(ordered(script.script_pubkey));
    }
}

/// Adds the private keys of an index, each by the position of its public key.
fn add_private_keys(
    expansion: &Expansion,
    secrets: Vec<(usize, SecretKey)>,
    network: Network,
    material: &mut Material,
) {
    let origins = expansion.scripts.first().map(|script| script.origins.as_slice());
    for (place, inner) in secrets {
        let Some(KeyOrigin { public_key, .. }) = origins.and_then(|origins| origins.get(place)) else { continue };
        let compressed = public_key.0.len() == PUBLIC_KEY_SIZE;
        let key = PrivateKey { compressed, network: NetworkKind::from(network), inner };
        material.private_keys.entry(key_id(&public_key.0)).or_insert_with(|| Secret::new(key.to_wif()));
    }
}

/// Whether a part has the private keys of all its keys. True without keys.
fn is_spendable(part: &Material) -> bool {
    let mut origins = part.origins.iter().map(|origin| key_id(&origin.public_key));
    let has_private_key = |id| part.private_keys.contains_key(&id);
    part.public_keys.keys().copied().all(has_private_key) && origins.all(has_private_key)
}
