// A flag that there is not.
//~ expected name, category, unchecked, inline, long_running, private_keys, wallet_only or needs_tip

use outrigger_sdk::options::NoOptions;
use outrigger_sdk::{Host, Plugin, RpcError, methods, plugin};

struct Hello;

#[plugin(id = "hello", version = "1", summary = "Says hello")]
impl Plugin for Hello {
    fn new(_: Host, _: NoOptions) -> Result<Self, String> {
        Ok(Self)
    }
}

#[methods(category = "Test")]
impl Hello {
    /// Says hello.
    #[method(quick)]
    fn hello() -> Result<String, RpcError> {
        Ok("hello".to_owned())
    }
}

outrigger_sdk::export_plugin!(Hello);
