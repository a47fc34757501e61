//! Bytes that cross the boundary: borrowed for the time of a call, or owned with their release function.

use std::ffi::c_void;
use std::ops::Deref;

use zeroize::Zeroizing;

/// Bytes that the callee may read until the function returns.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Bytes {
    /// The first byte; may be null when `len` is 0.
    pub ptr: *const u8,
    /// How many there are.
    pub len: usize,
}

impl Bytes {
    /// Lends `bytes`.
    pub fn lend(bytes: &[u8]) -> Self {
        Self { ptr: bytes.as_ptr(), len: bytes.len() }
    }

    /// The bytes.
    ///
    /// # Safety
    /// `ptr` points to `len` readable bytes that nobody writes while `'a` lasts (or `len` is 0).
    pub unsafe fn as_slice<'a>(self) -> &'a [u8] {
        if self.len == 0 || self.ptr.is_null() {
            return &[];
        }
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts(self.ptr, self.len) }
    }
}

/// Bytes that the receiver releases, from any thread, with the function that came with them.
///
/// The release function must not depend on the instance that made the bytes: they may outlive it.
#[repr(C)]
pub struct OwnedBytes {
    ptr: *const u8,
    len: usize,
    owner: *mut c_void,
    release: Option<unsafe extern "C" fn(owner: *mut c_void)>,
}

// SAFETY: the bytes are never written after they were handed over, and the contract above lets any thread release them.
unsafe impl Send for OwnedBytes {}
// SAFETY: as above; shared access only reads.
unsafe impl Sync for OwnedBytes {}

impl OwnedBytes {
    /// No bytes, with nothing to release.
    pub const EMPTY: OwnedBytes =
        OwnedBytes { ptr: std::ptr::null(), len: 0, owner: std::ptr::null_mut(), release: None };
}

impl From<Vec<u8>> for OwnedBytes {
    fn from(bytes: Vec<u8>) -> Self {
        unsafe extern "C" fn release(owner: *mut c_void) {
            // SAFETY: `owner` came from `Box::into_raw` below and is released once, by `Drop` or by the other side.
            drop(unsafe { Box::from_raw(owner.cast::<Vec<u8>>()) });
        }
        let boxed = Box::new(bytes);
        let (ptr, len) = (boxed.as_ptr(), boxed.len());
        Self { ptr, len, owner: Box::into_raw(boxed).cast(), release: Some(release) }
    }
}

impl OwnedBytes {
    /// Bytes that are wiped when they are released.
    pub fn secret(bytes: Vec<u8>) -> Self {
        unsafe extern "C" fn release(owner: *mut c_void) {
            // SAFETY: `owner` came from `Box::into_raw` below and is released once.
            drop(unsafe { Box::from_raw(owner.cast::<Zeroizing<Vec<u8>>>()) });
        }
        let boxed = Box::new(Zeroizing::new(bytes));
        let (ptr, len) = (boxed.as_ptr(), boxed.len());
        Self { ptr, len, owner: Box::into_raw(boxed).cast(), release: Some(release) }
    }
}

impl Deref for OwnedBytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: whoever filled this in promised `len` readable bytes at `ptr` until it is released.
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
}
