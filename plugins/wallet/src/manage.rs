//! Creating, loading, unloading and listing wallets.

use outrigger_kit::without_nulls;
use outrigger_sdk::service::wallet::{self, CreateOptions};
use outrigger_sdk::service::{ErrorKind, ServiceError};
use outrigger_sdk::wire::Secret;
use outrigger_sdk::{Call, RpcError, methods};
use serde_json::{Value, json};

use crate::WalletPlugin;

const EMPTY_PASSPHRASE: &str = "Empty string given as passphrase, wallet will not be encrypted.";

const ONE_KIND: &str = "There is one kind of wallet, which takes descriptors as well as keys and scripts: descriptors=false has no effect.";

/// Checks the name of a new wallet before it is copied. From release 31 on, only existing wallets may have the empty name.
pub fn check_name(call: &Call<'_>, name: &str) -> Result<(), RpcError> {
    wallet::check_name(name)?;
    if name.is_empty() && call.rules.refuses_empty_names {
        return Err(RpcError::invalid_parameter("Wallet name cannot be empty"));
    }
    Ok(())
}

/// The wallet that the path or the argument names. If both name one, the names must be equal.
///
/// The plugin does not see the path, only the wallet that the host selects for the call. If only one wallet is loaded,
/// the host selects it even without a path, so then a different argument is no conflict.
fn wallet_to_unload(call: &Call<'_>, argument: Option<&str>) -> Result<String, RpcError> {
    let wallet = &call.host.wallet;
    let selected = wallet.info(call.scope).map(|info| info.name).map_err(|error| error.kind);
    let Some(argument) = argument else {
        return selected.map_err(|kind| match kind {
            ErrorKind::WalletNotSpecified | ErrorKind::NoWallet => RpcError::invalid_parameter(
                "Either the RPC endpoint wallet or the wallet name parameter must be provided",
            ),
            other => ServiceError::from(other).into(),
        });
    };
    let loaded = wallet.list(call.scope)?;
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

/// An answer with these members. `warnings` is omitted if there are none.
pub fn named(name: Option<String>, warnings: Vec<String>) -> Value {
    without_nulls(json!({"name": name, "warnings": Some(warnings).filter(|warnings| !warnings.is_empty())}))
}

#[methods(category = "Wallet")]
impl WalletPlugin {
    /// Creates a wallet and loads it. It accepts descriptors (importdescriptors) as well as keys and scripts
    /// (importmulti).
    ///
    /// * `wallet_name` - The wallet's name.
    /// * `disable_private_keys` - Whether the wallet may never hold private keys.
    /// * `blank` - Whether the wallet starts without keys of its own.
    /// * `passphrase` - Encrypts the wallet with this passphrase.
    /// * `avoid_reuse` - Whether the wallet avoids reused addresses: it counts their coins
    ///   separately and does not choose them for payments. An address is reused once the wallet has spent from it.
    /// * `descriptors` - There is only one kind of wallet. false creates the same kind, with a
    ///   warning.
    /// * `load_on_startup` (default: null) - Whether the host loads the wallet at every start; null keeps the
    ///   setting.
    /// * `external_signer` - Whether a plugin signs for the wallet: that of the host's setting wallet.signer. Private keys
    ///   must be disabled.
    ///
    /// # Result
    /// {"name": "...", "warnings": ["...", ...]}    (json object) "warnings" is omitted if there are none.
    #[method(private_keys)]
    fn createwallet(
        call: &Call<'_>,
        wallet_name: String,
        #[arg(default = false)] disable_private_keys: bool,
        #[arg(default = false)] blank: bool,
        passphrase: Option<Secret>,
        #[arg(default = false)] avoid_reuse: bool,
        #[arg(default = true)] descriptors: bool,
        load_on_startup: Option<bool>,
        #[arg(default = false)] external_signer: bool,
    ) -> Result<Value, RpcError> {
        check_name(call, &wallet_name)?;
        let mut warnings = Vec::new();
        if passphrase.as_ref().is_some_and(|passphrase| passphrase.expose().is_empty()) {
            warnings.push(EMPTY_PASSPHRASE.to_owned());
        }
        if !descriptors {
            warnings.push(ONE_KIND.to_owned());
        }
        let options = CreateOptions {
            name: wallet_name.clone(),
            disable_private_keys,
            blank,
            passphrase: passphrase.unwrap_or_default(),
            avoid_reuse,
            load_on_startup,
            external_signer,
        };
        warnings.extend(call.host.admin.create(call.scope, options)?);
        Ok(named(Some(wallet_name), warnings))
    }

    /// Loads a wallet from disk.
    ///
    /// * `filename` - The wallet's name.
    /// * `load_on_startup` (default: null) - Whether the host loads the wallet at every start; null keeps the
    ///   setting.
    ///
    /// # Result
    /// {"name": "...", "warnings": ["...", ...]}    (json object) "warnings" is omitted if there are none.
    #[method(long_running, private_keys)]
    fn loadwallet(call: &Call<'_>, filename: String, load_on_startup: Option<bool>) -> Result<Value, RpcError> {
        wallet::check_name(&filename)?;
        let warnings = call.host.admin.load(call.scope, filename.clone(), load_on_startup)?;
        Ok(named(Some(filename), warnings))
    }

    /// Unloads the wallet that the request's path or the argument names; its file stays. If both name a wallet, the
    /// names must be equal. With `load_on_startup` false, a wallet that the host could not load at its start may be named: the
    /// host then only takes it off the list of wallets to load.
    ///
    /// * `wallet_name` (default: the wallet of the path, or the only loaded wallet) - The wallet's name.
    /// * `load_on_startup` (default: null) - Whether the host loads the wallet at every start; null keeps the
    ///   setting.
    ///
    /// # Result
    /// {"warnings": ["...", ...]}    (json object) "warnings" is omitted if there are none.
    ///
    /// # Example
    /// savings
    #[method]
    fn unloadwallet(
        call: &Call<'_>,
        wallet_name: Option<&str>,
        load_on_startup: Option<bool>,
    ) -> Result<Value, RpcError> {
        let name = wallet_to_unload(call, wallet_name)?;
        let warnings = call.host.admin.unload(call.scope, name, load_on_startup)?;
        Ok(named(None, warnings))
    }

    /// Lists the loaded wallets.
    ///
    /// # Result
    /// ["...", ...]    (json array) The names, in the order of loading.
    #[method(inline)]
    fn listwallets(call: &Call<'_>) -> Result<Vec<String>, ServiceError> {
        call.host.wallet.list(call.scope)
    }

    /// Lists the wallets on disk.
    ///
    /// # Result
    /// {"wallets": [{"name": "..."}, ...]}    (json object)
    #[method]
    fn listwalletdir(call: &Call<'_>) -> Result<Value, RpcError> {
        let names = call.host.admin.directory(call.scope)?;
        // bitcoind warns only about legacy wallets. The host has none.
        let warnings = call.rules.wallet_dir_warnings.then(|| json!([]));
        let wallets = names.into_iter().map(|name| without_nulls(json!({"name": name, "warnings": warnings})));
        Ok(json!({"wallets": wallets.collect::<Value>()}))
    }
}
