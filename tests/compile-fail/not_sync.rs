// A plugin that several threads cannot use at a time.
//~ `Cell<u64>` cannot be shared between threads safely
//~ use `std::sync::RwLock` or `std::sync::atomic::AtomicU64` instead
//~ required by a bound in `outrigger_sdk::Plugin`

use std::cell::Cell;

use outrigger_sdk::options::NoOptions;
use outrigger_sdk::{Call, Host, Plugin, Reply};

struct Counter {
    calls: Cell<u64>,
}

impl Plugin for Counter {
    const MANIFEST: &'static str = r#"{"id": "hello", "version": "1", "summary": "Says hello", "methods": []}"#;

    type Options = NoOptions;

    fn new(_: Host, _: NoOptions) -> Result<Self, String> {
        Ok(Self { calls: Cell::new(0) })
    }

    fn call(&self, _: Call<'_>, reply: Reply) {
        self.calls.set(self.calls.get() + 1);
        reply.send(Ok(self.calls.get()));
    }
}
