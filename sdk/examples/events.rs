//! Hearing of events: a plugin that counts blocks.
#![allow(clippy::unwrap_used, reason = "an example says what it expects by failing")]

use std::sync::atomic::{AtomicU32, Ordering};

use outrigger_sdk::serde_json::{Map, Value, json};
use outrigger_sdk::service::events::Event;
use outrigger_sdk::testing::StubHost;
use outrigger_sdk::{Call, Host, Plugin, Reply, RpcError};

/// Counts changes of the tip while it runs.
struct Counter {
    host: Host,
    blocks: AtomicU32,
}

impl Plugin for Counter {
    fn new(host: Host, _: Map<String, Value>) -> Result<Self, String> {
        Ok(Self { host, blocks: AtomicU32::new(0) })
    }

    fn event(&self, event: Event) {
        // The manifest says `"events": ["tip"]`. `ShuttingDown` comes to everybody.
        if let Event::TipChanged { .. } = event {
            self.blocks.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn call(&self, call: Call<'_>, reply: Reply) {
        let dropped = self.host.events.dropped(call.scope).map_err(RpcError::from);
        let blocks = self.blocks.load(Ordering::Relaxed);
        reply.send(dropped.map(|dropped| json!({"blocks": blocks, "missed": dropped})));
    }
}

const MANIFEST: &str = r#"{"id": "counter", "version": "1.0.0", "summary": "Counts blocks", "events": ["tip"],
    "services": ["events/1"], "methods": [{"name": "countblocks", "category": "Test", "help": "Tells the count."}]}"#;

fn main() {
    let test = StubHost::new();
    let plugin = test.start::<Counter>(MANIFEST, json!({}));
    let hash = test.chain.mine(vec![]);
    plugin.tell(Event::TipChanged { hash, height: 1 });
    assert_eq!(plugin.call("countblocks", json!([])), Ok(json!({"blocks": 1, "missed": 0})));
}

#[test]
fn example_events_does_what_it_says() {
    main();
}
