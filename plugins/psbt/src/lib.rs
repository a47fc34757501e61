//! The operation group `psbt`: partially signed transactions (BIP 174, 370), and payments that may end as a PSBT.
//!
//! Invariants: the plugin keeps no state between calls. It copies unknown fields of a PSBT byte for byte. Results have the keys
//! of the call's release of Bitcoin Core, in its order.

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

use outrigger_kit::psbt::Psbt;
use outrigger_sdk::options::NoOptions;
use outrigger_sdk::{Call, Host, Plugin, RpcError, RpcErrorCode, plugin, typed};
use serde_json::Value;

pub struct PsbtPlugin;

#[plugin(
    id = "psbt",
    summary = "Makes, decodes, combines, signs and finalises partially signed transactions, \
        and makes payments that may end as a PSBT.",
    services = ["chain/1"],
    optional = ["mempool/1", "wallet-read/1", "wallet-book/1", "wallet-pay/1", "signer/1", "log/1"],
    restartable,
    methods = [bump, create, decode, finalize, fund, send, update, wallet]
)]
impl Plugin for PsbtPlugin {
    fn new(_: Host, _: NoOptions) -> Result<Self, String> {
        Ok(Self)
    }
}

fn read_psbt(call: &Call<'_>, text: &str) -> Result<Psbt, RpcError> {
    Psbt::from_base64(text, &call.rules).map_err(|error| RpcError::undecodable(error.to_string()))
}

/// Whether a new PSBT is of version 2, not 0: the argument, or the default of the release. `N` is the integer type with
/// which bitcoind reads the argument.
fn is_version_two<N>(call: &Call<'_>, argument: Option<&Value>) -> Result<bool, RpcError>
where
    N: TryFrom<i64> + TryInto<u32>,
{
    let Some(number) = argument else { return Ok(call.rules.psbt_v2) };
    let number: N = typed::integer(number)?;
    match number.try_into() {
        Ok(0) => Ok(false),
        Ok(2) => Ok(true),
        _ => Err(RpcError::invalid_parameter("The PSBT version can only be 2 or 0")),
    }
}

/// Refuses a PSBT if no locktime satisfies all inputs.
fn check_lock_time(psbt: &Psbt) -> Result<(), RpcError> {
    let impossible = || RpcError::new(RpcErrorCode::VERIFY, "The transaction cannot be valid");
    psbt.lock_time().map(drop).ok_or_else(impossible)
}
