// A plugin that answers nothing.
//~ not all trait items implemented, missing: `call`

use outrigger_sdk::options::NoOptions;
use outrigger_sdk::{Host, Plugin};

struct Mute;

impl Plugin for Mute {
    const MANIFEST: &'static str = r#"{"id": "hello", "version": "1", "summary": "Says hello", "methods": []}"#;

    type Options = NoOptions;

    fn new(_: Host, _: NoOptions) -> Result<Self, String> {
        Ok(Self)
    }
}
