//! The operation group `psbt`: making, showing, combining, signing and finalising partially signed transactions (BIP 174),
//! and payments that may end as one.
//!
//! Invariants: nothing is kept between calls. What a PSBT holds that no rule speaks of is handed on byte for byte. Results have
//! Bitcoin Core 29's keys in its order.

mod bump;
mod create;
mod decode;
mod error;
mod finalize;
mod fund;
mod known;
mod send;
mod sign;
#[cfg(test)]
mod tests;
mod update;
mod wallet;

use outrigger_sdk::params::Params;
use outrigger_sdk::{Call, CallContext, Host, Plugin, Reply, RpcError, typed};
use serde_json::{Map, Value};

use crate::error::PsbtError;
use outrigger_sdk::psbt::Psbt;

/// The plugin.
pub struct PsbtPlugin {
    host: Host,
}

/// What the methods share.
struct Shared<'a> {
    /// Whether the call's answer is still wanted.
    wanted: &'a (dyn Fn() -> bool + Sync),
}

/// A call.
type Context<'a> = CallContext<'a, Shared<'a>>;

type Outcome = Result<Value, PsbtError>;

/// The first argument.
fn psbt_argument(params: &Params) -> Result<Psbt, PsbtError> {
    Ok(Psbt::from_base64(typed::text(params.get(0))?)?)
}

fn answer(method: &str, context: &Context<'_>) -> Outcome {
    match method {
        "createpsbt" => create::create_psbt(context),
        "converttopsbt" => create::convert_to_psbt(context),
        "decodepsbt" => decode::decode_psbt(context),
        "combinepsbt" => create::combine_psbt(context),
        "finalizepsbt" => finalize::finalize_psbt(context),
        "analyzepsbt" => finalize::analyze_psbt(context),
        "utxoupdatepsbt" => update::utxo_update_psbt(context),
        "descriptorprocesspsbt" => update::descriptor_process_psbt(context),
        "walletprocesspsbt" => wallet::wallet_process_psbt(context),
        "joinpsbts" => create::join_psbts(context),
        "walletcreatefundedpsbt" => fund::wallet_create_funded_psbt(context),
        "psbtbumpfee" => bump::psbt_bump_fee(context),
        "send" => send::send(context),
        "sendall" => send::send_all(context),
        other => Err(RpcError::no_method(other).into()),
    }
}

impl Plugin for PsbtPlugin {
    fn new(host: Host, _: Map<String, Value>) -> Result<Self, String> {
        Ok(Self { host })
    }

    fn call(&self, call: Call<'_>, reply: Reply) {
        let shared = Shared { wanted: &|| reply.is_wanted() };
        let context = Context { host: &self.host, scope: call.scope, params: call.params, plugin: &shared };
        let outcome = answer(call.method, &context);
        reply.send(outcome.map_err(RpcError::from));
    }
}

// Arguments hold keys, and what is parsed from them is freed unseen.
outrigger_sdk::wipe_freed_memory!();
outrigger_sdk::export_plugin!(PsbtPlugin, include_str!("../manifest.json"));
