// A line of the documentation about no argument.
//~ the documentation describes `nmae` where `name` stands

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
    /// * `nmae` - To whom.
    #[method]
    fn hello(_name: &str) -> Result<String, RpcError> {
        Ok("hello".to_owned())
    }
}

outrigger_sdk::export_plugin!(Hello);
