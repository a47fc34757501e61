//! importaddress, importpubkey, importprivkey: a single address, script or key.
//!
//! As in bitcoind, the rescan covers the whole chain, and a script that the wallet already owns only gets the label.

use bitcoin::hashes::{Hash, hash160};
use bitcoin::secp256k1::constants::PUBLIC_KEY_SIZE;
use bitcoin::{ScriptBuf, WPubkeyHash};
use outrigger_kit::invalid_label;
use outrigger_sdk::service::wallet::{Import, ImportOutcome, KeysImport, Ownership};
use outrigger_sdk::sign::WifKey;
use outrigger_sdk::standard::{ScriptKind, address, classify, multisig};
use outrigger_sdk::wire::{Blob, Secret};
use outrigger_sdk::{Call, Reply, RpcError, methods};

use crate::multi::{hex_script, invalid_private_key};
use crate::outcome::{not_added, private_keys_disabled};
use crate::request::{EARLIEST_TIME, refuse_quoting};
use crate::rescan::{Pending, Reservation, has_block, unless_fetched_later};
use crate::{ImportPlugin, Imported};

/// The argument `label`, empty by default.
fn read_label(label: Option<&str>) -> Result<String, RpcError> {
    match label.unwrap_or_default() {
        "*" => Err(invalid_label()),
        label => Ok(label.to_owned()),
    }
}

/// The scripts that pay to a single key, the shortest script first.
fn scripts_of_key(public_key: &[u8]) -> Vec<ScriptBuf> {
    let hash = hash160::Hash::hash(public_key);
    let p2pkh = ScriptBuf::new_p2pkh(&hash.into());
    if public_key.len() != PUBLIC_KEY_SIZE {
        return vec![p2pkh];
    }
    let p2wpkh = ScriptBuf::new_p2wpkh(&WPubkeyHash::from(hash));
    let nested = p2wpkh.to_p2sh();
    vec![p2wpkh, nested, p2pkh]
}

#[methods(category = "Wallet", long_running, private_keys)]
impl ImportPlugin {
    /// Watches an address or a script, then rescans the chain. The call returns after the rescan; getwalletinfo shows
    /// the progress.
    ///
    /// * `address` - The address, or a script in hexadecimal.
    /// * `label` (default: "") - The label of the addresses.
    /// * `rescan` - Whether to rescan the chain and the mempool afterwards.
    /// * `p2sh` - Whether to watch the P2SH form of the script as well.
    ///
    /// # Result
    /// null    (json null)
    ///
    /// # Example
    /// bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080 watched false
    #[method]
    fn importaddress(
        &self,
        call: &Call<'_>,
        address: &str,
        label: Option<&str>,
        #[arg(default = true)] rescan: bool,
        #[arg(default = false)] p2sh: bool,
        reply: Reply,
    ) {
        self.watch(call, label, rescan, reply, || {
            let mut keys = KeysImport::default();
            if let Ok(script) = address::to_script(address, call.network()?) {
                if p2sh {
                    let message = "Cannot use the p2sh flag with an address - use a script instead";
                    return Err(RpcError::not_found(message));
                }
                if matches!(classify(&script), ScriptKind::Taproot { .. } | ScriptKind::WitnessUnknown { .. }) {
                    return Err(RpcError::not_found("Bech32m addresses cannot be imported into legacy wallets"));
                }
                keys.script_pubkeys.push(script);
            } else {
                let script =
                    hex_script(address).ok_or_else(|| RpcError::not_found("Invalid Bitcoin address or script"))?;
                keys.script_pubkeys.extend(p2sh.then(|| script.to_p2sh()));
                keys.script_pubkeys.push(script.clone());
                keys.script_pubkeys.sort_by(|one, other| (one.len(), one).cmp(&(other.len(), other)));
                keys.scripts.push(script);
            }
            Ok(keys)
        });
    }

    /// Watches the P2PKH, P2WPKH and P2SH-P2WPKH scripts of a public key, then rescans the chain. The call returns
    /// after the rescan; getwalletinfo shows the progress.
    ///
    /// * `pubkey` - The public key in hexadecimal.
    /// * `label` (default: "") - The label of the addresses.
    /// * `rescan` - Whether to rescan the chain and the mempool afterwards.
    ///
    /// # Result
    /// null    (json null)
    ///
    /// # Example
    /// 0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798 watched false
    #[method]
    fn importpubkey(
        &self,
        call: &Call<'_>,
        pubkey: &str,
        label: Option<&str>,
        #[arg(default = true)] rescan: bool,
        reply: Reply,
    ) {
        self.watch(call, label, rescan, reply, || {
            let public_key = multisig::public_key(pubkey)?;
            let script_pubkeys = scripts_of_key(&public_key);
            let public_keys = vec![Blob(public_key)];
            Ok(KeysImport { script_pubkeys, public_keys, solving_data: true, ..KeysImport::default() })
        });
    }

    /// Adds a private key in the format of dumpprivkey, then rescans the chain. The call returns after the rescan;
    /// getwalletinfo shows the progress.
    ///
    /// * `privkey` - The private key in wallet import format.
    /// * `label` (default: the address's current label, otherwise "") - The label of the key's addresses.
    /// * `rescan` - Whether to rescan the chain and the mempool afterwards.
    ///
    /// # Result
    /// null    (json null)
    ///
    /// # Example
    /// "cSfcV..." mine false
    #[method]
    fn importprivkey(
        &self,
        call: &Call<'_>,
        privkey: Secret,
        label: Option<&str>,
        #[arg(default = true)] rescan: bool,
        reply: Reply,
    ) {
        self.answer(reply, || {
            let wallet = call.wallet()?;
            if !wallet.private_keys_enabled {
                return Err(private_keys_disabled());
            }
            wallet.check_unlocked()?;
            let text = read_label(label)?;
            let rescan = reserve_if(rescan, call)?;
            let key = WifKey::parse(privkey.expose(), call.network()?.into()).map_err(|_| invalid_private_key())?;
            let private_keys = vec![privkey];
            let keys = KeysImport { private_keys, solving_data: true, internal: true, ..KeysImport::default() };
            import_single(call, keys, not_added("key"))?;
            let scripts = scripts_of_key(key.public_key());
            let known = call.host.wallet.scripts(call.scope, scripts.clone())?;
            // All addresses of the key get the label. Without one, the unlabelled addresses get an empty label.
            for (script, info) in scripts.into_iter().zip(known) {
                if label.is_some() || info.is_none_or(|info| info.label.is_none()) {
                    call.host.book.set_label(call.scope, script, text.clone())?;
                }
            }
            Ok(Imported { pending: Pending::Null, rescan })
        });
    }

    /// Imports the keys and scripts of an address, then rescans the chain.
    fn watch(
        &self,
        call: &Call<'_>,
        label: Option<&str>,
        rescan: bool,
        reply: Reply,
        keys: impl FnOnce() -> Result<KeysImport, RpcError>,
    ) {
        self.answer(reply, || {
            call.wallet()?;
            let label = read_label(label)?;
            let rescan = reserve_if(rescan, call)?;
            import_single(call, KeysImport { label, ..keys()? }, not_added("address"))?;
            Ok(Imported { pending: Pending::Null, rescan })
        });
    }
}

/// Reserves a rescan if the call asks for one.
fn reserve_if<'a>(wanted: bool, call: &Call<'a>) -> Result<Option<Reservation<'a>>, RpcError> {
    if !wanted {
        return Ok(None);
    }
    if !has_block(call, 0)? {
        let pruned = RpcError::wallet("Rescan is disabled when blocks are pruned");
        return Err(unless_fetched_later(call, 0, pruned));
    }
    Ok(Some(Reservation::new(call)?))
}

/// Stores keys and scripts. A script that the wallet can already spend from only gets the label.
fn import_single(call: &Call<'_>, mut keys: KeysImport, not_stored: RpcError) -> Result<(), RpcError> {
    let known = call.host.wallet.scripts(call.scope, keys.script_pubkeys.clone())?;
    let mut known = known.into_iter().map(|info| info.is_some_and(|info| info.ownership == Ownership::Spendable));
    let owned: Vec<ScriptBuf> = keys.script_pubkeys.extract_if(.., |_| known.next().unwrap_or(false)).collect();
    let label = keys.label.clone();
    keys.timestamp = EARLIEST_TIME;
    match call.host.import.import(call.scope, vec![Import::Keys { parts: vec![keys] }])?.pop() {
        Some(ImportOutcome::Imported { .. }) => {}
        Some(ImportOutcome::BadDescriptor { reason }) => return Err(refuse_quoting(&reason)),
        _ => return Err(not_stored),
    }
    for script in owned {
        call.host.book.set_label(call.scope, script, label.clone())?;
    }
    Ok(())
}
