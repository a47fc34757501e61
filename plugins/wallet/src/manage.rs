//! Making, loading and unloading wallets, and listing them.

use outrigger_sdk::params::{flag, text};
use outrigger_sdk::service::ErrorKind;
use outrigger_sdk::service::wallet::CreateOptions;
use serde_json::{Map, Value, json};

use crate::CallContext;
use crate::error::WalletError;

/// What createwallet says of a passphrase without a character.
const EMPTY_PASSPHRASE: &str = "Empty string given as passphrase, wallet will not be encrypted.";

/// What createwallet says of `descriptors=false`.
const ONE_KIND: &str = "There is one kind of wallet, which takes descriptors as well as keys and scripts: descriptors=false has no effect.";

/// `createwallet`: makes a wallet and loads it.
pub fn create_wallet(context: &mut CallContext<'_>) -> Result<Value, WalletError> {
    let passphrase_given = context.params.given(3).is_some();
    let passphrase = context.take_secret(3);
    let params = &context.params;
    let name = params.text(0)?.to_owned();
    let disable_private_keys = params.flag_or(1, false)?;
    let mut warnings = Vec::new();
    if passphrase_given && passphrase.expose().is_empty() {
        warnings.push(EMPTY_PASSPHRASE.to_owned());
    }
    if !params.flag_or(5, true)? {
        warnings.push(ONE_KIND.to_owned());
    }
    if params.flag_or(7, false)? {
        return Err(WalletError::ExternalSigner);
    }
    if disable_private_keys && !passphrase.expose().is_empty() {
        return Err(WalletError::PassphraseWithoutKeys);
    }
    let options = CreateOptions {
        name: name.clone(),
        disable_private_keys,
        blank: params.flag_or(2, false)?,
        passphrase,
        avoid_reuse: params.flag_or(4, false)?,
        load_on_startup: params.given(6).map(flag).transpose()?,
    };
    warnings.extend(context.host.wallet.create(context.scope, options)?);
    Ok(named(Some(name), warnings))
}

/// `loadwallet`: loads a wallet that is on disk.
pub fn load_wallet(context: &mut CallContext<'_>) -> Result<Value, WalletError> {
    let name = context.params.text(0)?.to_owned();
    let load_on_startup = context.params.given(1).map(flag).transpose()?;
    let loaded = context.host.wallet.load(context.scope, name.clone(), load_on_startup);
    let warnings = loaded.map_err(|error| match error.kind {
        // The general words for this kind speak of the wallet that a request's path names.
        ErrorKind::WalletNotLoaded if !error.detail.is_empty() => WalletError::CannotLoad(error.detail),
        _ => error.into(),
    })?;
    Ok(named(Some(name), warnings))
}

/// `unloadwallet`: unloads the wallet of the path or of the argument.
pub fn unload_wallet(context: &mut CallContext<'_>) -> Result<Value, WalletError> {
    let argument = context.params.given(0).map(text).transpose()?;
    let name = wallet_to_unload(context, argument)?;
    let load_on_startup = context.params.given(1).map(flag).transpose()?;
    let warnings = context.host.wallet.unload(context.scope, name, load_on_startup)?;
    Ok(named(None, warnings))
}

/// The wallet that the path and the argument agree on.
///
/// Which wallet a path names is only seen by asking for the wallet of the call. Where a single one is loaded, that
/// answers the same with and without a path, and it counts as named.
fn wallet_to_unload(context: &CallContext<'_>, argument: Option<&str>) -> Result<String, WalletError> {
    let wallet = &context.host.wallet;
    let of_call = wallet.info(context.scope).map(|info| info.name).map_err(|error| error.kind);
    let Some(argument) = argument else {
        return of_call.map_err(|kind| match kind {
            ErrorKind::WalletNotSpecified | ErrorKind::NoWallet => WalletError::WalletNotNamed,
            other => other.into(),
        });
    };
    let loaded = wallet.list(context.scope)?;
    let differs = match &of_call {
        Ok(name) => name != argument && loaded.len() > 1,
        Err(ErrorKind::WalletNotLoaded) => loaded.iter().any(|name| name == argument),
        Err(_) => false,
    };
    if differs { Err(WalletError::WalletsDiffer) } else { Ok(argument.to_owned()) }
}

/// `listwallets`: the loaded wallets.
pub fn list_wallets(context: &mut CallContext<'_>) -> Result<Value, WalletError> {
    Ok(json!(context.host.wallet.list(context.scope)?))
}

/// `listwalletdir`: the wallets on disk.
pub fn list_wallet_dir(context: &mut CallContext<'_>) -> Result<Value, WalletError> {
    let names = context.host.wallet.directory(context.scope)?;
    let wallets: Vec<Value> = names.into_iter().map(|name| json!({"name": name})).collect();
    Ok(json!({"wallets": wallets}))
}

/// A wallet's name with the warnings, where there are any.
pub fn named(name: Option<String>, warnings: Vec<String>) -> Value {
    let mut object = Map::new();
    if let Some(name) = name {
        object.insert("name".into(), json!(name));
    }
    if !warnings.is_empty() {
        object.insert("warnings".into(), json!(warnings));
    }
    Value::Object(object)
}
