//! Values that are expensive to derive from a wallet's tables, cached in memory for the latest snapshot.
//!
//! Each write collects its change of a value and applies it on commit. A cached value has the number of its snapshot. A
//! call on another snapshot, because of a write in between, reads the tables.

use std::sync::Arc;

use parking_lot::Mutex;

use super::error::Result;
use super::store::{Reading, Tables};

pub trait Derived: Sized {
    type Change;

    fn read(t: &Tables, txn: &Reading<'_>) -> Result<Self>;

    /// Applies a change. Calls that hold the former value keep it.
    fn change(kept: &mut Arc<Self>, change: Self::Change);
}

/// The value of the latest snapshot, once read.
pub struct Latest<T: Derived>(Mutex<Kept<T>>);

struct Kept<T: Derived> {
    /// The value, and its snapshot's number.
    value: Option<(usize, Arc<T>)>,
    /// The change of the committing write, and the number of the snapshot that includes it.
    coming: Option<(usize, T::Change)>,
}

impl<T: Derived> Default for Latest<T> {
    fn default() -> Self {
        Self(Mutex::new(Kept { value: None, coming: None }))
    }
}

impl<T: Derived> Kept<T> {
    /// Applies the change of a write that is on disk.
    fn settle(&mut self) {
        let Some((number, change)) = self.coming.take() else { return };
        self.value = self.value.take().filter(|(of, _)| of + 1 == number).map(|(_, mut value)| {
            T::change(&mut value, change);
            (number, value)
        });
    }
}

impl<T: Derived> Latest<T> {
    /// The value of a snapshot by its number; `None` if it is not cached.
    pub fn of(&self, number: usize) -> Option<Arc<T>> {
        let mut kept = self.0.lock();
        // A reader may open the write's snapshot before the writing thread calls `end`.
        if kept.coming.as_ref().is_some_and(|(coming, _)| *coming == number) {
            kept.settle();
        }
        kept.value.as_ref().filter(|(of, _)| *of == number).map(|(_, value)| value.clone())
    }

    /// The value of a snapshot, cached or read from its tables.
    pub fn at(&self, t: &Tables, txn: &Reading<'_>) -> Result<Arc<T>> {
        let number = txn.id();
        if let Some(value) = self.of(number) {
            return Ok(value);
        }
        let value = Arc::new(T::read(t, txn)?);
        let mut kept = self.0.lock();
        if kept.value.as_ref().is_none_or(|(of, _)| *of < number) {
            kept.value = Some((number, value.clone()));
        }
        Ok(value)
    }

    /// Called before a commit. The snapshot after it has this number, unless the write is empty.
    pub fn announce(&self, number: usize, change: T::Change) {
        self.0.lock().coming = Some((number, change));
    }

    /// Called after the commit, with the number of the latest snapshot.
    pub fn end(&self, last: usize) {
        let mut kept = self.0.lock();
        match &kept.coming {
            Some((number, _)) if *number == last => kept.settle(),
            _ => kept.coming = None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Derived for u64 {
        type Change = u64;

        fn read(_: &Tables, _: &Reading<'_>) -> Result<Self> {
            unreachable!("the tests keep values themselves")
        }

        fn change(kept: &mut Arc<Self>, change: u64) {
            *kept = Arc::new(**kept + change);
        }
    }

    #[test]
    fn value_is_given_for_its_own_snapshot_alone() {
        let latest = Latest::<u64>::default();
        assert_eq!(latest.of(4), None);
        latest.0.lock().value = Some((4, Arc::new(1)));
        latest.announce(5, 2);
        assert_eq!(latest.of(4), Some(Arc::new(1)), "until a reader sees the write");
        assert_eq!(latest.of(5), Some(Arc::new(3)));
        assert_eq!(latest.of(4), None);
        latest.end(5);
        assert_eq!(latest.of(5), Some(Arc::new(3)), "changed once");
        // Neither an empty write nor a failed one creates a snapshot.
        latest.announce(6, 1);
        latest.end(5);
        assert_eq!(latest.of(5), Some(Arc::new(3)));
        // The value is unknown after a write that was not announced.
        latest.announce(7, 1);
        latest.end(7);
        assert!(latest.of(7).is_none() && latest.of(5).is_none());
    }
}
