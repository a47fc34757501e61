// What a call lends is used on another thread, after the call.
//~ borrowed data escapes outside of method
//~ `call` is a reference that is only valid in the method body

use outrigger_sdk::serde_json::{Map, Value};
use outrigger_sdk::{Call, Host, Plugin, Reply};

struct Echo;

impl Plugin for Echo {
    fn new(_: Host, _: Map<String, Value>) -> Result<Self, String> {
        Ok(Self)
    }

    fn call(&self, call: Call<'_>, reply: Reply) {
        std::thread::spawn(move || reply.send(Ok(call.method)));
    }
}
