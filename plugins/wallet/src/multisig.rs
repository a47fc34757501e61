//! `addmultisigaddress`: a multisig address whose script the wallet keeps.

use bitcoin::hashes::{Hash, hash160};
use outrigger_sdk::params::{Type, array, int32};
use outrigger_sdk::service::ErrorKind;
use outrigger_sdk::service::wallet::{AddressType, Import, ImportOutcome, KeyOrigin, KeysImport, WalletKind};
use outrigger_sdk::standard::{address, multisig};
use outrigger_sdk::wire::{Blob, Secret};
use serde_json::Value;

use crate::CallContext;
use crate::arguments::{address_type, label, wrong_type};
use crate::error::WalletError;
use crate::keys::key_hash;

/// The longest script that a legacy wallet keeps, in bytes: what an input can push.
const MAX_SCRIPT: usize = 520;

/// The keys of a multisig, and what the wallet knows of them.
#[derive(Default)]
struct Keys {
    public: Vec<Vec<u8>>,
    private: Vec<Secret>,
    origins: Vec<KeyOrigin>,
}

/// `addmultisigaddress`. The wallet's own keys among those that are given become keys that may sign for any script, as all are
/// in bitcoind.
pub fn add_multisig_address(context: &mut CallContext<'_>) -> Result<Value, WalletError> {
    let wallet = context.wallet()?;
    if wallet.kind == WalletKind::Descriptors {
        return Err(WalletError::OnlyLegacy);
    }
    let label = label(context.params.given(2))?;
    let required = int32(context.params.get(0))?;
    let mut keys = Keys::default();
    for given in array(context.params.get(1))? {
        let given = given.as_str().ok_or_else(|| wrong_type(given, Type::String))?;
        add_key(context, given, &mut keys)?;
    }
    let settings = context.host.wallet.spend_settings(context.scope)?;
    let asked = address_type(context.params.given(3), settings.address_type)?;
    if asked == AddressType::Bech32m {
        return Err(WalletError::TaprootMultisig);
    }
    let network = context.network()?;
    let multisig = multisig::multisig(required, &keys.public, asked, network)?;
    if multisig.inner.len() > MAX_SCRIPT {
        return Err(WalletError::MultisigSize);
    }
    if wallet.locked {
        return Err(ErrorKind::WalletLocked.into());
    }
    let (service, scope) = (&context.host.wallet, context.scope);
    for key in &keys.public {
        keys.private.extend(service.private_key(scope, hash160::Hash::hash(key).to_byte_array())?);
    }
    let program = (multisig.kind != AddressType::Legacy).then(|| multisig.inner.to_p2wsh());
    let keys = KeysImport {
        script_pubkeys: Vec::new(),
        scripts: [multisig.inner.clone()].into_iter().chain(program).collect(),
        private_keys: keys.private,
        public_keys: Vec::new(),
        origins: keys.origins,
        solving_data: true,
        internal: true,
        label: String::new(),
        keypool: false,
        timestamp: context.host.chain.time(scope)?,
    };
    let imported = service.import(scope, vec![Import::Keys { keys }])?.pop();
    if !matches!(imported, Some(ImportOutcome::Imported { .. })) {
        return Err(WalletError::ScriptNotStored);
    }
    service.set_label(scope, multisig.script.clone(), label)?;
    let known = service.scripts(scope, vec![multisig.script.clone()])?.pop().flatten();
    let mut answer = multisig.to_json(asked, network);
    if let (Some(known), Some(object)) = (known.filter(|known| !known.descriptor.is_empty()), answer.as_object_mut()) {
        object.insert("descriptor".to_owned(), known.descriptor.into());
    }
    Ok(answer)
}

/// Adds a key that is given in hexadecimal or by an address of it.
fn add_key(context: &CallContext<'_>, given: &str, keys: &mut Keys) -> Result<(), WalletError> {
    if given.bytes().all(|digit| digit.is_ascii_hexdigit()) && matches!(given.len(), 66 | 130) {
        keys.public.push(multisig::public_key(given)?);
        return Ok(());
    }
    let script = address::to_script(given, context.network()?);
    let script = script.map_err(|_| WalletError::KeyAddress(given.to_owned()))?;
    let known = context.host.wallet.scripts(context.scope, vec![script.clone()])?.pop().flatten();
    let hash = key_hash(&script, known.as_ref()).ok_or_else(|| WalletError::NoKeyOf(given.to_owned()))?;
    let is_key = |key: &Blob| hash160::Hash::hash(key).to_byte_array() == hash;
    let key = known.iter().flat_map(|known| &known.solving.public_keys).find(|key| is_key(key));
    keys.public.push(key.ok_or_else(|| WalletError::NoPublicKey(given.to_owned()))?.0.clone());
    let origins = known.into_iter().flat_map(|known| known.origins);
    keys.origins.extend(origins.filter(|origin| is_key(&origin.public_key)));
    Ok(())
}
