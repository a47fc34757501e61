//! Creating, loading, unloading and listing wallets.

use outrigger_sdk::params::{flag, text};
use outrigger_sdk::service::wallet::CreateOptions;
use outrigger_sdk::service::{ErrorKind, ServiceError};
use outrigger_sdk::{CallContext, RpcError};
use serde_json::{Map, Value, json};

const EMPTY_PASSPHRASE: &str = "Empty string given as passphrase, wallet will not be encrypted.";

const ONE_KIND: &str = "There is one kind of wallet, which takes descriptors as well as keys and scripts: descriptors=false has no effect.";

pub fn create_wallet(context: &mut CallContext<'_>) -> Result<Value, RpcError> {
    let passphrase_given = context.params.given(3).is_some();
    let passphrase = context.take_secret(3);
    let params = &context.params;
    let name = params.text(0)?.to_owned();
    check_name(context, &name)?;
    let disable_private_keys = params.flag_or(1, false)?;
    let mut warnings = Vec::new();
    if passphrase_given && passphrase.expose().is_empty() {
        warnings.push(EMPTY_PASSPHRASE.to_owned());
    }
    if !params.flag_or(5, true)? {
        warnings.push(ONE_KIND.to_owned());
    }
    if params.flag_or(7, false)? {
        let message = "Compiled without external signing support (required for external signing)";
        return Err(RpcError::wallet(message));
    }
    if disable_private_keys && !passphrase.expose().is_empty() {
        return Err(RpcError::wallet(
            "Passphrase provided but private keys are disabled. A passphrase is only used to encrypt private keys, so cannot be used for wallets with private keys disabled.",
        ));
    }
    let options = CreateOptions {
        name: name.clone(),
        disable_private_keys,
        blank: params.flag_or(2, false)?,
        passphrase,
        avoid_reuse: params.flag_or(4, false)?,
        load_on_startup: params.given(6).map(flag).transpose()?,
    };
    warnings.extend(context.host.admin.create(context.scope, options)?);
    Ok(named(Some(name), warnings))
}

/// From release 31 on, only existing wallets may have the empty name.
pub fn check_name(context: &CallContext<'_>, name: &str) -> Result<(), RpcError> {
    if name.is_empty() && context.rules.refuses_empty_names {
        return Err(RpcError::invalid_parameter("Wallet name cannot be empty"));
    }
    Ok(())
}

pub fn load_wallet(context: &mut CallContext<'_>) -> Result<Value, RpcError> {
    let name = context.params.text(0)?.to_owned();
    let load_on_startup = context.params.given(1).map(flag).transpose()?;
    let warnings = context.host.admin.load(context.scope, name.clone(), load_on_startup)?;
    Ok(named(Some(name), warnings))
}

pub fn unload_wallet(context: &mut CallContext<'_>) -> Result<Value, RpcError> {
    let argument = context.params.given(0).map(text).transpose()?;
    let name = wallet_to_unload(context, argument)?;
    let load_on_startup = context.params.given(1).map(flag).transpose()?;
    let warnings = context.host.admin.unload(context.scope, name, load_on_startup)?;
    Ok(named(None, warnings))
}

/// The wallet that the path or the argument names. If both name one, the names must be equal.
///
/// The plugin does not see the path, only the wallet that the host selects for the call. If only one wallet is loaded,
/// the host selects it even without a path, so then a different argument is no conflict.
fn wallet_to_unload(context: &CallContext<'_>, argument: Option<&str>) -> Result<String, RpcError> {
    let wallet = &context.host.wallet;
    let selected = wallet.info(context.scope).map(|info| info.name).map_err(|error| error.kind);
    let Some(argument) = argument else {
        return selected.map_err(|kind| match kind {
            ErrorKind::WalletNotSpecified | ErrorKind::NoWallet => RpcError::invalid_parameter(
                "Either the RPC endpoint wallet or the wallet name parameter must be provided",
            ),
            other => ServiceError::from(other).into(),
        });
    };
    let loaded = wallet.list(context.scope)?;
    let differs = match &selected {
        Ok(name) => name != argument && loaded.len() > 1,
        Err(ErrorKind::WalletNotLoaded) => loaded.iter().any(|name| name == argument),
        Err(_) => false,
    };
    if differs {
        let message = "The RPC endpoint wallet and the wallet name parameter specify different wallets";
        return Err(RpcError::invalid_parameter(message));
    }
    Ok(argument.to_owned())
}

pub fn list_wallets(context: &mut CallContext<'_>) -> Result<Value, RpcError> {
    Ok(json!(context.host.wallet.list(context.scope)?))
}

pub fn list_wallet_dir(context: &mut CallContext<'_>) -> Result<Value, RpcError> {
    let names = context.host.admin.directory(context.scope)?;
    let entry = |name| match context.rules.wallet_dir_warnings {
        // bitcoind warns only about legacy wallets. The host has none.
        true => json!({"name": name, "warnings": []}),
        false => json!({"name": name}),
    };
    let wallets: Vec<Value> = names.into_iter().map(entry).collect();
    Ok(json!({"wallets": wallets}))
}

/// An answer with these members. `warnings` is omitted if there are none.
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
