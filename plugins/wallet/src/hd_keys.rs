//! `addhdkey` and `derivehdkey`: adding an extended key without addresses, and deriving from the wallet's extended keys.

use std::str::FromStr;

use bitcoin::bip32::{ChildNumber, DerivationPath, Xpriv, Xpub};
use bitcoin::secp256k1::rand::thread_rng;
use bitcoin::secp256k1::{Secp256k1, SecretKey};
use bitcoin::{Network, NetworkKind};
use outrigger_kit::given;
use outrigger_sdk::methods::Json;
use outrigger_sdk::service::wallet::{DescriptorImport, HdKey, Import, ImportOutcome};
use outrigger_sdk::wire::Secret;
use outrigger_sdk::{Call, RpcError, methods, typed};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::keys::{read_xpub, unknown_private_key};
use crate::{WalletPlugin, to_json};

/// The descriptor function for a key without addresses.
const UNUSED: &str = "unused(";

fn read(text: &Secret, network: Network) -> Result<Xpriv, RpcError> {
    let kind = NetworkKind::from(network);
    if let Ok(key) = Xpriv::from_str(text.expose())
        && key.network == kind
    {
        return Ok(key);
    }
    let public = Xpub::from_str(text.expose()).is_ok_and(|key| key.network == kind);
    Err(RpcError::not_found(if public {
        "Extended public key (xpub) provided, but extended private key (xprv) is required"
    } else {
        "Could not parse HD key"
    }))
}

fn random(network: Network) -> Result<Xpriv, RpcError> {
    let mut seed = SecretKey::new(&mut thread_rng());
    let key = Xpriv::new_master(network, seed.as_ref());
    seed.non_secure_erase();
    key.map_err(|error| RpcError::internal(error.to_string()))
}

#[derive(Serialize)]
struct Derived<'a> {
    origin: String,
    xpub: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    xprv: Option<&'a str>,
}

/// Parses a path as bitcoind does: the leading `m` is optional, and a trailing slash is allowed.
fn key_path(text: &str) -> Result<DerivationPath, RpcError> {
    let steps = text.strip_suffix('/').filter(|steps| !steps.is_empty()).unwrap_or(text);
    // rust-bitcoin also reads numbers with a plus sign.
    let path = DerivationPath::from_str(steps).ok().filter(|_| !steps.contains('+'));
    let path = path.ok_or_else(|| RpcError::invalid_parameter("Invalid BIP32 keypath"))?;
    if !path.into_iter().any(ChildNumber::is_hardened) {
        return Err(RpcError::invalid_parameter("Derivation path requires at least one hardened step"));
    }
    Ok(path)
}

fn is_unused(key: &HdKey) -> bool {
    key.descriptors.iter().any(|(text, _)| text.starts_with(UNUSED))
}

fn is_active(key: &HdKey) -> bool {
    key.descriptors.iter().any(|(_, active)| *active)
}

fn named<'k>(keys: &'k [HdKey], text: &str, network: Network) -> Result<&'k HdKey, RpcError> {
    let xpub = read_xpub(text, network)?.to_string();
    let found = keys.iter().find(|key| key.xpub == xpub && (is_unused(key) || is_active(key)));
    found.ok_or_else(|| RpcError::not_found("HD key is not used by an active or unused(KEY) descriptor"))
}

/// The only key of an `unused()` descriptor; if there is none, the only key of the active descriptors.
fn only(keys: &[HdKey]) -> Result<&HdKey, RpcError> {
    let unused: Vec<&HdKey> = keys.iter().filter(|key| is_unused(key)).collect();
    let candidates = if unused.is_empty() { keys.iter().filter(|key| is_active(key)).collect() } else { unused };
    match candidates.as_slice() {
        [one] => Ok(one),
        [] => Err(RpcError::not_found("No active or unused(KEY) descriptor found")),
        _ => Err(RpcError::not_found("Unable to determine which HD key to use. Please specify with 'hdkey'")),
    }
}

#[methods(category = "Wallet", private_keys)]
impl WalletPlugin {
    /// Adds an extended private key (BIP 32) to the wallet, for createwalletdescriptor and derivehdkey. No address is
    /// derived from it.
    ///
    /// * `hdkey` (default: a new random key) - The extended private key.
    ///
    /// # Result
    /// {"xpub": "..."}    (json object) The extended public key.
    #[method]
    fn addhdkey(call: &Call<'_>, hdkey: Option<Secret>) -> Result<Value, RpcError> {
        let wallet = call.wallet()?;
        if !wallet.private_keys_enabled {
            return Err(RpcError::wallet("addhdkey is not available for wallets without private keys"));
        }
        wallet.check_unlocked()?;
        let network = call.network()?;
        let mut key = hdkey.map_or_else(|| random(network), |text| read(&text, network))?;
        let (xpub, descriptor) =
            (Xpub::from_priv(&Secp256k1::new(), &key).to_string(), Secret::new(format!("{UNUSED}{key})")));
        key.private_key.non_secure_erase();
        let known = call.host.wallet.hd_keys(call.scope)?;
        if known.iter().any(|known| known.has_private && known.xpub == xpub) {
            return Err(RpcError::wallet("HD key already exists"));
        }
        let timestamp = call.host.chain.time(call.scope)?;
        let descriptor = DescriptorImport { text: descriptor, timestamp, ..DescriptorImport::default() };
        let outcomes = call.host.import.import(call.scope, vec![Import::Descriptor { descriptor }])?;
        if !matches!(outcomes.as_slice(), [ImportOutcome::Imported { .. }]) {
            return Err(RpcError::internal("the descriptor could not be stored"));
        }
        Ok(json!({"xpub": xpub}))
    }

    /// Derives an extended key from one of the wallet's, which must be unlocked.
    ///
    /// * `path` - The path (BIP 32), with at least one hardened step.
    /// * `options` (default: {}) - Options, which a call by name can also give as arguments of their own:
    ///   * `private` (boolean; default: false) - Whether to show the private key.
    ///   * `hdkey` (string; default: the only key of an unused() descriptor, or of all active descriptors) - The
    ///     extended public key to derive from, as in gethdkeys.
    ///
    /// # Result
    /// {"origin": "[fingerprint/path]", "xpub": "...", "xprv": "..."}    (json object) "xprv" only if private keys
    /// are shown.
    ///
    /// # Example
    /// m/87h/0h/0h
    #[method]
    fn derivehdkey(call: &Call<'_>, path: &str, options: Option<&Map<String, Value>>) -> Result<Json, RpcError> {
        let wallet = call.wallet()?;
        if !wallet.private_keys_enabled {
            return Err(RpcError::wallet("derivehdkey is not available for watch-only wallets"));
        }
        let path = key_path(path)?;
        let private = given(options, "private").map_or(Ok(false), typed::flag)?;
        wallet.check_unlocked()?;
        let keys = call.host.keys.private_hd_keys(call.scope)?;
        let key = match given(options, "hdkey") {
            Some(wanted) => named(&keys, typed::text(wanted)?, call.network()?)?,
            None => only(&keys)?,
        };
        let text = key.xprv.as_ref().ok_or_else(|| unknown_private_key(&key.xpub))?;
        let mut master =
            Xpriv::from_str(text.expose()).map_err(|_| RpcError::internal("the stored key does not parse"))?;
        let secp = Secp256k1::new();
        let derived = master.derive_priv(&secp, &path);
        let fingerprint = master.fingerprint(&secp);
        master.private_key.non_secure_erase();
        let refused = |_| RpcError::invalid_parameter("Unable to derive HD key at the requested path");
        let mut derived = derived.map_err(refused)?;
        let xpub = Xpub::from_priv(&secp, &derived).to_string();
        let xprv = private.then(|| Secret::new(derived.to_string()));
        derived.private_key.non_secure_erase();
        // Even with `{:#}`, a `DerivationPath` marks hardened steps with an apostrophe.
        let steps = path.to_string().replace('\'', "h");
        to_json(Derived { origin: format!("[{fingerprint}/{steps}]"), xpub, xprv: xprv.as_ref().map(Secret::expose) })
    }
}
