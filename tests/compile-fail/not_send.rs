// A plugin that cannot go from one thread to another.
//~ `Rc<u64>` cannot be sent between threads safely
//~ required by a bound in `outrigger_sdk::Plugin`

use std::rc::Rc;

use outrigger_sdk::options::NoOptions;
use outrigger_sdk::{Call, Host, Plugin, Reply};

struct Oracle {
    answer: Rc<u64>,
}

impl Plugin for Oracle {
    const MANIFEST: &'static str = r#"{"id": "hello", "version": "1", "summary": "Says hello", "methods": []}"#;

    type Options = NoOptions;

    fn new(_: Host, _: NoOptions) -> Result<Self, String> {
        Ok(Self { answer: Rc::new(7) })
    }

    fn call(&self, _: Call<'_>, reply: Reply) {
        reply.send(Ok(*self.answer));
    }
}
