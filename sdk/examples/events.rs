//! Receiving events: a plugin that counts blocks.
#![allow(clippy::unwrap_used, reason = "a broken expectation fails the example")]

use std::sync::atomic::{AtomicU32, Ordering};

use outrigger_sdk::options::NoOptions;
use outrigger_sdk::serde_json::{Value, json};
use outrigger_sdk::service::events::Event;
use outrigger_sdk::testing::StubHost;
use outrigger_sdk::{Call, Host, Plugin, RpcError, methods, plugin};

/// Counts changes of the tip since its start.
#[derive(Default)]
struct Counter {
    blocks: AtomicU32,
}

#[plugin(id = "counter", summary = "Counts blocks", services = ["events/1"], events = ["tip"])]
impl Plugin for Counter {
    fn new(_: Host, _: NoOptions) -> Result<Self, String> {
        Ok(Self::default())
    }

    fn event(&self, event: Event) {
        // The plugin subscribes to `tip` only, but each plugin also gets `ShuttingDown`.
        if let Event::TipChanged { .. } = event {
            self.blocks.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[methods(category = "Test")]
impl Counter {
    /// Tells the count.
    #[method]
    fn countblocks(&self, call: &Call<'_>) -> Result<Value, RpcError> {
        let missed = call.host.events.dropped(call.scope)?;
        Ok(json!({"blocks": self.blocks.load(Ordering::Relaxed), "missed": missed}))
    }
}

fn main() {
    let test = StubHost::new();
    let plugin = test.start::<Counter>(json!({}));
    let hash = test.chain.mine(vec![]);
    plugin.tell(Event::TipChanged { hash, height: 1 });
    assert_eq!(plugin.call("countblocks", json!([])), Ok(json!({"blocks": 1, "missed": 0})));
}
