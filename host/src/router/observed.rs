//! Reports ended calls to the plugins that observe them.

use std::sync::Arc;
use std::time::Instant;

use outrigger_plugins::registry::Registry;
use outrigger_rpc::{Answer, Call, Failure, Origin};
use outrigger_service::events::Event;

/// The error code that observers see for a call that was not started.
const NOT_BEGUN: i32 = -1;

/// A call in progress, which is reported to observers when it ends.
pub struct Observed {
    method: String,
    origin: Arc<Origin>,
    began: Instant,
}

impl Observed {
    pub fn of(call: &Call) -> Self {
        Self { method: call.method.clone(), origin: call.origin.clone(), began: Instant::now() }
    }

    pub fn tell(self, registry: &Registry, answer: &Answer) {
        let Self { method, origin, began } = self;
        let wallet = origin.shown_wallet();
        let code = match answer {
            Ok(_) => 0,
            Err(Failure::Rpc(error)) => error.code.0,
            Err(_) => NOT_BEGUN,
        };
        let microseconds = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        let event = Event::CallEnded { method, user: origin.user.to_string(), wallet, code, microseconds };
        if let Event::CallEnded { method, .. } = &event {
            registry.tell_observers(method, &event);
        }
    }
}
