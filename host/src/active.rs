//! The calls in progress, for `getrpcinfo`.
//!
//! Every call is added and removed, so threads do not share written memory: each has a shard, and only a listing
//! contends for its lock.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use outrigger_sdk::manifest::MethodSpec;
use parking_lot::{Mutex, MutexGuard};

/// How many threads have their own shard: more than most machines have network threads. Others share.
const SHARDS: usize = 64;

pub struct Active {
    shards: [Shard; SHARDS],
}

/// On its own cache line.
#[derive(Default)]
#[repr(align(128))]
struct Shard(Mutex<Slots>);

/// A slab of calls.
#[derive(Default)]
struct Slots {
    calls: Vec<Option<Begun>>,
    free: Vec<usize>,
}

struct Begun {
    method: Arc<MethodSpec>,
    at: Instant,
}

/// A call in progress, until dropped.
pub struct ActiveCall {
    active: Arc<Active>,
    shard: usize,
    place: usize,
}

impl Default for Active {
    fn default() -> Self {
        Self { shards: std::array::from_fn(|_| Shard::default()) }
    }
}

impl Active {
    pub fn begin(self: &Arc<Self>, method: Arc<MethodSpec>) -> ActiveCall {
        let shard = own_shard();
        let mut slots = self.shard(shard).lock();
        let call = Some(Begun { method, at: Instant::now() });
        let Slots { calls, free } = &mut *slots;
        let place = match free.pop() {
            Some(place) => {
                if let Some(slot) = calls.get_mut(place) {
                    *slot = call;
                }
                place
            }
            None => {
                calls.push(call);
                calls.len() - 1
            }
        };
        drop(slots);
        ActiveCall { active: self.clone(), shard, place }
    }

    fn shard(&self, number: usize) -> &Shard {
        self.shards.get(number).unwrap_or(&self.shards[0])
    }

    /// The methods of the calls in order of their begin, each with its running time.
    pub fn list(&self) -> Vec<(Arc<MethodSpec>, Duration)> {
        let now = Instant::now();
        let mut calls = Vec::new();
        for shard in &self.shards {
            calls.extend(shard.lock().calls.iter().flatten().map(|call| (call.at, call.method.clone())));
        }
        calls.sort_by_key(|(at, _)| *at);
        calls.into_iter().map(|(at, method)| (method, now.saturating_duration_since(at))).collect()
    }
}

impl Shard {
    fn lock(&self) -> MutexGuard<'_, Slots> {
        // Every operation leaves the slots consistent, so poisoning is ignored.
        self.0.lock()
    }
}

impl Drop for ActiveCall {
    fn drop(&mut self) {
        let ended = {
            let mut slots = self.active.shard(self.shard).lock();
            let ended = slots.calls.get_mut(self.place).and_then(Option::take);
            slots.free.push(self.place);
            ended
        };
        drop(ended);
    }
}

fn own_shard() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static OWN: Cell<usize> = Cell::new(NEXT.fetch_add(1, Ordering::Relaxed) % SHARDS);
    }
    OWN.get()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn method(name: &str) -> Arc<MethodSpec> {
        let spec = serde_json::json!({"name": name, "category": "c", "help": ""});
        Arc::new(serde_json::from_value(spec).unwrap())
    }

    fn names(active: &Active) -> Vec<String> {
        active.list().into_iter().map(|(method, _)| method.name.clone()).collect()
    }

    #[test]
    fn calls_are_listed_in_the_order_in_which_they_began_until_they_end() {
        let active = Arc::new(Active::default());
        let first = active.begin(method("a"));
        // A call of another thread is in another shard.
        std::thread::scope(|scope| {
            let second = scope.spawn(|| active.begin(method("b"))).join().unwrap();
            let third = active.begin(method("c"));
            assert_eq!(names(&active), ["a", "b", "c"]);
            drop(first);
            let fourth = active.begin(method("d"));
            assert_eq!(names(&active), ["b", "c", "d"]);
            let lengths: Vec<_> = active.list().into_iter().map(|(_, length)| length).collect();
            assert!(lengths.is_sorted_by(|a, b| a >= b), "{lengths:?}");
            drop((second, third, fourth));
        });
        assert_eq!(names(&active), [""; 0]);
    }

    #[test]
    fn active_calls_use_places_again() {
        let active = Arc::new(Active::default());
        for _ in 0..100 {
            drop(active.begin(method("a")));
        }
        let places: usize = active.shards.iter().map(|shard| shard.lock().calls.len()).sum();
        assert_eq!(places, 1);
    }
}
