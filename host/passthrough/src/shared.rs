//! Concurrent equal requests share one request to the node.

use std::collections::HashMap;
use std::hash::Hash;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, WeakShared};
use parking_lot::Mutex;

pub(crate) struct SingleFlight<K, T: Clone> {
    flights: Mutex<HashMap<K, WeakShared<BoxFuture<'static, T>>>>,
}

impl<K, T: Clone> Default for SingleFlight<K, T> {
    fn default() -> Self {
        Self { flights: Mutex::default() }
    }
}

impl<K: Hash + Eq + Clone, T: Clone + Send + 'static> SingleFlight<K, T> {
    /// Joins this key's work in flight, or begins it. Work without waiters is dropped.
    pub async fn run(&self, key: K, begin: impl FnOnce() -> BoxFuture<'static, T>) -> T {
        let work = {
            let mut flights = self.flights.lock();
            match flights.get(&key).and_then(WeakShared::upgrade) {
                Some(work) if work.peek().is_none() => work,
                _ => {
                    flights.retain(|_, work| work.upgrade().is_some_and(|work| work.peek().is_none()));
                    let work = begin().shared();
                    if let Some(weak) = work.downgrade() {
                        flights.insert(key, weak);
                    }
                    work
                }
            }
        };
        work.await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn single_flight_runs_once_for_all_waiters() {
        let (flights, runs) = (Arc::new(SingleFlight::<u8, usize>::default()), Arc::new(AtomicUsize::new(0)));
        let gate = Arc::new(tokio::sync::Notify::new());
        let ask = |key: u8| {
            let (flights, runs, gate) = (flights.clone(), runs.clone(), gate.clone());
            async move {
                let begin = || {
                    async move {
                        gate.notified().await;
                        runs.fetch_add(1, Ordering::SeqCst)
                    }
                    .boxed()
                };
                flights.run(key, begin).await
            }
        };
        let all = futures_util::future::join_all((0..10).map(|_| ask(1)));
        let (answers, ()) = tokio::join!(all, async { gate.notify_one() });
        assert_eq!(answers, [0; 10]);
        gate.notify_one();
        assert_eq!(ask(1).await, 1, "ended work is not reused");
    }
}
