//! The current source of hints.

use outrigger_node::HintSource;
use parking_lot::Mutex;

#[derive(Default)]
pub(crate) struct Source(Mutex<HintSource>);

impl Source {
    pub fn get(&self) -> HintSource {
        *self.0.lock()
    }

    pub fn set(&self, source: HintSource) {
        *self.0.lock() = source;
    }

    /// Replaces the source, unless it has changed meanwhile.
    pub fn replace(&self, former: HintSource, source: HintSource) {
        let mut now = self.0.lock();
        if *now == former {
            *now = source;
        }
    }
}
