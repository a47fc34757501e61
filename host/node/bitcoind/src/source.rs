//! What says at the moment that there is something to read at the node.

use outrigger_node::HintSource;
use parking_lot::Mutex;

/// Which hints count at the moment.
pub(crate) struct Source(Mutex<HintSource>);

impl Default for Source {
    fn default() -> Self {
        Self(Mutex::new(HintSource::Poll))
    }
}

impl Source {
    /// Where the hints come from.
    pub fn get(&self) -> HintSource {
        *self.0.lock()
    }

    /// They come from there now.
    pub fn set(&self, source: HintSource) {
        *self.0.lock() = source;
    }

    /// They come from another source, unless a third one came before.
    pub fn replace(&self, former: HintSource, source: HintSource) {
        let mut now = self.0.lock();
        if *now == former {
            *now = source;
        }
    }
}
