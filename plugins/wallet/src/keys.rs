//! `gethdkeys`, `createwalletdescriptor`, `upgradewallet`, `dumpprivkey`: the keys behind a wallet's addresses.

use std::str::FromStr;

use bitcoin::bip32::{Xpriv, Xpub};
use bitcoin::hashes::{Hash, hash160};
use bitcoin::{Network, PrivateKey, ScriptBuf};
use outrigger_sdk::RpcError;
use outrigger_sdk::descriptor::{Checksum, Descriptor};
use outrigger_sdk::params::{Type, int32, object};
use outrigger_sdk::service::ErrorKind;
use outrigger_sdk::service::wallet::{AddressType, DescriptorImport, HdKey, ImportOutcome, ScriptInfo, WalletInfo};
use outrigger_sdk::standard::{ScriptKind, address, classify};
use outrigger_sdk::wire::Secret;
use serde::Serialize;
use serde_json::{Value, json};

use crate::arguments::{address_type, wrong_type};
use crate::error::WalletError;
use crate::info::WALLET_VERSION;
use crate::{CallContext, to_json};
use outrigger_sdk::spend::known::redeem_script;

/// `upgradewallet`: a wallet is of the latest version, and stays so.
pub fn upgrade_wallet(context: &mut CallContext<'_>) -> Result<Value, WalletError> {
    let wallet = unlocked(context)?;
    let wanted = context.params.given(0).map_or(Ok(0), int32)?;
    let (key, told) = if wanted == 0 || wanted >= WALLET_VERSION {
        ("result", "Already at latest version. Wallet version unchanged.".to_owned())
    } else {
        let told = format!("Cannot downgrade wallet from version {WALLET_VERSION} to version {wanted}.");
        ("error", told + " Wallet version unchanged.")
    };
    Ok(json!({
        "wallet_name": wallet.name,
        "previous_version": WALLET_VERSION,
        "current_version": WALLET_VERSION,
        key: told,
    }))
}

/// The wallet of the call, which is not locked.
fn unlocked(context: &CallContext<'_>) -> Result<WalletInfo, WalletError> {
    let wallet = context.wallet()?;
    if wallet.locked { Err(ErrorKind::WalletLocked.into()) } else { Ok(wallet) }
}

/// A truth value among options; false where it is not there.
fn option(context: &CallContext<'_>, index: usize, name: &str) -> Result<Option<bool>, WalletError> {
    let options = context.params.given(index).map(object).transpose()?;
    let given = options.and_then(|options| options.get(name)).filter(|value| !value.is_null());
    given.map(|value| value.as_bool().ok_or_else(|| wrong_type(value, Type::Bool).into())).transpose()
}

#[derive(Serialize)]
struct ToldKey<'a> {
    xpub: &'a str,
    has_private: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    xprv: Option<&'a str>,
    descriptors: Vec<ToldDescriptor<'a>>,
}

#[derive(Serialize)]
struct ToldDescriptor<'a> {
    desc: &'a str,
    active: bool,
}

/// `gethdkeys`: the extended keys of the wallet's descriptors.
pub fn get_hd_keys(context: &mut CallContext<'_>) -> Result<Vec<u8>, WalletError> {
    let wallet = context.wallet()?;
    let active_only = option(context, 0, "active_only")?.unwrap_or(false);
    let private = option(context, 0, "private")?.unwrap_or(false);
    if private && wallet.locked {
        return Err(ErrorKind::WalletLocked.into());
    }
    let keys = context.host.wallet.hd_keys(context.scope, private)?;
    let told = keys.iter().filter_map(|key| {
        let descriptors = key.descriptors.iter().filter(|(_, active)| *active || !active_only);
        let mut descriptors: Vec<ToldDescriptor<'_>> =
            descriptors.map(|(desc, active)| ToldDescriptor { desc, active: *active }).collect();
        descriptors.sort_by_key(|descriptor| descriptor.desc);
        let xprv = key.xprv.as_ref().map(Secret::expose);
        let told = ToldKey { xpub: &key.xpub, has_private: key.has_private, xprv, descriptors };
        (!told.descriptors.is_empty()).then_some(told)
    });
    // The private keys go into the answer without a copy that would not be wiped.
    to_json(told.collect::<Vec<_>>())
}

/// `createwalletdescriptor`: adds the descriptors of an address type, of a master key that the wallet has.
pub fn create_wallet_descriptor(context: &mut CallContext<'_>) -> Result<Value, WalletError> {
    context.wallet()?;
    let kind = address_type(Some(context.params.get(0)), AddressType::Bech32)?;
    let sides = option(context, 1, "internal")?.map_or_else(|| vec![false, true], |internal| vec![internal]);
    unlocked(context)?;
    let network = context.network()?;
    let keys = context.host.wallet.hd_keys(context.scope, true)?;
    let options = context.params.given(1).map(object).transpose()?;
    let asked = options.and_then(|options| options.get("hdkey")).filter(|value| !value.is_null());
    let master = match asked {
        Some(asked) => {
            let asked = asked.as_str().ok_or_else(|| wrong_type(asked, Type::String))?;
            private_key_of(context, &keys, asked, network)?
        }
        None => only_active(&keys)?,
    };
    let timestamp = context.host.chain.time(context.scope)?;
    let known = context.host.wallet.descriptors(context.scope, false)?;
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
        return Err(WalletError::DescriptorExists);
    }
    let outcomes = context.host.wallet.add_own_descriptors(context.scope, imports)?;
    if outcomes.iter().any(|outcome| !matches!(outcome, ImportOutcome::Imported { .. })) {
        return Err(RpcError::internal("the descriptor could not be stored").into());
    }
    Ok(json!({"descs": added}))
}

/// The private key of an extended public key that the call names: any of the wallet's keys that has its public key, as bitcoind
/// looks only for that.
fn private_key_of(
    context: &CallContext<'_>,
    keys: &[HdKey],
    asked: &str,
    network: Network,
) -> Result<Secret, WalletError> {
    let xpub = Xpub::from_str(asked).ok().filter(|xpub| xpub.network == network.into());
    let xpub = xpub.ok_or(WalletError::HdKey)?;
    let same = |key: &&HdKey| Xpub::from_str(&key.xpub).is_ok_and(|known| known.public_key == xpub.public_key);
    let held = keys.iter().filter(same).find_map(|key| Xpriv::from_str(key.xprv.as_ref()?.expose()).ok());
    let held = match held {
        Some(held) => Some(held.private_key),
        None => {
            let hash = hash160::Hash::hash(&xpub.public_key.serialize()).to_byte_array();
            let wif = context.host.wallet.private_key(context.scope, hash)?;
            wif.and_then(|wif| PrivateKey::from_wif(wif.expose()).ok()).map(|key| key.inner)
        }
    };
    let mut held = Xpriv {
        network: xpub.network,
        depth: xpub.depth,
        parent_fingerprint: xpub.parent_fingerprint,
        child_number: xpub.child_number,
        private_key: held.ok_or_else(|| WalletError::UnknownHdKey(xpub.to_string()))?,
        chain_code: xpub.chain_code,
    };
    let text = Secret::new(held.to_string());
    held.private_key.non_secure_erase();
    Ok(text)
}

/// The private key that all active descriptors share.
fn only_active(keys: &[HdKey]) -> Result<Secret, WalletError> {
    let mut active = keys.iter().filter(|key| key.descriptors.iter().any(|(_, active)| *active));
    let (Some(key), None) = (active.next(), active.next()) else { return Err(WalletError::ManyHdKeys) };
    key.xprv.clone().ok_or_else(|| WalletError::UnknownHdKey(key.xpub.clone()))
}

/// The descriptor of a master key for an address type and a side (BIPs 44, 49, 84 and 86).
fn descriptor_of(master: &Secret, kind: AddressType, internal: bool, network: Network) -> Secret {
    let (open, purpose, close) = match kind {
        AddressType::Legacy => ("pkh(", 44, ")"),
        AddressType::P2shSegwit => ("sh(wpkh(", 49, "))"),
        AddressType::Bech32 => ("wpkh(", 84, ")"),
        AddressType::Bech32m => ("tr(", 86, ")"),
    };
    let (coin, side) = (u8::from(network != Network::Bitcoin), u8::from(internal));
    Secret::new(format!("{open}{}/{purpose}h/{coin}h/0h/{side}/*{close}", master.expose()))
}

/// `dumpprivkey`: the private key of an address of one key.
pub fn dump_private_key(context: &mut CallContext<'_>) -> Result<Vec<u8>, WalletError> {
    unlocked(context)?;
    let given = context.params.text(0)?;
    let script = address::to_script(given, context.network()?).map_err(|_| WalletError::Address)?;
    let known = context.host.wallet.scripts(context.scope, vec![script.clone()])?.pop().flatten();
    let hash = key_hash(&script, known.as_ref()).ok_or(WalletError::AddressWithoutKey)?;
    let key = context.host.wallet.private_key(context.scope, hash)?;
    let key = key.ok_or_else(|| WalletError::UnknownPrivateKey(given.to_owned()))?;
    to_json(key.expose())
}

/// The hash of the one key that a script pays to: by its hash, by witness, or by witness in P2SH.
pub fn key_hash(script: &ScriptBuf, known: Option<&ScriptInfo>) -> Option<[u8; 20]> {
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
