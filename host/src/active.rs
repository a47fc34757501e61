//! The calls in progress, for `getrpcinfo`.

use std::sync::Arc;
use std::time::Instant;

use outrigger_base::progress::Progress;
use outrigger_sdk::manifest::MethodSpec;
use parking_lot::Mutex;
use slab::Slab;

#[derive(Default)]
pub struct Active(Mutex<Slab<Running>>);

/// A call in progress.
#[derive(Clone)]
pub struct Running {
    pub method: Arc<MethodSpec>,
    pub began: Instant,
    pub progress: Option<Arc<Progress>>,
}

/// A call in progress, until dropped.
pub struct ActiveCall {
    active: Arc<Active>,
    place: usize,
}

impl Active {
    pub fn begin(self: &Arc<Self>, method: Arc<MethodSpec>, progress: Option<Arc<Progress>>) -> ActiveCall {
        let place = self.0.lock().insert(Running { method, began: Instant::now(), progress });
        ActiveCall { active: self.clone(), place }
    }

    /// The calls, the oldest first.
    pub fn list(&self) -> Vec<Running> {
        let mut calls: Vec<Running> = self.0.lock().iter().map(|(_, call)| call.clone()).collect();
        calls.sort_by_key(|call| call.began);
        calls
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
            // The fourth call takes the place of the first.
            let fourth = active.begin(method("d"), None);
            assert_eq!(names(&active), ["b", "c", "d"]);
            drop((second, third, fourth));
        });
        assert_eq!(names(&active), [""; 0]);
    }
}
