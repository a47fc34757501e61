// A result of which nobody knows how it becomes JSON.
//~ the trait bound `Block: serde::Serialize` is not satisfied
//~ for local types consider adding `#[derive(serde::Serialize)]` to your `Block` type

use outrigger_sdk::options::NoOptions;
use outrigger_sdk::{Call, Host, Plugin, Reply};

struct Block {
    height: u32,
}

struct Blocks;

impl Plugin for Blocks {
    const MANIFEST: &'static str = r#"{"id": "hello", "version": "1", "summary": "Says hello", "methods": []}"#;

    type Options = NoOptions;

    fn new(_: Host, _: NoOptions) -> Result<Self, String> {
        Ok(Self)
    }

    fn call(&self, _: Call<'_>, reply: Reply) {
        reply.send(Ok(Block { height: 7 }));
    }
}
