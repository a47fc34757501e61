// A service that no host asks a plugin for.
//~ expected one of keys-provider/1, policy/1

use outrigger_sdk::options::NoOptions;
use outrigger_sdk::{Host, Plugin, plugin};

struct Signer;

#[plugin(id = "signer", summary = "Signs", provides = ["signer/1"], methods = [])]
impl Plugin for Signer {
    fn new(_: Host, _: NoOptions) -> Result<Self, String> {
        Ok(Self)
    }
}

outrigger_sdk::export_plugin!(Signer);
