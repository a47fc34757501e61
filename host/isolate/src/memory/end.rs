//! The end of a region's writer, of which who sleeps on its counters would hear nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use super::mapping::{Area, Region};
use super::waiting::wake;

const WRITES: u8 = 0;
const BEING_TOLD: u8 = 1;
const ENDED: u8 = 2;

/// Whether the writer of a region has ended.
#[derive(Debug, Default)]
pub struct End(AtomicU8);

impl End {
    /// Wakes all who wait for a region's writer, which has ended, once.
    pub fn tell(&self, theirs: &Arc<Region>) {
        if self.0.compare_exchange(WRITES, BEING_TOLD, Ordering::SeqCst, Ordering::SeqCst).is_err() {
            return;
        }
        let areas = || (0..).map_while(|place| Area::new(theirs, place));
        // A counter that changes lets nobody fall asleep on it.
        for area in areas() {
            area.published().fetch_add(1, Ordering::SeqCst);
        }
        self.0.store(ENDED, Ordering::SeqCst);
        areas().for_each(|area| {
            wake(area.published());
            wake(area.taken());
        });
    }

    /// Whether it has: it takes nothing any more.
    pub fn has_come(&self) -> bool {
        self.0.load(Ordering::SeqCst) != WRITES
    }

    /// How many slots the writer of an area has published, and whether no more will come.
    pub fn published(&self, area: &Area) -> (u32, bool) {
        loop {
            let before = self.0.load(Ordering::SeqCst);
            let published = area.published().load(Ordering::SeqCst);
            match (before, self.0.load(Ordering::SeqCst)) {
                (WRITES, WRITES) => return (published, false),
                // One more than the writer has published.
                (ENDED, _) => return (published.wrapping_sub(1), true),
                _ => std::hint::spin_loop(),
            }
        }
    }
}
