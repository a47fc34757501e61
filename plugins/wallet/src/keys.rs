//! `gethdkeys`, `createwalletdescriptor`, `upgradewallet`, `dumpprivkey`: the keys behind a wallet's addresses.

use std::str::FromStr;

use bitcoin::bip32::{Xpriv, Xpub};
use bitcoin::hashes::{Hash, hash160};
use bitcoin::{Network, PrivateKey, Script};
use outrigger_kit::descriptor::{Checksum, Descriptor};
use outrigger_kit::given;
use outrigger_kit::spend::known::redeem_script;
use outrigger_sdk::methods::Json;
use outrigger_sdk::params::int32;
use outrigger_sdk::service::wallet::{AddressType, DescriptorImport, HdKey, ImportOutcome, ScriptInfo, WalletInfo};
use outrigger_sdk::standard::{ScriptKind, classify};
use outrigger_sdk::wire::Secret;
use outrigger_sdk::{Call, RpcError, methods, typed};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::arguments::{address_type, single_address};
use crate::info::WALLET_VERSION;
use crate::{WalletPlugin, to_json};

fn unlocked(call: &Call<'_>) -> Result<WalletInfo, RpcError> {
    let wallet = call.wallet()?;
    wallet.check_unlocked()?;
    Ok(wallet)
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

/// The extended private key of an extended public key. As in bitcoind, any of the wallet's keys with the same public key
/// serves, whatever its chain code.
fn private_key_of(call: &Call<'_>, keys: &[HdKey], hd_key: &str, network: Network) -> Result<Secret, RpcError> {
    let xpub = read_xpub(hd_key, network)?;
    let same = |key: &&HdKey| Xpub::from_str(&key.xpub).is_ok_and(|known| known.public_key == xpub.public_key);
    let private_key = keys.iter().filter(same).find_map(|key| Xpriv::from_str(key.xprv.as_ref()?.expose()).ok());
    let private_key = match private_key {
        Some(xprv) => Some(xprv.private_key),
        None => {
            let hash = hash160::Hash::hash(&xpub.public_key.serialize()).to_byte_array();
            let wif = call.host.keys.private_key(call.scope, hash)?;
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

pub fn read_xpub(text: &str, network: Network) -> Result<Xpub, RpcError> {
    let xpub = Xpub::from_str(text).ok().filter(|xpub| xpub.network == network.into());
    xpub.ok_or_else(|| RpcError::not_found("Unable to parse HD key. Please provide a valid xpub"))
}

pub fn unknown_private_key(xpub: &str) -> RpcError {
    RpcError::not_found(format!("Private key for {xpub} is not known"))
}

/// The extended private key that all active descriptors share. Fails if they have several.
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

#[methods(category = "Wallet")]
impl WalletPlugin {
    /// Lists the extended keys (BIP 32) of the wallet's descriptors.
    ///
    /// * `options` (default: {}) - Options, which a call by name can also give as arguments of their own:
    ///   * `active_only` (boolean; default: false) - Whether to list the keys of active descriptors only.
    ///   * `private` (boolean; default: false) - Whether to show private keys.
    ///
    /// # Result
    /// [{"xpub": "...", "has_private": true|false, "xprv": "...", "descriptors": [{"desc": "...", "active":
    /// true|false}, ...]}, ...]    (json array)
    ///
    /// # Example
    /// '{"active_only": true}'
    #[method(private_keys)]
    fn gethdkeys(call: &Call<'_>, options: Option<&Map<String, Value>>) -> Result<Json, RpcError> {
        let wallet = call.wallet()?;
        let active_only = given(options, "active_only").map_or(Ok(false), typed::flag)?;
        let private = given(options, "private").map_or(Ok(false), typed::flag)?;
        if private {
            wallet.check_unlocked()?;
        }
        let (host, scope) = (call.host, call.scope);
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
        // A `serde_json::Value` would hold more copies of the private keys.
        to_json(entries.collect::<Vec<_>>())
    }

    /// Adds the descriptors of an address type to a wallet without them. The wallet derives its new addresses of the
    /// type from them.
    ///
    /// * `type` - The address type: legacy, p2sh-segwit, bech32 or bech32m.
    /// * `options` (default: {}) - Options, which a call by name can also give as arguments of their own:
    ///   * `internal` (boolean; default: both) - true adds only the descriptor for change, false only the descriptor
    ///     for receiving.
    ///   * `hdkey` (string; default: the key of all active descriptors) - The extended public key of the new
    ///     descriptors, as in gethdkeys.
    ///
    /// # Result
    /// {"descs": ["..."]}    (json object) The new descriptors.
    ///
    /// # Example
    /// bech32m
    #[method(private_keys)]
    fn createwalletdescriptor(
        call: &Call<'_>,
        r#type: &str,
        options: Option<&Map<String, Value>>,
    ) -> Result<Value, RpcError> {
        call.wallet()?;
        let kind = address_type(r#type)?;
        let internal = given(options, "internal").map(typed::flag).transpose()?;
        let sides = internal.map_or_else(|| vec![false, true], |internal| vec![internal]);
        unlocked(call)?;
        let network = call.network()?;
        let keys = call.host.keys.private_hd_keys(call.scope)?;
        let master = match given(options, "hdkey") {
            Some(hd_key) => private_key_of(call, &keys, typed::text(hd_key)?, network)?,
            None => only_active(&keys)?,
        };
        let timestamp = call.host.chain.time(call.scope)?;
        let known = call.host.wallet.descriptors(call.scope)?;
        let (mut imports, mut added) = (Vec::new(), Vec::new());
        for internal in sides {
            let text = descriptor_of(&master, kind, internal, network);
            let parsed = Descriptor::parse(text.expose(), network, Checksum::Optional);
            let parsed = parsed.ok().and_then(|parsed| parsed.into_iter().next());
            let public =
                parsed.ok_or_else(|| RpcError::internal("the descriptor does not parse"))?.to_normalized_string();
            if known.iter().any(|known| known.text.expose() == public) {
                continue;
            }
            let (active, internal) = (true, Some(internal));
            imports.push(DescriptorImport { text, active, internal, timestamp, ..DescriptorImport::default() });
            added.push(public);
        }
        if added.is_empty() {
            return Err(RpcError::wallet("Descriptor already exists"));
        }
        let outcomes = call.host.admin.add_own_descriptors(call.scope, imports)?;
        if outcomes.iter().any(|outcome| !matches!(outcome, ImportOutcome::Imported { .. })) {
            return Err(RpcError::internal("the descriptor could not be stored"));
        }
        Ok(json!({"descs": added}))
    }

    /// Upgrades the wallet. Every wallet has the latest version already.
    ///
    /// * `version` (default: 169900) - The new version.
    ///
    /// # Result
    /// {"wallet_name": "...", "previous_version": n, "current_version": n, "result": "...", "error": "..."}    (json
    /// object) result or error.
    ///
    /// # Example
    /// 169900
    #[method]
    fn upgradewallet(call: &Call<'_>, #[arg(kind = "numeric")] version: Option<&Value>) -> Result<Value, RpcError> {
        let wallet = unlocked(call)?;
        let wanted = version.map_or(Ok(0), int32)?;
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

    /// Shows the private key of an address, for importprivkey.
    ///
    /// * `address` - The address.
    ///
    /// # Result
    /// "key"    (string) The private key in wallet import format.
    ///
    /// # Example
    /// mrX9vMRYLfVy1BnZbc5gZjuyaqH3ZW2ZHz
    #[method(private_keys)]
    fn dumpprivkey(call: &Call<'_>, address: &str) -> Result<Json, RpcError> {
        unlocked(call)?;
        let script = single_address(address, call.network()?)?;
        let known = call.host.wallet.scripts(call.scope, vec![script.clone()])?.pop().flatten();
        let hash = key_hash(&script, known.as_ref());
        let hash = hash.ok_or_else(|| RpcError::type_error("Address does not refer to a key"))?;
        let key = call.host.keys.private_key(call.scope, hash)?;
        let unknown = || RpcError::wallet(format!("Private key for address {address} is not known"));
        to_json(key.ok_or_else(unknown)?.expose())
    }
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
