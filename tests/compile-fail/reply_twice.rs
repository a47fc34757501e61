// A call that is answered twice.
//~ use of moved value: `reply`
//~ takes ownership of the receiver `self`, which moves `reply`

use outrigger_sdk::serde_json::{Map, Value};
use outrigger_sdk::{Call, Host, Plugin, Reply};

struct Twice;

impl Plugin for Twice {
    fn new(_: Host, _: Map<String, Value>) -> Result<Self, String> {
        Ok(Self)
    }

    fn call(&self, _: Call<'_>, reply: Reply) {
        reply.send(Ok(1));
        reply.send(Ok(2));
    }
}
