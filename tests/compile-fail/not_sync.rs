// A plugin that several threads cannot use at a time.
//~ `Cell<u64>` cannot be shared between threads safely
//~ use `std::sync::RwLock` or `std::sync::atomic::AtomicU64` instead
//~ required by a bound in `Plugin`

use std::cell::Cell;

use outrigger_sdk::serde_json::{Map, Value};
use outrigger_sdk::{Call, Host, Plugin, Reply};

struct Counter {
    calls: Cell<u64>,
}

impl Plugin for Counter {
    fn new(_: Host, _: Map<String, Value>) -> Result<Self, String> {
        Ok(Self { calls: Cell::new(0) })
    }

    fn call(&self, _: Call<'_>, reply: Reply) {
        self.calls.set(self.calls.get() + 1);
        reply.send(Ok(self.calls.get()));
    }
}
