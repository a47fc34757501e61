// A wrapper that does not implement `wrap`.
//~ a wrapper implements `Plugin::wrap`

use outrigger_sdk::options::NoOptions;
use outrigger_sdk::{Host, Plugin, plugin};

struct Cache;

#[plugin(id = "cache", summary = "Caches", wrapper = "pooled", methods = [])]
impl Plugin for Cache {
    fn new(_: Host, _: NoOptions) -> Result<Self, String> {
        Ok(Self)
    }
}

outrigger_sdk::export_plugin!(Cache);
