//! importmulti: checks requests, and turns them into imports.
//!
//! A request has a script (or address) with its keys and scripts, or a descriptor. An error in the script or descriptor drops
//! the warnings; a later error keeps them.

mod analysis;
mod descriptor;
mod script;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;

use bitcoin::hashes::{Hash, hash160};
use bitcoin::{Network, NetworkKind, ScriptBuf};
use outrigger_sdk::params::{Type, check_types, flag};
use outrigger_sdk::service::wallet::{Import, KeyOrigin, KeysImport, WalletInfo};
use outrigger_sdk::service::{ErrorKind, ServiceError};
use outrigger_sdk::sign::WifKey;
use outrigger_sdk::wire::{Blob, Secret};
use outrigger_sdk::{Call, Reply, RpcError, methods};
use serde_json::Value;

use crate::descriptors::label_of_internal;
use crate::outcome::{Accepted, Checked, Item, Outcome};
use crate::request::{self, Fields, stored_time};
use crate::rescan::{KEY, Reservation};
use crate::{ImportPlugin, imported, store};
pub use script::hex_script;

/// The maximum number of keys that one call may derive from its descriptors: two at each index of the largest range. Each costs
/// a curve multiplication, and all results stay in memory until the wallet has stored them.
const MAX_DERIVED_KEYS: u64 = 2_000_000;

/// The warning for a request without `watchonly` that lacks private keys.
const KEYS_MISSING: &str = "Some private keys are missing, outputs will be considered watchonly. If this is intentional, specify the watchonly flag.";
/// The warning for a request with `watchonly` that lacks no private key.
const KEYS_COMPLETE: &str = "All private keys are provided, outputs will be considered spendable. If this is intentional, do not specify the watchonly flag.";
/// The warning for a private key that no script of the request needs.
const IRRELEVANT_KEY: &str = "Ignoring irrelevant private key.";

#[methods(category = "Wallet", long_running, private_keys, unchecked)]
impl ImportPlugin {
    /// Imports addresses, scripts, public and private keys, then rescans the chain from the earliest of their
    /// creation times. The wallet watches an import that lacks a private key for spending. The call returns after the
    /// rescan; getwalletinfo shows the progress.
    ///
    /// * `requests` - The imports, each an object with: desc or scriptPubKey (hexadecimal script, or {"address":
    ///   "..."}), timestamp (creation time in seconds, or "now"), redeemscript, witnessscript, pubkeys, keys, range,
    ///   internal, watchonly, label, keypool.
    /// * `options` (default: {}) - Options, also accepted as named arguments:
    ///   * `rescan` (boolean; default: true) - Whether to rescan the chain afterwards.
    ///
    /// # Result
    /// [{"success": true|false, "error": {"code": n, "message": "..."}, "warnings": ["..."]}, ...]    (json array)
    /// One outcome per request; error and warnings are optional.
    ///
    /// # Example
    /// '[{"scriptPubKey": {"address": "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080"}, "timestamp": 1455191480, "watchonly": true}]' '{"rescan": false}'
    #[method]
    fn importmulti(
        &self,
        call: &Call<'_>,
        #[arg(kind = "array")] requests: &Value,
        #[arg(kind = "object")] options: Option<&Value>,
        reply: Reply,
    ) {
        self.answer(reply, || {
            let wallet = call.wallet()?;
            // Omitted options count as empty; null has a wrong type.
            let given = [requests, options.unwrap_or(&Value::Null)].into_iter().take(call.given());
            check_types(given, &[Type::Array, Type::Object])?;
            let rescan = options.and_then(|options| options.get("rescan")).map_or(Ok(true), flag)?;
            let reservation = if rescan { Some(Reservation::new(call)?) } else { None };
            wallet.check_unlocked()?;
            let requests = requests.as_array().map(Vec::as_slice).unwrap_or_default();
            let timestamps = requests
                .iter()
                .map(|request| request::timestamp(request, wallet.synced))
                .collect::<Result<Vec<_>, _>>()?;
            let (network, budget) = (call.network()?, MAX_DERIVED_KEYS);
            let mut checks = Checks { network, wallet: &wallet, budget, stopping: &self.stopping, aborted: false };
            let times = timestamps.iter().map(|timestamp| stored_time(*timestamp));
            let checked = requests.iter().zip(times).map(|(request, time)| checks.request(request, time)).collect();
            if checks.aborted {
                return Err(ServiceError::from(ErrorKind::ShuttingDown).into());
            }
            let outcomes = store(call, checked)?;
            Ok(imported(&wallet, reservation, outcomes, timestamps, KEY))
        });
    }
}

/// HASH160 of a public key (`CKeyID`). Its order is the order of bitcoind's maps.
type KeyId = [u8; 20];

fn key_id(public_key: &[u8]) -> KeyId {
    hash160::Hash::hash(public_key).to_byte_array()
}

/// A script with its length. Its order is the order of bitcoind's sets: shortest first, then by bytes.
type OrderedScript = (usize, ScriptBuf);

fn ordered(script: ScriptBuf) -> OrderedScript {
    (script.len(), script)
}

/// The keys and scripts of a request.
#[derive(Default)]
struct Material {
    script_pubkeys: BTreeSet<OrderedScript>,
    /// Redeem scripts and witness scripts.
    scripts: BTreeSet<OrderedScript>,
    public_keys: BTreeMap<KeyId, Vec<u8>>,
    /// The order of the request. May contain keys that `public_keys` no longer has.
    public_key_order: Vec<KeyId>,
    private_keys: BTreeMap<KeyId, Secret>,
    origins: Vec<KeyOrigin>,
    solving_data: bool,
}

impl Material {
    fn add_public_key(&mut self, public_key: Vec<u8>) {
        let id = key_id(&public_key);
        self.public_keys.entry(id).or_insert(public_key);
        self.public_key_order.push(id);
    }

    fn import(self) -> KeysImport {
        let mut public_keys = self.public_keys;
        let bare = |scripts: BTreeSet<OrderedScript>| scripts.into_iter().map(|(_, script)| script).collect();
        KeysImport {
            script_pubkeys: bare(self.script_pubkeys),
            scripts: bare(self.scripts),
            private_keys: self.private_keys.into_values().collect(),
            public_keys: self.public_key_order.iter().filter_map(|id| public_keys.remove(id)).map(Blob).collect(),
            origins: self.origins,
            solving_data: self.solving_data,
            ..KeysImport::default()
        }
    }
}

/// The material of a request, or of one path of its descriptor, and whether it is internal (change).
type Part = (Material, bool);

/// Checks the requests of a call.
struct Checks<'h> {
    network: Network,
    wallet: &'h WalletInfo,
    /// The number of keys that the call may still derive from its descriptors.
    budget: u64,
    /// Whether the host is stopping, which aborts derivation.
    stopping: &'h AtomicBool,
    /// Whether `stopping` aborted the derivation, so that the results are incomplete.
    aborted: bool,
}

impl Checks<'_> {
    fn request(&mut self, request: &Value, timestamp: u64) -> Checked<'static> {
        let (parts, warnings) = self.parts(request, timestamp).map_err(|error| Outcome::failed(error, Vec::new()))?;
        let item = Item::Named(stored_first(&parts));
        Ok((Import::Keys { parts }, Accepted { warnings, item, ranged: false }))
    }

    fn parts(&mut self, request: &Value, timestamp: u64) -> Result<(Vec<KeysImport>, Vec<String>), RpcError> {
        let fields = Fields::of(request)?;
        let internal = fields.flag("internal")?;
        if internal && fields.has("label") {
            return Err(label_of_internal());
        }
        let label = fields.text("label")?.unwrap_or_default();
        let keypool = fields.flag("keypool")?;
        if keypool && self.wallet.signs() {
            let message = "Keys can only be imported to the keypool when private keys are disabled";
            return Err(RpcError::invalid_parameter(message));
        }
        let (materials, warnings) = match (fields.get("scriptPubKey"), fields.has("desc")) {
            (Some(_), true) => {
                let message = "Both a descriptor and a scriptPubKey should not be provided.";
                return Err(RpcError::invalid_parameter(message));
            }
            (Some(script_pubkey), false) => {
                let (material, warnings) = script::read(fields, script_pubkey, internal, self.network)?;
                (vec![(material, internal)], warnings)
            }
            (None, true) => descriptor::read(fields, internal, self)?,
            (None, false) => {
                let message = "Either a descriptor or scriptPubKey must be provided.";
                return Err(RpcError::invalid_parameter(message));
            }
        };
        let import = |(part, internal): Part| KeysImport {
            internal,
            label: label.to_owned(),
            keypool,
            timestamp,
            ..part.import()
        };
        Ok((materials.into_iter().map(import).collect(), warnings))
    }
}

/// The kind of item to name if storing fails. bitcoind stores scripts first, then private keys, then the rest.
fn stored_first(parts: &[KeysImport]) -> &'static str {
    if parts.iter().any(|part| !part.scripts.is_empty()) {
        "script"
    } else if parts.iter().any(|part| !part.private_keys.is_empty()) {
        "key"
    } else {
        "address"
    }
}

/// The warning if `watchonly` contradicts the request's private keys.
fn spendable_warning(watch_only: bool, spendable: bool) -> Option<String> {
    match (watch_only, spendable) {
        (false, false) => Some(KEYS_MISSING.to_owned()),
        (true, true) => Some(KEYS_COMPLETE.to_owned()),
        _ => None,
    }
}

/// Reads an element of the field `keys`: the key's id and its WIF text.
fn private_key(value: &Value, network: Network) -> Result<(KeyId, Secret), RpcError> {
    let text = request::text(value)?;
    let key = WifKey::parse(text, NetworkKind::from(network)).map_err(|_| invalid_private_key())?;
    Ok((key_id(key.public_key()), Secret::new(text.to_owned())))
}

pub fn invalid_private_key() -> RpcError {
    RpcError::not_found("Invalid private key encoding")
}
