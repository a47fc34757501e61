// A whole plugin, to see that the others fail for what they do wrong and not for how they are compiled. This one compiles.

use outrigger_sdk::options::NoOptions;
use outrigger_sdk::{Call, Host, Plugin, Reply};

struct Hello;

impl Plugin for Hello {
    const MANIFEST: &'static str = r#"{"id": "hello", "version": "1", "summary": "Says hello", "methods": []}"#;

    type Options = NoOptions;

    fn new(_: Host, _: NoOptions) -> Result<Self, String> {
        Ok(Self)
    }

    fn call(&self, call: Call<'_>, reply: Reply) {
        reply.send(Ok(call.method));
    }
}

outrigger_sdk::export_plugin!(Hello);
