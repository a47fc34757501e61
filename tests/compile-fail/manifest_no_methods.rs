// A manifest that lists its methods at the wrong place.
//~ the manifest has no "methods": the list of the methods that the plugin answers

use outrigger_sdk::options::NoOptions;
use outrigger_sdk::{Call, Host, Plugin, Reply};

struct Hello;

impl Plugin for Hello {
    const MANIFEST: &'static str =
        r#"{"id": "hello", "version": "1", "summary": "Says hello", "options": {"methods": []}}"#;

    type Options = NoOptions;

    fn new(_: Host, _: NoOptions) -> Result<Self, String> {
        Ok(Self)
    }

    fn call(&self, _: Call<'_>, reply: Reply) {
        reply.send(Ok("hello"));
    }
}

outrigger_sdk::export_plugin!(Hello);
