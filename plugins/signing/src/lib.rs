//! The operations `signrawtransactionwithkey` and `signrawtransactionwithwallet`, by the keys of the host's wallets, and
//! `signmessagewithprivkey`.
//!
//! All that the first two do is the SDK's ([`outrigger_sdk::sign::methods`]), so that who keeps keys elsewhere writes no more than
//! stands here.

#[cfg(test)]
mod tests;

use outrigger_sdk::sign::{WalletKeys, WifKey, methods, sign_message};
use outrigger_sdk::{Call, Host, Plugin, Reply, RpcError};
use serde_json::{Map, Value};

/// The plugin.
pub struct SigningPlugin {
    host: Host,
}

impl Plugin for SigningPlugin {
    fn new(host: Host, _: Map<String, Value>) -> Result<Self, String> {
        Ok(Self { host })
    }

    fn call(&self, call: Call<'_>, reply: Reply) {
        let (host, scope, wanted) = (&self.host, call.scope, || reply.is_wanted());
        let answer = match call.method {
            "signrawtransactionwithkey" => methods::with_key(host, scope, call.params, &wanted),
            "signrawtransactionwithwallet" => {
                let keys = |scripts| WalletKeys::new(&*host.signer, scope, scripts);
                methods::with_wallet(host, scope, &call.params, keys, &wanted)
            }
            "signmessagewithprivkey" => {
                reply.send(sign_message_with_key(host, &call));
                return;
            }
            other => {
                reply.fail(RpcError::no_method(other));
                return;
            }
        };
        reply.send(answer.map_err(RpcError::from));
    }
}

fn sign_message_with_key(host: &Host, call: &Call<'_>) -> Result<String, RpcError> {
    let (key, message) = (call.params.text(0)?, call.params.text(1)?);
    let network = host.chain.network(call.scope)?;
    let key = WifKey::parse(key, network.into()).map_err(|error| RpcError::not_found(error.to_string()))?;
    sign_message(&key, message).ok_or_else(|| RpcError::not_found("Sign failed"))
}

// Arguments hold keys, and what is parsed from them is freed unseen.
outrigger_sdk::wipe_freed_memory!();
outrigger_sdk::export_plugin!(SigningPlugin, include_str!("../manifest.json"));
