//! Values that follow from a wallet's tables and cost much to read from them, kept in memory for the latest snapshot.
//!
//! Each write collects how it changes such a value, and the value changes with its commit. The number of a snapshot says which
//! value belongs to it. A call whose snapshot has another number, because a write came between, reads the tables.

use std::sync::Arc;

use parking_lot::Mutex;

use super::error::Result;
use super::store::{Reading, Tables};

/// A value that follows from a wallet's tables.
pub trait Derived: Sized {
    /// How a write changes it.
    type Change;

    /// Reads it from the tables.
    ///
    /// # Errors
    /// When the storage fails, or a row is damaged.
    fn read(t: &Tables, txn: &Reading<'_>) -> Result<Self>;

    /// Changes the kept value. Calls that hold the former one keep it.
    fn change(kept: &mut Arc<Self>, change: Self::Change);
}

/// The value of the latest snapshot, once it was read.
pub struct Latest<T: Derived>(Mutex<Kept<T>>);

struct Kept<T: Derived> {
    /// The value, and the number of its snapshot.
    value: Option<(usize, Arc<T>)>,
    /// The change of a write that is being committed, and the number of the snapshot that shows it.
    coming: Option<(usize, T::Change)>,
}

impl<T: Derived> Default for Latest<T> {
    fn default() -> Self {
        Self(Mutex::new(Kept { value: None, coming: None }))
    }
}

impl<T: Derived> Kept<T> {
    /// Takes over the change of a write that is on disk.
    fn settle(&mut self) {
        let Some((number, change)) = self.coming.take() else { return };
        self.value = self.value.take().filter(|(of, _)| of + 1 == number).map(|(_, mut value)| {
            T::change(&mut value, change);
            (number, value)
        });
    }
}

impl<T: Derived> Latest<T> {
    /// The value of the snapshot of a number. None where it has to be read.
    pub fn of(&self, number: usize) -> Option<Arc<T>> {
        let mut kept = self.0.lock();
        // A reader of the write's snapshot may be ahead of the thread that wrote.
        if kept.coming.as_ref().is_some_and(|(coming, _)| *coming == number) {
            kept.settle();
        }
        kept.value.as_ref().filter(|(of, _)| *of == number).map(|(_, value)| value.clone())
    }

    /// The value of a snapshot, read from its tables where it is not at hand.
    ///
    /// # Errors
    /// As [`Derived::read`].
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

    /// A write is about to be committed. Its snapshot has this number if it writes anything.
    pub fn announce(&self, number: usize, change: T::Change) {
        self.0.lock().coming = Some((number, change));
    }

    /// The write that was announced has ended. The last snapshot has this number now.
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
        // Neither an empty write nor a failed one makes a snapshot.
        latest.announce(6, 1);
        latest.end(5);
        assert_eq!(latest.of(5), Some(Arc::new(3)));
        // After a write that was not announced the value is unknown.
        latest.announce(7, 1);
        latest.end(7);
        assert!(latest.of(7).is_none() && latest.of(5).is_none());
    }
}
