//! `getaddressinfo`.

use bitcoin::hashes::{Hash, hash160};
use bitcoin::secp256k1::constants::PUBLIC_KEY_SIZE;
use bitcoin::{Network, Script, ScriptBuf};
use outrigger_kit::spend::known::{public_key, redeem_script, witness_script};
use outrigger_kit::without_nulls;
use outrigger_sdk::params::encode_hex;
use outrigger_sdk::service::wallet::{KeyOrigin, Ownership, ScriptInfo, SolvingData};
use outrigger_sdk::standard::{ScriptKind, address, address_json, classify};
use outrigger_sdk::{Call, RpcError, methods};
use serde_json::{Map, Value, json};

use crate::WalletPlugin;
use crate::keys::key_hash;

/// The `hdseedid` of a descriptor wallet, which has no HD seed.
const NO_SEED: &str = "0000000000000000000000000000000000000000";

/// The maximum depth of nested scripts: an output, its redeem script, and a witness script.
const MAX_DEPTH: u8 = 3;

#[methods(category = "Wallet", needs_tip = false)]
impl WalletPlugin {
    /// Gives the properties of an address, and the wallet's data for it.
    ///
    /// * `address` - The address.
    ///
    /// # Result
    /// {"address": "...", "scriptPubKey": "...", "ismine": true|false, "solvable": true|false, ..., "labels":
    /// ["..."]}    (json object)
    #[method(inline)]
    fn getaddressinfo(call: &Call<'_>, address: &str) -> Result<Map<String, Value>, RpcError> {
        call.wallet()?;
        let network = call.network()?;
        let script = address::to_script(address, network).map_err(|error| RpcError::not_found(error.message))?;
        let known = call.host.wallet.scripts(call.scope, vec![script.clone()])?.pop().flatten();
        Ok(describe(&script, known.as_ref(), network))
    }
}

/// The answer for a script, in Bitcoin Core 29's order of keys.
fn describe(script: &ScriptBuf, known: Option<&ScriptInfo>, network: Network) -> Map<String, Value> {
    let ownership = known.map_or(Ownership::None, |info| info.ownership);
    let solvable = known.is_some_and(|info| info.solvable);
    let mut object = members(json!({
        "address": address::from_script(script, network),
        "scriptPubKey": encode_hex(script.as_bytes()),
        "ismine": ownership == Ownership::Spendable,
        "solvable": solvable,
        "desc": known.map(|info| &info.descriptor).filter(|text| solvable && !text.is_empty()),
        "parent_desc": known.and_then(|info| info.parents.first()),
        "iswatchonly": ownership == Ownership::WatchOnly,
    }));
    let nothing = SolvingData::default();
    object.extend(details(script, known.map_or(&nothing, |info| &info.solving), network, MAX_DEPTH));
    let origin = known.and_then(|info| single_key(script, info));
    // For keys without a descriptor, Bitcoin Core marks hardened steps with an apostrophe.
    let has_descriptor = known.is_some_and(|info| !info.parents.is_empty());
    let path = |path: &str| if has_descriptor { path.to_owned() } else { path.replace('h', "'") };
    object.extend(members(json!({
        "ischange": known.is_some_and(|info| info.change),
        "timestamp": known.map(|info| info.timestamp).filter(|time| *time > 0),
        "hdkeypath": origin.map(|origin| path(&origin.path)),
        "hdseedid": origin.map(|_| NO_SEED),
        "hdmasterfingerprint": origin.map(|origin| encode_hex(&origin.fingerprint)),
        "labels": known.and_then(|info| info.label.as_ref()).into_iter().collect::<Vec<_>>(),
    })));
    object
}

/// The members of an object that are not null.
fn members(object: Value) -> Map<String, Value> {
    match without_nulls(object) {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

/// The origin of the key of a P2PKH, P2WPKH or P2SH-P2WPKH script, or of the internal key of a taproot output without a
/// script tree.
fn single_key<'a>(script: &Script, info: &'a ScriptInfo) -> Option<&'a KeyOrigin> {
    if let ScriptKind::Taproot { .. } = classify(script) {
        let data = info.solving.taproot.as_ref().filter(|data| data.merkle_root.is_none())?;
        // A public key of 32 or 33 bytes ends with its x coordinate.
        return info.origins.iter().find(|origin| origin.public_key.ends_with(&data.internal_key));
    }
    let hash = key_hash(script, Some(info))?;
    info.origins.iter().find(|origin| hash160::Hash::hash(&origin.public_key).to_byte_array() == hash)
}

/// The members for the type of a script with an address, and for its keys and nested scripts if the wallet knows them.
fn details(script: &Script, solving: &SolvingData, network: Network, depth: u8) -> Map<String, Value> {
    let mut object = address_json(script);
    let kind = classify(script);
    let nested = match kind {
        ScriptKind::ScriptHash { hash } => redeem_script(hash, solving),
        ScriptKind::WitnessV0ScriptHash { hash } => witness_script(hash, solving),
        _ => None,
    };
    if let Some(nested) = nested {
        object.extend(inner(nested, solving, network, depth));
    }
    if let ScriptKind::PubKeyHash { hash } | ScriptKind::WitnessV0KeyHash { hash } = kind
        && let Some(key) = public_key(hash, solving)
    {
        object.insert("pubkey".into(), json!(encode_hex(key)));
        if let ScriptKind::PubKeyHash { .. } = kind {
            object.insert("iscompressed".into(), json!(key.len() == PUBLIC_KEY_SIZE));
        }
    }
    object
}

/// A redeem script or witness script: its type, and its own address or the keys of a multisig.
fn inner(script: &Script, solving: &SolvingData, network: Network, depth: u8) -> Map<String, Value> {
    let mut object = Map::new();
    let kind = classify(script);
    object.insert("script".into(), json!(kind.name()));
    object.insert("hex".into(), json!(encode_hex(script.as_bytes())));
    if let Some(address) = address::from_script(script, network).filter(|_| depth > 0) {
        let mut embedded = details(script, solving, network, depth - 1);
        embedded.insert("address".into(), json!(address));
        embedded.insert("scriptPubKey".into(), json!(encode_hex(script.as_bytes())));
        if let Some(key) = embedded.get("pubkey") {
            object.insert("pubkey".into(), key.clone());
        }
        object.insert("embedded".into(), Value::Object(embedded));
    } else if let ScriptKind::Multisig { required, keys } = kind {
        let keys: Vec<String> = keys.into_iter().map(encode_hex).collect();
        object.insert("sigsrequired".into(), json!(required));
        object.insert("pubkeys".into(), json!(keys));
    }
    object
}
