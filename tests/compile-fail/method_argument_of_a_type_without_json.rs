// An argument of a type that is no argument.
//~ `Filter` cannot be the type of an argument
//~ an object that serde reads as `outrigger_sdk::methods::Object<Filter>`

use outrigger_sdk::options::NoOptions;
use outrigger_sdk::{Host, Plugin, RpcError, methods, plugin};

struct Hello;

#[plugin(id = "hello", version = "1", summary = "Says hello")]
impl Plugin for Hello {
    fn new(_: Host, _: NoOptions) -> Result<Self, String> {
        Ok(Self)
    }
}

struct Filter;

#[methods(category = "Test")]
impl Hello {
    /// Says hello.
    ///
    /// * `filter` - Which.
    #[method]
    fn hello(_filter: Filter) -> Result<String, RpcError> {
        Ok("hello".to_owned())
    }
}

outrigger_sdk::export_plugin!(Hello);
