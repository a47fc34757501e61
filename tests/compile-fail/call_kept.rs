// What a call lends is used on another thread, after the call.
//~ borrowed data escapes outside of method
//~ `call` is a reference that is only valid in the method body

use outrigger_sdk::options::NoOptions;
use outrigger_sdk::{Call, Host, Plugin, Reply};

struct Echo;

impl Plugin for Echo {
    const MANIFEST: &'static str = r#"{"id": "hello", "version": "1", "summary": "Says hello", "methods": []}"#;

    type Options = NoOptions;

    fn new(_: Host, _: NoOptions) -> Result<Self, String> {
        Ok(Self)
    }

    fn call(&self, call: Call<'_>, reply: Reply) {
        std::thread::spawn(move || reply.send(Ok(call.method)));
    }
}
