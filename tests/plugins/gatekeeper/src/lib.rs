//! A wrapper that passes every call on, on the thread that read it from the network.

use outrigger_sdk::options::NoOptions;
use outrigger_sdk::{Call, Host, Plugin, Reply, RpcError, methods, plugin};
use serde_json::from_slice;

pub struct Gatekeeper;

#[plugin(id = "gatekeeper", summary = "Passes every call on", optional = ["rpc/1"], wrapper = "inline")]
impl Plugin for Gatekeeper {
    fn new(_: Host, _: NoOptions) -> Result<Self, String> {
        Ok(Self)
    }

    fn wrap(&self, _: Call<'_>, reply: Reply) {
        reply.pass_on();
    }
}

#[methods(category = "Test")]
impl Gatekeeper {
    /// Adds one to the block count of the next plugin.
    #[method]
    fn getblockcount(call: &Call<'_>) -> Result<u64, RpcError> {
        let json = call.next(None)?;
        let count: u64 = from_slice(&json).map_err(|error| RpcError::internal(error.to_string()))?;
        Ok(count + 1)
    }
}

outrigger_sdk::export_plugin!(Gatekeeper);
