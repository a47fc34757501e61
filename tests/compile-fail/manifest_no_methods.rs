// A manifest that lists its methods at the wrong place.
//~ the manifest has no "methods": the list of the methods that the plugin answers

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

outrigger_sdk::export_plugin!(
    Hello,
    r#"{"id": "hello", "version": "1", "summary": "Says hello", "options": {"methods": []}}"#
);
