//! A wrapper that passes every call on, on the thread that read it from the network.

use outrigger_sdk::options::NoOptions;
use outrigger_sdk::{Call, Host, Plugin, Reply, RpcError, methods, plugin};

pub struct Gatekeeper;

#[plugin(id = "gatekeeper", summary = "Passes every call on", wrapper = "inline")]
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
    /// Does nothing.
    #[method(inline)]
    fn donothing() -> Result<(), RpcError> {
        Ok(())
    }
}

outrigger_sdk::export_plugin!(Gatekeeper);
