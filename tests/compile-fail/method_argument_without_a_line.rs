// An argument that the documentation does not describe.
//~ the documentation has no line for `name`: * `name` - ...

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
    #[method]
    fn hello(_name: &str) -> Result<String, RpcError> {
        Ok("hello".to_owned())
    }
}

outrigger_sdk::export_plugin!(Hello);
