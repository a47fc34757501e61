//! The operations `signrawtransactionwithkey` and `signrawtransactionwithwallet`.
//!
//! The solver is the SDK's ([`outrigger_sdk::sign`]). Here are the arguments in the order in which bitcoind looks at
//! them, the outputs that the transaction spends, and the result.
//!
//! Invariants: signing by given keys asks no wallet. Given keys are wiped, with their text, when the call ends.

mod error;
mod prevouts;
mod result;

#[cfg(test)]
mod tests;

use bitcoin::{NetworkKind, ScriptBuf, Transaction};
use outrigger_sdk::params::{self, Params, Type, check_types};
use outrigger_sdk::service::{ErrorKind, Scope};
use outrigger_sdk::sign::{LocalKeys, Sighash, SolvingSet, WalletKeys, WifKey, sign_transaction};
use outrigger_sdk::standard::transaction_from_hex;
use outrigger_sdk::{Call, Host, Plugin, Reply, RpcError};
use serde_json::{Map, Value};
use zeroize::Zeroize;

pub use error::SigningError;
pub use result::SigningResult;

use prevouts::Prevouts;

/// bitcoind's name of the main chain, whose private keys have a prefix of their own.
const MAIN_CHAIN: &str = "main";
/// The position of `privkeys`.
const PRIVKEYS: usize = 1;

/// The plugin.
pub struct SigningPlugin {
    host: Host,
}

impl Plugin for SigningPlugin {
    fn new(host: Host, _: Map<String, Value>) -> Result<Self, String> {
        Ok(Self { host })
    }

    fn call(&self, call: Call<'_>, reply: Reply) {
        let outcome = match call.method {
            "signrawtransactionwithkey" => self.with_key(call.scope, call.params).map_err(RpcError::from),
            "signrawtransactionwithwallet" => self.with_wallet(call.scope, &call.params).map_err(RpcError::from),
            other => Err(RpcError::no_method(other)),
        };
        reply.send(outcome);
    }
}

impl SigningPlugin {
    /// hexstring, privkeys, prevtxs, sighashtype
    fn with_key(&self, scope: Scope, params: Params) -> Result<SigningResult, SigningError> {
        let params = SecretParams(params);
        let params = &params.0;
        check_types(params, &[Type::String, Type::Array, Type::Array, Type::String], true)?;
        let mut tx = transaction(params)?;
        let keys = self.private_keys(scope, params.get(PRIVKEYS))?;
        let mut prevouts = Prevouts::look_up(&self.host, scope, &tx)?;
        let scripts = prevouts.describe(params.get(2), true)?;
        let sighash = sighash(params, 3)?;

        let spent = prevouts.of(&tx);
        let has_taproot = spent.iter().flatten().any(|spent| spent.script_pubkey.is_p2tr());
        let mut known = keys.solving(has_taproot);
        for script in scripts {
            known.add_script(script);
        }
        let errors = sign_transaction(&mut tx, &spent, &known, &keys, sighash)?;
        SigningResult::new(&tx, &spent, errors)
    }

    /// hexstring, prevtxs, sighashtype
    fn with_wallet(&self, scope: Scope, params: &Params) -> Result<SigningResult, SigningError> {
        let wallet = self.host.wallet.info(scope)?;
        check_types(params, &[Type::String, Type::Array, Type::String], true)?;
        let mut tx = transaction(params)?;
        if wallet.locked {
            return Err(ErrorKind::WalletLocked.into());
        }
        let mut prevouts = Prevouts::look_up(&self.host, scope, &tx)?;
        prevouts.describe(params.get(1), false)?;
        let sighash = sighash(params, 2)?;

        let spent = prevouts.of(&tx);
        let mut scripts: Vec<ScriptBuf> = spent.iter().flatten().map(|spent| spent.script_pubkey.clone()).collect();
        scripts.sort_unstable();
        scripts.dedup();
        let known = self.wallet_knows(scope, &scripts)?;
        let keys = WalletKeys::new(&*self.host.signer, scope, scripts);
        let errors = sign_transaction(&mut tx, &spent, &known, &keys, sighash)?;
        SigningResult::new(&tx, &spent, errors)
    }

    /// The keys of an argument. Each must be one of the chain that the host is on.
    fn private_keys(&self, scope: Scope, argument: &Value) -> Result<LocalKeys, SigningError> {
        let texts = params::array(argument)?;
        let chain = self.host.chain.info(scope)?.name;
        let network = if chain == MAIN_CHAIN { NetworkKind::Main } else { NetworkKind::Test };
        let mut keys = LocalKeys::default();
        for text in texts {
            keys.add(WifKey::parse(params::text(text)?, network)?);
        }
        Ok(keys)
    }

    /// What the wallet knows of the outputs with these scripts, all together.
    fn wallet_knows(&self, scope: Scope, scripts: &[ScriptBuf]) -> Result<SolvingSet, SigningError> {
        let found = self.host.wallet.scripts(scope, scripts.to_vec())?;
        let mut known = SolvingSet::default();
        for (script, info) in scripts.iter().zip(found) {
            if let Some(info) = info {
                known.add(script, info.solving);
            }
        }
        Ok(known)
    }
}

/// The argument `hexstring`. Without inputs there is nothing to sign, and no form with witness.
fn transaction(params: &Params) -> Result<Transaction, SigningError> {
    let tx = transaction_from_hex(params.text(0)?).filter(|tx| !tx.input.is_empty());
    tx.ok_or(SigningError::Transaction)
}

/// The argument `sighashtype` at a position.
fn sighash(params: &Params, position: usize) -> Result<Sighash, SigningError> {
    match params.given(position) {
        None => Ok(Sighash::DEFAULT),
        Some(name) => Ok(Sighash::from_name(params::text(name)?)?),
    }
}

/// Arguments with private keys among them, which are wiped at the end.
struct SecretParams(Params);

impl Drop for SecretParams {
    fn drop(&mut self) {
        let Some(Value::Array(keys)) = self.0.0.get_mut(PRIVKEYS) else {
            return;
        };
        for key in keys {
            if let Value::String(text) = key {
                text.zeroize();
            }
        }
    }
}

outrigger_sdk::export_plugin!(SigningPlugin, include_str!("../manifest.json"));
