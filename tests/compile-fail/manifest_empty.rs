// A manifest without anything.
//~ the manifest is empty: it must be a JSON object that lists the plugin's methods

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

outrigger_sdk::export_plugin!(Hello, "");
