//! The operation group `signing`: raw transactions and messages, signed with the keys of a request or of the host's
//! wallets.
//!
//! Invariants: keys never appear in answers or in the log. The SDK implements the methods of raw transactions
//! ([`outrigger_sdk::sign::methods`]), so that a plugin with another key store needs only its own key source.

#[cfg(test)]
mod tests;

use bitcoin::hashes::{Hash, hash160};
use outrigger_sdk::sign::{WalletKeys, WifKey, message_signature, methods, sign_message};
use outrigger_sdk::standard::{ScriptKind, address, classify};
use outrigger_sdk::{Call, Host, Plugin, Reply, RpcError, RpcErrorCode};
use serde_json::{Map, Value};

const COMPRESSED_LEN: usize = 33;

pub struct SigningPlugin {
    host: Host,
}

impl Plugin for SigningPlugin {
    fn new(host: Host, _: Map<String, Value>) -> Result<Self, String> {
        Ok(Self { host })
    }

    fn call(&self, call: Call<'_>, reply: Reply) {
        let (host, scope, wanted) = (&self.host, call.scope, || reply.is_wanted());
        match call.method {
            "signrawtransactionwithkey" => {
                let signed = methods::with_key(host, scope, call.params, &wanted);
                reply.send(signed)
            }
            "signrawtransactionwithwallet" => {
                let keys = |scripts| WalletKeys::new(&*host.signer, scope, scripts);
                let signed = methods::with_wallet(host, scope, &call.params, keys, &wanted);
                reply.send(signed)
            }
            "combinerawtransaction" => {
                let combined = methods::combine(host, scope, &call.params, &call.rules, &wanted);
                reply.send(combined)
            }
            "signmessagewithprivkey" => reply.send(sign_message_with_key(host, &call)),
            "signmessage" => reply.send(sign_message_with_wallet(host, &call)),
            other => reply.fail(RpcError::no_method(other)),
        };
    }
}

fn sign_message_with_key(host: &Host, call: &Call<'_>) -> Result<String, RpcError> {
    let (key, message) = (call.params.text(0)?, call.params.text(1)?);
    let network = host.chain.network(call.scope)?;
    let key = WifKey::parse(key, network.into()).map_err(|error| RpcError::not_found(error.to_string()))?;
    sign_message(&key, message).ok_or_else(|| RpcError::not_found("Sign failed"))
}

fn sign_message_with_wallet(host: &Host, call: &Call<'_>) -> Result<String, RpcError> {
    let scope = call.scope;
    host.wallet.info(scope)?.check_unlocked()?;
    let script = address::to_script(call.params.text(0)?, host.chain.network(scope)?);
    let script = script.map_err(|_| RpcError::not_found("Invalid address"))?;
    let ScriptKind::PubKeyHash { hash } = classify(&script) else {
        return Err(RpcError::type_error("Address does not refer to key"));
    };
    let known = host.wallet.scripts(scope, vec![script.clone()])?.pop().flatten();
    let keys = known.map(|known| known.solving.public_keys).unwrap_or_default();
    let key = keys.into_iter().find(|key| hash160::Hash::hash(key).as_byte_array() == hash);
    let unavailable = || RpcError::new(RpcErrorCode::WALLET, "Private key not available");
    let public_key = key.ok_or_else(unavailable)?;
    let compressed = public_key.len() == COMPRESSED_LEN;
    let message = call.params.text(1)?.to_owned();
    let signature = host.signer.sign_message(scope, script, public_key, message)?.ok_or_else(unavailable)?;
    message_signature(&signature, compressed).ok_or_else(|| RpcError::not_found("Sign failed"))
}

// Arguments may hold private keys, and parsing them frees copies.
outrigger_sdk::wipe_freed_memory!();
outrigger_sdk::export_plugin!(SigningPlugin, include_str!("../manifest.json"));
