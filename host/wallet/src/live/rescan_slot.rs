//! The state of a wallet's rescan.

use std::sync::atomic::{AtomicBool, AtomicU32};
use std::thread::JoinHandle;
use std::time::Instant;

use parking_lot::Mutex;

use crate::store::RescanRow;

#[derive(Default)]
pub struct Slot {
    pub state: Mutex<State>,
    pub(crate) abort: AtomicBool,
    pub millionths: AtomicU32,
}

#[derive(Default)]
pub struct State {
    pub last: u64,
    pub stage: Stage,
    pub thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
pub enum Stage {
    #[default]
    Idle,
    Reserved {
        rescan: u64,
        since: Instant,
        /// The start of the rescan, as an import stored it.
        stored: Option<RescanRow>,
    },
    Running(Instant),
}

impl Slot {
    /// An import has stored the start of the reserved rescan.
    pub fn note_stored(&self, row: RescanRow) {
        if let Stage::Reserved { stored, .. } = &mut self.state.lock().stage {
            *stored = Some(row);
        }
    }
}
