// A manifest without an id.
//~ the manifest has no "id": the plugin's name, in lower-case letters, digits and '-'

use outrigger_sdk::serde_json::{Map, Value};
use outrigger_sdk::{Call, Host, Plugin, Reply};

struct Hello;

impl Plugin for Hello {
    fn new(_: Host, _: Map<String, Value>) -> Result<Self, String> {
        Ok(Self)
    }

    fn call(&self, _: Call<'_>, reply: Reply) {
        reply.send(Ok("hello"));
    }
}

outrigger_sdk::export_plugin!(Hello, r#"{"version": "1", "summary": "Says hello", "methods": []}"#);
