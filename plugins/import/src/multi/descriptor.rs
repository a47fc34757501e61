//! A request of importmulti that names a descriptor.

use bitcoin::{Network, NetworkKind, PrivateKey};
use outrigger_sdk::descriptor::{Checksum, Descriptor};
use outrigger_sdk::params::descriptor_range;
use outrigger_sdk::service::wallet::AddressType;
use outrigger_sdk::wire::Secret;

use super::{IRRELEVANT_KEY, Material, Part, key_id, ordered, private_key, spendable_warning};
use crate::error::ImportError;
use crate::request::Fields;

/// Checks the request, and gives what it brings (a part for each path of a multipath descriptor, with whether it is
/// internal) and what is odd about it.
pub(super) fn read(
    fields: Fields<'_>,
    internal: bool,
    network: Network,
    budget: &mut u64,
) -> Result<(Vec<Part>, Vec<String>), ImportError> {
    let text = fields.text("desc")?.ok_or(ImportError::Malformed)?;
    let descriptors = Descriptor::parse(text, network, Checksum::Required)?;
    let first = descriptors.first().ok_or(ImportError::Malformed)?;
    if first.output_type() == Some(AddressType::Bech32m) && first.is_solvable() {
        return Err(ImportError::TaprootAmongKeys);
    }
    let multipath = descriptors.len() > 1;
    if multipath && fields.has("internal") {
        return Err(ImportError::MultipathInternal);
    }
    if multipath && fields.has("label") {
        return Err(ImportError::MultipathLabel);
    }
    let watch_only = fields.flag("watchonly")?;
    let (begin, end) = match (first.is_ranged(), fields.get("range")) {
        (false, Some(_)) => return Err(ImportError::RangeOfUnranged),
        (false, None) => (0, 0),
        (true, None) => return Err(ImportError::RangeMissing),
        (true, Some(range)) => descriptor_range(range)?,
    };
    let private_keys = fields.list("keys")?;
    let cost = (u64::from(end - begin) + 1) * (first.key_count() * descriptors.len()) as u64;
    *budget = budget.checked_sub(cost).ok_or(ImportError::RangeTooLarge)?;

    let mut parts: Vec<Part> = Vec::with_capacity(descriptors.len());
    for (place, descriptor) in descriptors.iter().enumerate() {
        let internal = if descriptors.len() == 2 { place == 1 } else { internal };
        parts.push((expanded(descriptor, begin, end, network), internal));
    }
    let mut warnings = Vec::new();
    for value in private_keys {
        let (id, key) = private_key(value, network)?;
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

/// What the descriptor brings at all indexes. One that cannot be expanded brings nothing, and is not refused for it.
fn expanded(descriptor: &Descriptor, begin: u32, end: u32, network: Network) -> Material {
    let mut material = Material { solving_data: descriptor.is_solvable(), ..Material::default() };
    let branches = descriptor.private_branches();
    for index in begin..=end {
        let Ok(expansion) = descriptor.expand(index) else { continue };
        for (place, script) in expansion.scripts.into_iter().enumerate() {
            // All scripts of one index have the same keys.
            if place == 0 {
                if descriptor.pays_to_key_hash() {
                    for key in script.solving.public_keys {
                        material.add_public_key(key.0);
                    }
                }
                material.origins.extend(script.origins);
            }
            material.scripts.extend(script.solving.scripts.into_iter().map(ordered));
            material.script_pubkeys.insert(ordered(script.script_pubkey));
        }
        for (public_key, secret) in branches.private_keys(index) {
            let key = PrivateKey {
                compressed: public_key.len() == bitcoin::secp256k1::constants::PUBLIC_KEY_SIZE,
                network: NetworkKind::from(network),
                inner: secret,
            };
            material.private_keys.entry(key_id(&public_key)).or_insert_with(|| Secret::new(key.to_wif()));
        }
    }
    material.origins.sort_by(|a, b| a.public_key.cmp(&b.public_key));
    material.origins.dedup_by(|a, b| a.public_key == b.public_key);
    material
}

/// Whether all keys of a part have their private halves; true where there are no keys.
fn is_spendable(part: &Material) -> bool {
    let mut origins = part.origins.iter().map(|origin| key_id(&origin.public_key));
    let held = |id| part.private_keys.contains_key(&id);
    part.public_keys.keys().copied().all(held) && origins.all(held)
}
