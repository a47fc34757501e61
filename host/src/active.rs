//! The calls in progress, for `getrpcinfo`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use outrigger_base::progress::Progress;
use outrigger_sdk::manifest::MethodSpec;
use parking_lot::Mutex;
use slab::Slab;

#[derive(Default)]
pub struct Active(Mutex<Slab<Begun>>);

struct Begun {
    method: Arc<MethodSpec>,
    at: Instant,
    progress: Option<Arc<Progress>>,
}

/// A call in progress.
pub struct Listed {
    pub method: Arc<MethodSpec>,
    /// How long it has been running.
    pub duration: Duration,
    /// The done and the total amount of work, if the plugin reports them.
    pub progress: Option<(u64, u64)>,
}

/// A call in progress, until dropped.
pub struct ActiveCall {
    active: Arc<Active>,
    place: usize,
}

impl Active {
    pub fn begin(self: &Arc<Self>, method: Arc<MethodSpec>, progress: Option<Arc<Progress>>) -> ActiveCall {
        let place = self.0.lock().insert(Begun { method, at: Instant::now(), progress });
        ActiveCall { active: self.clone(), place }
    }

    /// The calls, the oldest first.
    pub fn list(&self) -> Vec<Listed> {
        let now = Instant::now();
        let listed = |call: &Begun| Listed {
            method: call.method.clone(),
            duration: now.saturating_duration_since(call.at),
            progress: call.progress.as_ref().and_then(|progress| progress.get()),
        };
        let mut calls: Vec<_> = self.0.lock().iter().map(|(_, call)| (call.at, listed(call))).collect();
        calls.sort_by_key(|(at, _)| *at);
        calls.into_iter().map(|(_, call)| call).collect()
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
        active.list().into_iter().map(|call| call.method.name.clone()).collect()
    }

    #[test]
    fn calls_are_listed_in_the_order_in_which_they_began_until_they_end() {
        let active = Arc::new(Active::default());
        let first = active.begin(method("a"), None);
        std::thread::scope(|scope| {
            let second = scope.spawn(|| active.begin(method("b"), None)).join().unwrap();
            let third = active.begin(method("c"), None);
            assert_eq!(names(&active), ["a", "b", "c"]);
            drop(first);
            let fourth = active.begin(method("d"), None);
            assert_eq!(names(&active), ["b", "c", "d"]);
            let lengths: Vec<_> = active.list().into_iter().map(|call| call.duration).collect();
            assert!(lengths.is_sorted_by(|a, b| a >= b), "{lengths:?}");
            drop((second, third, fourth));
        });
        assert_eq!(names(&active), [""; 0]);
    }
}
