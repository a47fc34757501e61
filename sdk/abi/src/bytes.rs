//! Bytes that cross the boundary: lent for a call, or owned with a release function.

use std::ffi::c_void;
use std::ops::Deref;
use std::sync::Arc;

use zeroize::Zeroizing;

use super::layout::{abi_functions, abi_struct};
use super::panics::caught;

abi_struct! {
    /// Bytes that the callee may read until the function returns.
    #[derive(Clone, Copy)]
    pub struct Bytes {
        /// The first byte; may be null when `len` is 0.
        pub ptr: *const u8,
        /// The number of bytes.
        pub len: usize,
    }
}

impl Bytes {
    /// Lends `bytes`.
    pub fn lend(bytes: &[u8]) -> Self {
        Self { ptr: bytes.as_ptr(), len: bytes.len() }
    }

    /// The lent bytes.
    ///
    /// # Safety
    /// `ptr` points to `len` readable bytes that no thread writes during `'a`, or `len` is 0.
    pub unsafe fn as_slice<'a>(self) -> &'a [u8] {
        if self.len == 0 || self.ptr.is_null() {
            return &[];
        }
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts(self.ptr, self.len) }
    }
}

abi_functions! {
    const FUNCTIONS;
    /// Releases owned bytes.
    ///
    /// Threads: any, once, even while other functions of the same plugin run.
    ///
    /// Ownership: returns `owner` and its bytes to the side that made them.
    ///
    /// Lifetime: may be called after the instance that made the bytes was destroyed, so it must not use that instance.
    pub type ReleaseFn = fn(owner: *mut c_void);
}

abi_struct! {
    /// Bytes that the receiver releases with `release`, on any thread. No side writes them after they are passed on.
    pub struct OwnedBytes {
        /// The first byte; may be null when `len` is 0.
        ptr: *const u8,
        /// The number of bytes.
        len: usize,
        /// The argument of `release`.
        owner: *mut c_void,
        /// Releases the bytes; null if there is nothing to release.
        release: Option<ReleaseFn>,
    }
}

// SAFETY: no side writes the bytes after they are passed on, and any thread may release them (see `ReleaseFn`).
unsafe impl Send for OwnedBytes {}
// SAFETY: as above; shared access only reads.
unsafe impl Sync for OwnedBytes {}

impl OwnedBytes {
    /// No bytes, and nothing to release.
    pub const EMPTY: OwnedBytes =
        OwnedBytes { ptr: std::ptr::null(), len: 0, owner: std::ptr::null_mut(), release: None };
}

impl From<Vec<u8>> for OwnedBytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self::held_by(bytes)
    }
}

impl From<Arc<Vec<u8>>> for OwnedBytes {
    /// Shares the bytes without a copy. The last release frees them.
    fn from(bytes: Arc<Vec<u8>>) -> Self {
        unsafe extern "C" fn release(owner: *mut c_void) {
            // SAFETY: `owner` is from `Arc::into_raw` below and released once.
            caught(|| drop(unsafe { Arc::from_raw(owner.cast_const().cast::<Vec<u8>>()) }));
        }
        let (ptr, len) = (bytes.as_ptr(), bytes.len());
        Self { ptr, len, owner: Arc::into_raw(bytes).cast_mut().cast(), release: Some(release) }
    }
}

impl OwnedBytes {
    /// The bytes of `holder`, which is dropped on release.
    pub fn held_by<T: AsRef<[u8]> + Send + 'static>(holder: T) -> Self {
        unsafe extern "C" fn release<T>(owner: *mut c_void) {
            // SAFETY: `owner` is from `Box::into_raw` below and released once, by `Drop` or by the other side.
            caught(|| drop(unsafe { Box::from_raw(owner.cast::<T>()) }));
        }
        let boxed = Box::new(holder);
        let bytes = (*boxed).as_ref();
        let (ptr, len) = (bytes.as_ptr(), bytes.len());
        Self { ptr, len, owner: Box::into_raw(boxed).cast(), release: Some(release::<T>) }
    }

    /// Bytes that are wiped on release.
    pub fn secret(bytes: Vec<u8>) -> Self {
        Self::held_by(Zeroizing::new(bytes))
    }
}

impl Deref for OwnedBytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: the side that filled this in promised `len` readable bytes at `ptr` until the release.
        unsafe { Bytes { ptr: self.ptr, len: self.len }.as_slice() }
    }
}

impl AsRef<[u8]> for OwnedBytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Drop for OwnedBytes {
    fn drop(&mut self) {
        if let Some(release) = self.release.take() {
            // SAFETY: `release` belongs to `owner`, and `take` makes this the only call.
            unsafe { release(self.owner) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owned_bytes_live_until_dropped_on_another_thread() {
        let owned = OwnedBytes::from(b"reply".to_vec());
        let len = std::thread::spawn(move || owned.len()).join().unwrap();
        assert_eq!(len, 5);
        assert!(OwnedBytes::EMPTY.is_empty());
    }

    #[test]
    fn shared_bytes_are_one_and_the_same_until_the_last_is_dropped() {
        let shared = Arc::new(b"template".to_vec());
        let (one, other) = (OwnedBytes::from(shared.clone()), OwnedBytes::from(shared.clone()));
        assert_eq!((one.as_ptr(), other.as_ptr()), (shared.as_ptr(), shared.as_ptr()));
        drop(one);
        std::thread::spawn(move || assert_eq!(&*other, b"template")).join().unwrap();
        assert_eq!(Arc::strong_count(&shared), 1);
    }
}
