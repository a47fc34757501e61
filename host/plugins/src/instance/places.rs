//! The places of an isolated plugin's calls without a time limit in its process.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

pub(super) struct Places {
    free: Arc<Semaphore>,
    /// How many places there are.
    pub most: usize,
}

/// No place became free in time.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Full;

impl Places {
    pub fn new(most: usize) -> Self {
        Self { free: Arc::new(Semaphore::new(most)), most }
    }

    /// Waits for a place, at most for `limit`. A `nested` call, for which another one waits, does not wait, since the calls that have the
    /// places may wait for it: it goes on without a place if none is free.
    pub async fn take(&self, nested: bool, limit: Option<Duration>) -> Result<Option<OwnedSemaphorePermit>, Full> {
        if nested {
            return Ok(self.free.clone().try_acquire_owned().ok());
        }
        let place = self.free.clone().acquire_owned();
        let place = match limit {
            Some(limit) => tokio::time::timeout(limit, place).await.ok(),
            None => Some(place.await),
        };
        // The semaphore is never closed.
        place.and_then(Result::ok).map(Some).ok_or(Full)
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn poll<T>(work: impl Future<Output = T>) -> Poll<T> {
        pin!(work).poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn a_nested_call_goes_on_without_a_place_and_others_wait_for_one() {
        let places = Places::new(1);
        let Poll::Ready(Ok(Some(place))) = poll(places.take(false, None)) else { panic!("a place is free") };
        assert!(poll(places.take(false, None)).is_pending());
        assert!(matches!(poll(places.take(true, None)), Poll::Ready(Ok(None))));
        drop(place);
        let Poll::Ready(Ok(Some(_place))) = poll(places.take(true, None)) else { panic!("a place is free") };
        assert!(poll(places.take(false, None)).is_pending(), "a nested call counts if it has a place");
    }
}
