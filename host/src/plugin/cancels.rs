//! Notices to plugins that nobody waits for a call any more.
//!
//! They have a thread of their own: behind the calls that they are to cancel they would come too late.

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use super::instance::Instance;

/// Where notices are left.
pub struct Cancels(Sender<(Arc<Instance>, u64)>);

impl Cancels {
    /// Starts the thread; it ends with the last notice after this value is dropped.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start() -> std::io::Result<Self> {
        let (sender, notices) = channel::<(Arc<Instance>, u64)>();
        let work = move || {
            for (instance, token) in notices {
                instance.cancel(token);
            }
        };
        std::thread::Builder::new().name("cancel".to_owned()).spawn(work)?;
        Ok(Self(sender))
    }

    /// Leaves a notice. Each call is cancelled at most once this way, so there are no more notices than calls.
    pub fn leave(&self, instance: Arc<Instance>, token: u64) {
        // Without the thread the process is at its end.
        let _ = self.0.send((instance, token));
    }
}
