//! `gethdkeys`, `createwalletdescriptor`, `upgradewallet`, `dumpprivkey`: the keys behind a wallet's addresses.

use std::str::FromStr;

use bitcoin::bip32::{Xpriv, Xpub};
use bitcoin::hashes::{Hash, hash160};
use bitcoin::{Network, PrivateKey, Script};
use outrigger_sdk::descriptor::{Checksum, Descriptor};
use outrigger_sdk::params::{int32, object};
use outrigger_sdk::service::wallet::{AddressType, DescriptorImport, HdKey, ImportOutcome, ScriptInfo, WalletInfo};
use outrigger_sdk::spend::known::redeem_script;
use outrigger_sdk::standard::{ScriptKind, classify};
use outrigger_sdk::wire::Secret;
use outrigger_sdk::{CallContext, RpcError, typed};
use serde::Serialize;
use serde_json::{Value, json};

use crate::arguments::{address_type, single_address};
use crate::info::WALLET_VERSION;
use crate::to_json;

/// Every wallet has the latest version, so this changes nothing.
pub fn upgrade_wallet(context: &mut CallContext<'_>) -> Result<Value, RpcError> {
    let wallet = unlocked(context)?;
    let wanted = context.params.given(0).map_or(Ok(0), int32)?;
    let (key, message) = if wanted == 0 || wanted >= WALLET_VERSION {
        ("result", "Already at latest version. Wallet version unchanged.".to_owned())
    } else {
        let refusal = format!("Cannot downgrade wallet from version {WALLET_VERSION} to version {wanted}.");
        ("error", refusal + " Wallet version unchanged.")
    };
    Ok(json!({
        "wallet_name": wallet.name,
        "previous_version": WALLET_VERSION,
        "current_version": WALLET_VERSION,
        key: message,
    }))
}

pub fn unlocked(context: &CallContext<'_>) -> Result<WalletInfo, RpcError> {
    let wallet = context.wallet()?;
    wallet.check_unlocked()?;
    Ok(wallet)
}

pub fn option(context: &CallContext<'_>, index: usize, name: &str) -> Result<Option<bool>, RpcError> {
    let options = context.params.given(index).map(object).transpose()?;
    let value = options.and_then(|options| options.get(name)).filter(|value| !value.is_null());
    value.map(typed::flag).transpose()
}

#[derive(Serialize)]
struct KeyEntry<'a> {
    xpub: &'a str,
    has_private: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    xprv: Option<&'a str>,
    descriptors: Vec<DescriptorEntry<'a>>,
}

#[derive(Serialize)]
struct DescriptorEntry<'a> {
    desc: &'a str,
    active: bool,
}

pub fn get_hd_keys(context: &mut CallContext<'_>) -> Result<Vec<u8>, RpcError> {
    let wallet = context.wallet()?;
    let active_only = option(context, 0, "active_only")?.unwrap_or(false);
    let private = option(context, 0, "private")?.unwrap_or(false);
    if private {
        wallet.check_unlocked()?;
    }
    let (host, scope) = (context.host, context.scope);
    let keys = if private { host.keys.private_hd_keys(scope)? } else { host.wallet.hd_keys(scope)? };
    let entries = keys.iter().filter_map(|key| {
        let descriptors = key.descriptors.iter().filter(|(_, active)| *active || !active_only);
        let mut descriptors: Vec<DescriptorEntry<'_>> =
            descriptors.map(|(desc, active)| DescriptorEntry { desc, active: *active }).collect();
        descriptors.sort_by_key(|descriptor| descriptor.desc);
        let xprv = key.xprv.as_ref().map(Secret::expose);
        let entry = KeyEntry { xpub: &key.xpub, has_private: key.has_private, xprv, descriptors };
        (!entry.descriptors.is_empty()).then_some(entry)
    });
    // A tree of values would hold more copies of the private keys.
    to_json(entries.collect::<Vec<_>>())
}

pub fn create_wallet_descriptor(context: &mut CallContext<'_>) -> Result<Value, RpcError> {
    context.wallet()?;
    let kind = address_type(Some(context.params.get(0)), AddressType::Bech32)?;
    let sides = option(context, 1, "internal")?.map_or_else(|| vec![false, true], |internal| vec![internal]);
    unlocked(context)?;
    let network = context.network()?;
    let keys = context.host.keys.private_hd_keys(context.scope)?;
    let options = context.params.given(1).map(object).transpose()?;
    let hd_key = options.and_then(|options| options.get("hdkey")).filter(|value| !value.is_null());
    let master = match hd_key {
        Some(hd_key) => private_key_of(context, &keys, typed::text(hd_key)?, network)?,
        None => only_active(&keys)?,
    };
    let timestamp = context.host.chain.time(context.scope)?;
    let known = context.host.wallet.descriptors(context.scope)?;
    let (mut imports, mut added) = (Vec::new(), Vec::new());
    for internal in sides {
        let text = descriptor_of(&master, kind, internal, network);
        let parsed = Descriptor::parse(text.expose(), network, Checksum::Optional);
        let parsed = parsed.ok().and_then(|parsed| parsed.into_iter().next());
        let public = parsed.ok_or_else(|| RpcError::internal("the descriptor does not parse"))?.to_normalized_string();
        if known.iter().any(|known| known.text.expose() == public) {
            continue;
        }
        let (active, internal, range) = (true, Some(internal), None);
        let descriptor = DescriptorImport { text, range, next_index: None, active, internal, label: None, timestamp };
        imports.push(descriptor);
        added.push(public);
    }
    if added.is_empty() {
        return Err(RpcError::wallet("Descriptor already exists"));
    }
    let outcomes = context.host.admin.add_own_descriptors(context.scope, imports)?;
    if outcomes.iter().any(|outcome| !matches!(outcome, ImportOutcome::Imported { .. })) {
        return Err(RpcError::internal("the descriptor could not be stored"));
    }
    Ok(json!({"descs": added}))
}

/// The private key of an extended public key. As bitcoind does, this compares only the public keys of the wallet's keys with
/// its public key.
fn private_key_of(
    context: &CallContext<'_>,
    keys: &[HdKey],
    hd_key: &str,
    network: Network,
) -> Result<Secret, RpcError> {
    let xpub = Xpub::from_str(hd_key).ok().filter(|xpub| xpub.network == network.into());
    let xpub = xpub.ok_or_else(|| RpcError::not_found("Unable to parse HD key. Please provide a valid xpub"))?;
    let same = |key: &&HdKey| Xpub::from_str(&key.xpub).is_ok_and(|known| known.public_key == xpub.public_key);
    let private_key = keys.iter().filter(same).find_map(|key| Xpriv::from_str(key.xprv.as_ref()?.expose()).ok());
    let private_key = match private_key {
        Some(xprv) => Some(xprv.private_key),
        None => {
            let hash = hash160::Hash::hash(&xpub.public_key.serialize()).to_byte_array();
            let wif = context.host.keys.private_key(context.scope, hash)?;
            wif.and_then(|wif| PrivateKey::from_wif(wif.expose()).ok()).map(|key| key.inner)
        }
    };
    let mut xprv = Xpriv {
        network: xpub.network,
        depth: xpub.depth,
        parent_fingerprint: xpub.parent_fingerprint,
        child_number: xpub.child_number,
        private_key: private_key.ok_or_else(|| unknown_private_key(&xpub.to_string()))?,
        chain_code: xpub.chain_code,
    };
    let text = Secret::new(xprv.to_string());
    xprv.private_key.non_secure_erase();
    Ok(text)
}

pub fn unknown_private_key(xpub: &str) -> RpcError {
    RpcError::not_found(format!("Private key for {xpub} is not known"))
}

/// The private key that all active descriptors share.
fn only_active(keys: &[HdKey]) -> Result<Secret, RpcError> {
    let mut active = keys.iter().filter(|key| key.descriptors.iter().any(|(_, active)| *active));
    let (Some(key), None) = (active.next(), active.next()) else {
        return Err(RpcError::not_found(
            "Unable to determine which HD key to use from active descriptors. Please specify with 'hdkey'",
        ));
    };
    key.xprv.clone().ok_or_else(|| unknown_private_key(&key.xpub))
}

/// The descriptor of a master key for an address type (BIPs 44, 49, 84 and 86).
fn descriptor_of(master: &Secret, kind: AddressType, internal: bool, network: Network) -> Secret {
    let (open, purpose, close) = match kind {
        AddressType::Legacy => ("pkh(", 44, ")"),
        AddressType::P2shSegwit => ("sh(wpkh(", 49, "))"),
        AddressType::Bech32 => ("wpkh(", 84, ")"),
        AddressType::Bech32m => ("tr(", 86, ")"),
    };
    let (coin, branch) = (u8::from(network != Network::Bitcoin), u8::from(internal));
    Secret::new(format!("{open}{}/{purpose}h/{coin}h/0h/{branch}/*{close}", master.expose()))
}

pub fn dump_private_key(context: &mut CallContext<'_>) -> Result<Vec<u8>, RpcError> {
    unlocked(context)?;
    let address = context.params.text(0)?;
    let script = single_address(address, context.network()?)?;
    let known = context.host.wallet.scripts(context.scope, vec![script.clone()])?.pop().flatten();
    let hash = key_hash(&script, known.as_ref());
    let hash = hash.ok_or_else(|| RpcError::type_error("Address does not refer to a key"))?;
    let key = context.host.keys.private_key(context.scope, hash)?;
    let unknown = || RpcError::wallet(format!("Private key for address {address} is not known"));
    to_json(key.ok_or_else(unknown)?.expose())
}

/// The key hash that a P2PKH, P2WPKH or P2SH-P2WPKH script pays to.
pub fn key_hash(script: &Script, known: Option<&ScriptInfo>) -> Option<[u8; 20]> {
    let inner = match classify(script) {
        ScriptKind::ScriptHash { hash } => redeem_script(hash, &known?.solving)?,
        _ => script,
    };
    match classify(inner) {
        ScriptKind::WitnessV0KeyHash { hash } => Some(*hash),
        ScriptKind::PubKeyHash { hash } if inner == script => Some(*hash),
        _ => None,
    }
}
