// A plugin that cannot go from one thread to another.
//~ `Rc<u64>` cannot be sent between threads safely
//~ required by a bound in `Plugin`

use std::rc::Rc;

use outrigger_sdk::serde_json::{Map, Value};
use outrigger_sdk::{Call, Host, Plugin, Reply};

struct Oracle {
    answer: Rc<u64>,
}

impl Plugin for Oracle {
    fn new(_: Host, _: Map<String, Value>) -> Result<Self, String> {
        Ok(Self { answer: Rc::new(7) })
    }

    fn call(&self, _: Call<'_>, reply: Reply) {
        reply.send(Ok(*self.answer));
    }
}
