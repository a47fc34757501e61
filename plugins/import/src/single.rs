//! importaddress, importpubkey, importprivkey: a single address, script or key.
//!
//! As in bitcoind, the import counts as old as the chain, and a script that the wallet owns already gets the label.

use bitcoin::hashes::{Hash, hash160};
use bitcoin::{ScriptBuf, WPubkeyHash};
use outrigger_sdk::RpcError;
use outrigger_sdk::params::{Params, text};
use outrigger_sdk::service::Scope;
use outrigger_sdk::service::wallet::{Import, ImportOutcome, KeysImport, Ownership, WalletInfo};
use outrigger_sdk::sign::WifKey;
use outrigger_sdk::standard::{ScriptKind, address, classify, multisig};
use outrigger_sdk::wire::{Blob, Secret};
use serde_json::Value;

use crate::descriptors::invalid_label;
use crate::multi::{hex_script, invalid_private_key};
use crate::outcome::{not_added, private_keys_disabled};
use crate::request::refuse_quoting;
use crate::rescan::{Pending, Reservation};
use crate::{ImportPlugin, Imported};

/// The creation time of an import without one, in seconds. Every chain is younger.
const OLDEST: u64 = 1;
/// The length of a compressed public key, in bytes.
const COMPRESSED_LEN: usize = 33;

/// An import without keys and scripts.
fn empty_import() -> KeysImport {
    KeysImport {
        script_pubkeys: Vec::new(),
        scripts: Vec::new(),
        private_keys: Vec::new(),
        public_keys: Vec::new(),
        origins: Vec::new(),
        solving_data: true,
        internal: true,
        label: String::new(),
        keypool: false,
        timestamp: OLDEST,
    }
}

/// The argument `label`, empty by default.
fn label(params: &Params) -> Result<String, RpcError> {
    match params.given(1).map(text).transpose()? {
        Some("*") => Err(invalid_label()),
        label => Ok(label.unwrap_or_default().to_owned()),
    }
}

/// The scripts that pay to a single key, the shortest script first.
fn scripts_of_key(public_key: &[u8]) -> Vec<ScriptBuf> {
    let hash = hash160::Hash::hash(public_key);
    let p2pkh = ScriptBuf::new_p2pkh(&hash.into());
    if public_key.len() != COMPRESSED_LEN {
        return vec![p2pkh];
    }
    let p2wpkh = ScriptBuf::new_p2wpkh(&WPubkeyHash::from(hash));
    let nested = p2wpkh.to_p2sh();
    vec![p2wpkh, nested, p2pkh]
}

impl ImportPlugin {
    /// Reserves a rescan, unless the argument `rescan` declines it.
    fn reserve_unless_declined(&self, params: &Params, scope: Scope) -> Result<Option<Reservation<'_>>, RpcError> {
        if !params.flag_or(2, true)? {
            return Ok(None);
        }
        if !self.has_block(scope, 0)? {
            let pruned = RpcError::wallet("Rescan is disabled when blocks are pruned");
            return Err(self.unless_validating(scope, pruned));
        }
        Ok(Some(self.reserve(scope)?))
    }

    pub fn import_address(&self, params: &Params, scope: Scope) -> Result<Imported<'_>, RpcError> {
        let wallet = self.host.wallet.info(scope)?;
        let label = label(params)?;
        let rescan = self.reserve_unless_declined(params, scope)?;
        let p2sh = params.flag_or(3, false)?;
        let text = params.text(0)?;
        let mut keys = KeysImport { solving_data: false, internal: false, label, ..empty_import() };
        if let Ok(script) = address::to_script(text, self.network(scope)?) {
            if p2sh {
                let message = "Cannot use the p2sh flag with an address - use a script instead";
                return Err(RpcError::not_found(message));
            }
            if matches!(classify(&script), ScriptKind::Taproot { .. } | ScriptKind::WitnessUnknown { .. }) {
                return Err(RpcError::not_found("Bech32m addresses cannot be imported into legacy wallets"));
            }
            keys.script_pubkeys.push(script);
        } else {
            let script = hex_script(text).ok_or_else(|| RpcError::not_found("Invalid Bitcoin address or script"))?;
            keys.script_pubkeys.extend(p2sh.then(|| script.to_p2sh()));
            keys.script_pubkeys.push(script.clone());
            keys.script_pubkeys.sort_by(|one, other| (one.len(), one).cmp(&(other.len(), other)));
            keys.scripts.push(script);
        }
        self.import_single(scope, keys, not_added("address"))?;
        Ok(imported(wallet, rescan))
    }

    pub fn import_public_key(&self, params: &Params, scope: Scope) -> Result<Imported<'_>, RpcError> {
        let wallet = self.host.wallet.info(scope)?;
        let label = label(params)?;
        let rescan = self.reserve_unless_declined(params, scope)?;
        let public_key = multisig::public_key(params.text(0)?)?;
        let keys = KeysImport {
            script_pubkeys: scripts_of_key(&public_key),
            public_keys: vec![Blob(public_key)],
            internal: false,
            label,
            ..empty_import()
        };
        self.import_single(scope, keys, not_added("address"))?;
        Ok(imported(wallet, rescan))
    }

    /// importprivkey. All addresses of the key get the label. Without one, the unlabelled addresses get an empty label.
    pub fn import_private_key(&self, mut params: Params, scope: Scope) -> Result<Imported<'_>, RpcError> {
        let wallet = self.host.wallet.info(scope)?;
        if !wallet.private_keys_enabled {
            return Err(private_keys_disabled());
        }
        wallet.check_unlocked()?;
        let label = label(&params)?;
        let rescan = self.reserve_unless_declined(&params, scope)?;
        let wif = params.0.get_mut(0).map(Value::take);
        let Some(Value::String(wif)) = wif else { return Err(invalid_private_key()) };
        let wif = Secret::new(wif);
        let key = WifKey::parse(wif.expose(), self.network(scope)?.into()).map_err(|_| invalid_private_key())?;
        self.import_single(scope, KeysImport { private_keys: vec![wif], ..empty_import() }, not_added("key"))?;
        let scripts = scripts_of_key(key.public_key());
        let known = self.host.wallet.scripts(scope, scripts.clone())?;
        for (script, info) in scripts.into_iter().zip(known) {
            if params.given(1).is_some() || info.is_none_or(|info| info.label.is_none()) {
                self.host.book.set_label(scope, script, label.clone())?;
            }
        }
        Ok(imported(wallet, rescan))
    }

    /// Stores keys and scripts. A script that the wallet can spend from already only gets the label.
    fn import_single(&self, scope: Scope, mut keys: KeysImport, not_stored: RpcError) -> Result<(), RpcError> {
        let known = self.host.wallet.scripts(scope, keys.script_pubkeys.clone())?;
        let mut known = known.into_iter().map(|info| info.is_some_and(|info| info.ownership == Ownership::Spendable));
        let owned: Vec<ScriptBuf> = keys.script_pubkeys.extract_if(.., |_| known.next().unwrap_or(false)).collect();
        let label = keys.label.clone();
        match self.host.import.import(scope, vec![Import::Keys { keys }])?.pop() {
            Some(ImportOutcome::Imported { .. }) => {}
            Some(ImportOutcome::PrivateKeysDisabled) => return Err(private_keys_disabled()),
            Some(ImportOutcome::BadDescriptor { reason }) => return Err(refuse_quoting(&reason)),
            _ => return Err(not_stored),
        }
        for script in owned {
            self.host.book.set_label(scope, script, label.clone())?;
        }
        Ok(())
    }
}

/// The stored import, with a rescan of the whole chain if one is reserved.
fn imported(wallet: WalletInfo, rescan: Option<Reservation<'_>>) -> Imported<'_> {
    let pending = Pending::Null { from_time: OLDEST };
    Imported { pending, rescan: rescan.map(|reservation| (wallet.name, reservation)) }
}
