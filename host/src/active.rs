//! The calls in progress, for `getrpcinfo`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use outrigger_sdk::manifest::MethodSpec;
use parking_lot::Mutex;
use slab::Slab;

#[derive(Default)]
pub struct Active(Mutex<Slab<Begun>>);

struct Begun {
    method: Arc<MethodSpec>,
    at: Instant,
}

/// A call in progress, until dropped.
pub struct ActiveCall {
    active: Arc<Active>,
    place: usize,
}

impl Active {
    pub fn begin(self: &Arc<Self>, method: Arc<MethodSpec>) -> ActiveCall {
        let place = self.0.lock().insert(Begun { method, at: Instant::now() });
        ActiveCall { active: self.clone(), place }
    }

    /// The methods of the calls in order of their begin, each with its running time.
    pub fn list(&self) -> Vec<(Arc<MethodSpec>, Duration)> {
        let now = Instant::now();
        let mut calls: Vec<_> = self.0.lock().iter().map(|(_, call)| (call.at, call.method.clone())).collect();
        calls.sort_by_key(|(at, _)| *at);
        calls.into_iter().map(|(at, method)| (method, now.saturating_duration_since(at))).collect()
    }
}

impl Drop for ActiveCall {
    fn drop(&mut self) {
        let ended = self.active.0.lock().try_remove(self.place);
        drop(ended);
    }
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
}
