//! The operation group `psbt`: partially signed transactions (BIP 174, 370), and payments that may end as a PSBT.
//!
//! Invariants: the plugin keeps nothing between calls. Unknown fields of a PSBT stay byte for byte. Results have the keys of
//! the call's release of Bitcoin Core, in its order.

mod bump;
mod create;
mod decode;
mod finalize;
mod fund;
mod provider;
mod send;
mod sign;
#[cfg(test)]
mod tests;
mod update;
mod wallet;

use outrigger_sdk::psbt::{Psbt, PsbtVersion};
use outrigger_sdk::{Call, CallContext, Host, Plugin, Reply, RpcError, RpcErrorCode, typed};
use serde_json::{Map, Value};

pub struct PsbtPlugin {
    host: Host,
}

struct Shared<'a> {
    /// Whether the call's answer is still wanted.
    wanted: &'a (dyn Fn() -> bool + Sync),
}

type Context<'a> = CallContext<'a, Shared<'a>>;

fn read_psbt(context: &Context<'_>, value: &Value) -> Result<Psbt, RpcError> {
    Psbt::from_base64(typed::text(value)?, &context.rules).map_err(|error| undecodable(error.to_string()))
}

/// The version of a PSBT to make: that of the argument, else the release's. `N` is the integer type with which bitcoind
/// reads the argument.
fn psbt_version<N>(context: &Context<'_>, argument: Option<&Value>) -> Result<PsbtVersion, RpcError>
where
    N: TryFrom<i64> + TryInto<u32>,
{
    let Some(number) = argument else { return Ok(PsbtVersion::of(&context.rules)) };
    let number: N = typed::integer(number)?;
    let version = number.try_into().ok().and_then(PsbtVersion::from_number);
    version.ok_or_else(|| RpcError::invalid_parameter("The PSBT version can only be 2 or 0"))
}

/// Refuses a PSBT if no locktime satisfies all inputs.
fn check_lock_time(psbt: &Psbt) -> Result<(), RpcError> {
    let impossible = || RpcError::new(RpcErrorCode::VERIFY, "The transaction cannot be valid");
    psbt.lock_time().map(drop).ok_or_else(impossible)
}

fn undecodable(message: impl Into<String>) -> RpcError {
    RpcError::new(RpcErrorCode::DESERIALIZATION, message)
}

fn answer(method: &str, context: &Context<'_>) -> Result<Value, RpcError> {
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
        other => Err(RpcError::no_method(other)),
    }
}

impl Plugin for PsbtPlugin {
    fn new(host: Host, _: Map<String, Value>) -> Result<Self, String> {
        Ok(Self { host })
    }

    fn call(&self, call: Call<'_>, reply: Reply) {
        let shared = Shared { wanted: &|| reply.is_wanted() };
        let rules = call.rules;
        let context = Context { host: &self.host, scope: call.scope, params: call.params, rules, plugin: &shared };
        let outcome = answer(call.method, &context);
        reply.send(outcome);
    }
}

// Arguments may hold private keys, and parsing them frees copies.
outrigger_sdk::wipe_freed_memory!();
outrigger_sdk::export_plugin!(PsbtPlugin, include_str!("../manifest.json"));
