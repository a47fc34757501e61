// A call that is answered twice.
//~ use of moved value: `reply`
//~ takes ownership of the receiver `self`, which moves `reply`

use outrigger_sdk::options::NoOptions;
use outrigger_sdk::{Call, Host, Plugin, Reply};

struct Twice;

impl Plugin for Twice {
    const MANIFEST: &'static str = r#"{"id": "hello", "version": "1", "summary": "Says hello", "methods": []}"#;

    type Options = NoOptions;

    fn new(_: Host, _: NoOptions) -> Result<Self, String> {
        Ok(Self)
    }

    fn call(&self, _: Call<'_>, reply: Reply) {
        reply.send(Ok(1));
        reply.send(Ok(2));
    }
}
