// A provider of keys that does not implement the service.
//~ the trait bound `Signer: KeysProvider` is not satisfied

use outrigger_sdk::options::NoOptions;
use outrigger_sdk::{Host, Plugin, plugin};

struct Signer;

#[plugin(id = "signer", summary = "Signs", provides = ["keys-provider/1"], methods = [])]
impl Plugin for Signer {
    fn new(_: Host, _: NoOptions) -> Result<Self, String> {
        Ok(Self)
    }
}

outrigger_sdk::export_plugin!(Signer);
