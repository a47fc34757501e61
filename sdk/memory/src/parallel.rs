//! Runs independent work on several CPUs.
//!
//! The threads end with the call. Starting a thread costs about 30 us, so a small job stays on the calling thread.
//!
//! ```
//! use outrigger_memory::parallel;
//!
//! let squares = parallel::map((0..1000).collect(), 100, |number: u64| number * number);
//! assert_eq!(squares.get(999), Some(&998_001));
//! ```

use std::num::NonZero;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::thread;

use crate::wipe_stack;

/// The most threads per call, the calling one included.
const MAX_THREADS: usize = 8;
/// The stack size of threads, in bytes. As large as on the host's call threads, since scripts are parsed recursively.
const STACK_SIZE: usize = 8 << 20;

/// The number of threads that the machine can run in parallel, at most [`MAX_THREADS`].
static THREADS: LazyLock<usize> =
    LazyLock::new(|| thread::available_parallelism().map_or(1, NonZero::get).min(MAX_THREADS));

/// Applies `work` to each item. Returns the results in order. `batch` is the least number of items worth a thread: a
/// thread takes this many at a time, and there are no more threads than batches.
pub fn map<T: Send, R: Send>(items: Vec<T>, batch: usize, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    map_while(items, batch, &|| true, work).unwrap_or_default()
}

/// Like [`map`], but calls `wanted` before each batch, and stops and returns `None` once it is false.
pub fn map_while<T: Send, R: Send>(
    items: Vec<T>,
    batch: usize,
    wanted: &(dyn Fn() -> bool + Sync),
    work: impl Fn(T) -> R + Sync,
) -> Option<Vec<R>> {
    let (batch, count) = (batch.max(1), items.len());
    let queue = Mutex::new(items.into_iter().enumerate());
    let unwanted = AtomicBool::new(false);
    let worker = || {
        let mut done = Vec::new();
        loop {
            if unwanted.load(Ordering::Relaxed) || !wanted() {
                unwanted.store(true, Ordering::Relaxed);
                return done;
            }
            let taken: Vec<(usize, T)> =
                queue.lock().unwrap_or_else(PoisonError::into_inner).by_ref().take(batch).collect();
            if taken.is_empty() {
                return done;
            }
            done.extend(taken.into_iter().map(|(place, item)| (place, work(item))));
        }
    };
    let threads = THREADS.min(count.div_ceil(batch));
    let mut done = if threads <= 1 { worker() } else { on_threads(threads, &worker) };
    if unwanted.into_inner() {
        return None;
    }
    done.sort_unstable_by_key(|(place, _)| *place);
    Some(done.into_iter().map(|(_, result)| result).collect())
}

/// Runs `worker` on this many threads, including the calling one, or on fewer if the system refuses more.
fn on_threads<D: Send>(threads: usize, worker: &(impl Fn() -> Vec<D> + Sync)) -> Vec<D> {
    thread::scope(|scope| {
        let other = move || {
            let done = worker();
            // The work may have used private keys, and the system reuses stacks for later threads.
            wipe_stack();
            done
        };
        let start = |_| thread::Builder::new().stack_size(STACK_SIZE).spawn_scoped(scope, other).ok();
        let others: Vec<_> = (1..threads).filter_map(start).collect();
        let mut done = worker();
        for other in others {
            match other.join() {
                Ok(results) => done.extend(results),
                // The caller panics as if the work had run on its thread.
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn results_come_in_the_order_of_the_items() {
        for count in [0, 1, 7, 8, 9, 1000] {
            let items: Vec<usize> = (0..count).collect();
            assert_eq!(map(items.clone(), 4, |item| item), items);
        }
        // A batch size of 0 counts as 1.
        assert_eq!(map(vec![1, 2], 0, |item| item + 1), [2, 3]);
    }

    #[test]
    fn little_work_stays_on_its_thread() {
        let own = thread::current().id();
        let threads = map((0..16).collect(), 16, |_: u8| thread::current().id());
        assert_eq!(threads.into_iter().collect::<HashSet<_>>(), HashSet::from([own]));
    }

    #[test]
    fn unwanted_work_ends_before_its_next_batch() {
        let done = AtomicUsize::new(0);
        let wanted = || done.load(Ordering::Relaxed) < 10;
        let work = |_: u32| done.fetch_add(1, Ordering::Relaxed);
        assert_eq!(map_while((0..100_000).collect(), 5, &wanted, work), None);
        // Each thread may have begun one more batch.
        assert!(done.into_inner() < 10 + 5 * MAX_THREADS);
    }

    #[test]
    #[should_panic(expected = "item 77")]
    fn parallel_work_that_panics_panics_in_the_caller() {
        map((0..100).collect(), 1, |item: u32| assert!(item != 77, "item {item}"));
    }
}
