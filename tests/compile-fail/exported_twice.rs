// Two plugins in one library.
//~ the name `outrigger_plugin` is defined multiple times
//~ the name `outrigger_manifest` is defined multiple times

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

outrigger_sdk::export_plugin!(Hello, r#"{"id": "hello", "version": "1", "summary": "Says hello", "methods": []}"#);
outrigger_sdk::export_plugin!(Hello, r#"{"id": "again", "version": "1", "summary": "Says hello", "methods": []}"#);
