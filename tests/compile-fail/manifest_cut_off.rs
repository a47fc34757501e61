// A manifest that ends too early.
//~ the manifest is not JSON: it ends before its last bracket is closed

use outrigger_sdk::options::NoOptions;
use outrigger_sdk::{Call, Host, Plugin, Reply};

struct Hello;

impl Plugin for Hello {
    const MANIFEST: &'static str = r#"{"id": "hello", "version": "1", "summary": "Says hello", "methods": []"#;

    type Options = NoOptions;

    fn new(_: Host, _: NoOptions) -> Result<Self, String> {
        Ok(Self)
    }

    fn call(&self, _: Call<'_>, reply: Reply) {
        reply.send(Ok("hello"));
    }
}

outrigger_sdk::export_plugin!(Hello);
