//! importaddress, importpubkey, importprivkey: a single address, script or key.
//!
//! As in bitcoind they count as old as the chain, and a script that the wallet owns already is no error: it gets the label.

use bitcoin::hashes::{Hash, hash160};
use bitcoin::{ScriptBuf, WPubkeyHash};
use outrigger_sdk::params::{Params, decode_hex, flag, text};
use outrigger_sdk::service::Scope;
use outrigger_sdk::service::wallet::{Import, ImportOutcome, KeysImport, Ownership, WalletInfo};
use outrigger_sdk::sign::WifKey;
use outrigger_sdk::standard::{ScriptKind, address, classify, multisig};
use outrigger_sdk::wire::{Blob, Secret};
use serde_json::Value;

use crate::error::ImportError;
use crate::rescan::{Pending, Reservation};
use crate::{ImportPlugin, Imported, check_unlocked};

/// The birth time of what is imported without one, in seconds: older than every chain.
const OLDEST: u64 = 1;
/// The length of a compressed public key, in bytes.
const COMPRESSED_LEN: usize = 33;

/// Keys and scripts of which nothing is known yet.
fn nothing(timestamp: u64) -> KeysImport {
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
        timestamp,
    }
}

/// A label, empty by default.
fn label(params: &Params) -> Result<String, ImportError> {
    match params.given(1).map(text).transpose()? {
        Some("*") => Err(ImportError::Label),
        label => Ok(label.unwrap_or_default().to_owned()),
    }
}

/// The scripts that pay to a key alone, the shortest first.
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
    /// A rescan, unless the argument at `index` says that there is to be none.
    fn rescan_unless(
        &self,
        params: &Params,
        index: usize,
        scope: Scope,
    ) -> Result<Option<Reservation<'_>>, ImportError> {
        let wanted = params.given(index).map_or(Ok(true), flag)?;
        if wanted && !self.has_block(scope, 0)? {
            return Err(self.unless_validating(scope, ImportError::RescanOfPruned));
        }
        Ok(if wanted { Some(self.reserve(scope)?) } else { None })
    }

    /// importaddress: watches an address, or a script with its P2SH form where that is asked for.
    pub fn import_address(&self, params: &Params, scope: Scope) -> Result<Imported<'_>, ImportError> {
        let wallet = self.host.wallet.info(scope)?;
        let label = label(params)?;
        let rescan = self.rescan_unless(params, 2, scope)?;
        let p2sh = params.given(3).map_or(Ok(false), flag)?;
        let given = params.text(0)?;
        let mut keys = KeysImport { solving_data: false, internal: false, label, ..nothing(OLDEST) };
        if let Ok(script) = address::to_script(given, self.network(scope)?) {
            if p2sh {
                return Err(ImportError::P2shOfAddress);
            }
            if matches!(classify(&script), ScriptKind::Taproot { .. } | ScriptKind::WitnessUnknown { .. }) {
                return Err(ImportError::Bech32m);
            }
            keys.script_pubkeys.push(script);
        } else {
            let script = decode_hex(given).filter(|script| !script.is_empty()).ok_or(ImportError::AddressOrScript)?;
            let script = ScriptBuf::from_bytes(script);
            keys.script_pubkeys.extend(p2sh.then(|| script.to_p2sh()));
            keys.script_pubkeys.push(script.clone());
            keys.script_pubkeys.sort_by(|one, other| (one.len(), one).cmp(&(other.len(), other)));
            keys.scripts.push(script);
        }
        self.import_single(scope, keys, ImportError::AddressNotStored)?;
        Ok(imported(wallet, rescan))
    }

    /// importpubkey: watches what pays to a public key.
    pub fn import_public_key(&self, params: &Params, scope: Scope) -> Result<Imported<'_>, ImportError> {
        let wallet = self.host.wallet.info(scope)?;
        let label = label(params)?;
        let rescan = self.rescan_unless(params, 2, scope)?;
        let public_key = multisig::public_key(params.text(0)?)?;
        let keys = KeysImport {
            script_pubkeys: scripts_of_key(&public_key),
            public_keys: vec![Blob(public_key)],
            internal: false,
            label,
            ..nothing(OLDEST)
        };
        self.import_single(scope, keys, ImportError::AddressNotStored)?;
        Ok(imported(wallet, rescan))
    }

    /// importprivkey. All addresses of the key get the label that was given; without one, those get an empty one that have none.
    pub fn import_private_key(&self, mut params: Params, scope: Scope) -> Result<Imported<'_>, ImportError> {
        let wallet = self.host.wallet.info(scope)?;
        if !wallet.private_keys_enabled {
            return Err(ImportError::PrivateKeysDisabled);
        }
        check_unlocked(&wallet)?;
        let label = label(&params)?;
        let rescan = self.rescan_unless(&params, 2, scope)?;
        let wif = params.0.get_mut(0).map(Value::take);
        let Some(Value::String(wif)) = wif else { return Err(ImportError::PrivateKey) };
        let wif = Secret::new(wif);
        let key = WifKey::parse(wif.expose(), self.network(scope)?.into()).map_err(|_| ImportError::PrivateKey)?;
        self.import_single(
            scope,
            KeysImport { private_keys: vec![wif], ..nothing(OLDEST) },
            ImportError::KeyNotStored,
        )?;
        let scripts = scripts_of_key(key.public_key());
        let known = self.host.wallet.scripts(scope, scripts.clone())?;
        for (script, info) in scripts.into_iter().zip(known) {
            if params.given(1).is_some() || info.is_none_or(|info| info.label.is_none()) {
                self.host.wallet.set_label(scope, script, label.clone())?;
            }
        }
        Ok(imported(wallet, rescan))
    }

    /// Stores keys and scripts. Scripts that the wallet can spend from already only get the label.
    fn import_single(&self, scope: Scope, mut keys: KeysImport, not_stored: ImportError) -> Result<(), ImportError> {
        let known = self.host.wallet.scripts(scope, keys.script_pubkeys.clone())?;
        let mut known = known.into_iter().map(|info| info.is_some_and(|info| info.ownership == Ownership::Spendable));
        let owned: Vec<ScriptBuf> = keys.script_pubkeys.extract_if(.., |_| known.next().unwrap_or(false)).collect();
        let label = keys.label.clone();
        match self.host.wallet.import(scope, vec![Import::Keys { keys }])?.pop() {
            Some(ImportOutcome::Imported { .. }) => {}
            Some(ImportOutcome::PrivateKeysDisabled) => return Err(ImportError::PrivateKeysDisabled),
            Some(ImportOutcome::BadDescriptor { reason }) => return Err(ImportError::DescriptorRefused(reason)),
            _ => return Err(not_stored),
        }
        for script in owned {
            self.host.wallet.set_label(scope, script, label.clone())?;
        }
        Ok(())
    }
}

/// The end of an import: the whole chain is rescanned where a rescan was reserved.
fn imported(wallet: WalletInfo, rescan: Option<Reservation<'_>>) -> Imported<'_> {
    let pending = Pending::Null { from_time: OLDEST };
    Imported { pending, rescan: rescan.map(|reservation| (wallet.name, reservation)) }
}
