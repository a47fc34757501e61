// A plugin that answers nothing.
//~ not all trait items implemented, missing: `call`

use outrigger_sdk::serde_json::{Map, Value};
use outrigger_sdk::{Host, Plugin};

struct Mute;

impl Plugin for Mute {
    fn new(_: Host, _: Map<String, Value>) -> Result<Self, String> {
        Ok(Self)
    }
}
