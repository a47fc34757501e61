// A plugin with the attributes. This one compiles.

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
    ///
    /// * `name` - To whom.
    #[method(inline)]
    fn hello(_name: &str) -> Result<String, RpcError> {
        Ok("hello".to_owned())
    }
}

outrigger_sdk::export_plugin!(Hello);
