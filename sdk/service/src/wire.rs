//! The byte encoding of messages between host and plugin.
//!
//! Integers are little-endian and of fixed width, a `bool` is one byte (0 or 1), byte strings, text and lists are a
//! `u32` count followed by their items, an option is one byte (0 or 1) followed by the value, a struct is its fields
//! in order. Hashes are 32 bytes in internal byte order, transactions and blocks are their consensus serialisation.
//!
//! A newer side may append fields at the end of a message: a reader ignores bytes that it does not know
//! ([`from_bytes`]), and a field added later is read with [`Reader::rest_or`].

mod bitcoin_types;
mod declare;
mod frame;
mod shape;
mod values;
mod view;

use std::sync::Arc;

use zeroize::Zeroize;

use outrigger_abi::OwnedBytes;

pub use declare::{wire_enum, wire_struct};
pub use frame::{Encoded, Framed, FramedView};
pub use outrigger_values::{Blob, Secret};
pub use shape::{Docs, EnumShape, FieldShape, FunctionShape, ServiceShape, Shape, StructShape, VariantShape};
pub use view::{ListView, Viewed};
pub(crate) use view::{view_by_value, wire_view};

/// Why a message could not be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("message is damaged at byte {offset} of {len}")]
pub struct WireError {
    /// Where reading stopped.
    pub offset: usize,
    /// The length of the whole message.
    pub len: usize,
}

/// Reads a message from its beginning to its end.
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// A reader of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// The next `n` bytes.
    pub fn take(&mut self, n: usize) -> Result<&'a [u8], WireError> {
        let end = self.at.checked_add(n).filter(|end| *end <= self.bytes.len()).ok_or(self.error())?;
        let taken = self.bytes.get(self.at..end).ok_or(self.error())?;
        self.at = end;
        Ok(taken)
    }

    /// The next `N` bytes as an array.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let error = self.error();
        self.take(N)?.try_into().map_err(|_| error)
    }

    /// A byte string: its `u32` length, then its bytes.
    pub fn byte_string(&mut self) -> Result<&'a [u8], WireError> {
        let len = u32::get(self)?;
        self.take(len as usize)
    }

    /// How many bytes have not been read.
    pub fn left(&self) -> usize {
        self.bytes.len().saturating_sub(self.at)
    }

    /// The number of items of a list. Each item takes at least one byte, so it cannot exceed the number of bytes left.
    fn count(&mut self) -> Result<usize, WireError> {
        let error = self.error();
        let count = u32::get(self)? as usize;
        if count > self.left() { Err(error) } else { Ok(count) }
    }

    /// The number of items of a list, and an empty list for them. The number may be false, so the list reserves no more memory than the
    /// message has bytes left. If items are larger in memory, the list grows.
    pub(crate) fn begin_list<T>(&mut self) -> Result<(usize, Vec<T>), WireError> {
        let count = self.count()?;
        Ok((count, Vec::with_capacity(count.min(self.left() / size_of::<T>().max(1)))))
    }

    /// Whether everything has been read.
    pub fn is_empty(&self) -> bool {
        self.at == self.bytes.len()
    }

    /// A field that older writers omit at the end of a message; `default` if it is missing.
    pub fn rest_or<T: Wire>(&mut self, default: T) -> Result<T, WireError> {
        if self.is_empty() { Ok(default) } else { T::get(self) }
    }

    /// The error for the value at the current position.
    pub fn error(&self) -> WireError {
        WireError { offset: self.at, len: self.bytes.len() }
    }
}

/// Builds a message.
///
/// A writer of a secret wipes its old buffer when it moves to a larger one.
#[derive(Default)]
pub struct Writer {
    bytes: Vec<u8>,
    secret: bool,
}

impl Writer {
    /// An empty message. `secret`: whether to wipe it.
    pub(crate) fn new(secret: bool) -> Self {
        Self { bytes: Vec::new(), secret }
    }

    /// The message.
    pub(crate) fn into_message(self) -> OwnedBytes {
        if self.secret { OwnedBytes::secret(self.bytes) } else { self.bytes.into() }
    }

    /// Appends bytes.
    pub fn extend_from_slice(&mut self, bytes: &[u8]) {
        let needed = self.bytes.len() + bytes.len();
        if self.secret && needed > self.bytes.capacity() {
            let mut larger = Vec::with_capacity(needed * 2);
            larger.extend_from_slice(&self.bytes);
            std::mem::replace(&mut self.bytes, larger).zeroize();
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends one byte.
    pub fn push(&mut self, byte: u8) {
        self.extend_from_slice(&[byte]);
    }

    /// Appends a byte string: its length, then its bytes.
    pub(crate) fn put_byte_string(&mut self, bytes: &[u8]) {
        self.extend_from_slice(&count(bytes.len()));
        self.extend_from_slice(bytes);
    }

    /// Appends the output of `write`, with its length before it.
    pub(crate) fn put_framed<R>(&mut self, write: impl FnOnce(&mut Self) -> R) -> R {
        let place = self.bytes.len();
        self.extend_from_slice(&count(0));
        let written = write(self);
        let len = self.bytes.len().saturating_sub(place + 4);
        if let Some(bytes) = self.bytes.get_mut(place..place + 4) {
            bytes.copy_from_slice(&count(len));
        }
        written
    }
}

/// A value with an encoding.
pub trait Wire: Sized {
    /// Whether a message with such a value must be wiped from memory after it is read.
    const SECRET: bool = false;

    /// The description of the encoding.
    const SHAPE: &'static Shape;

    /// Appends the value to `out`.
    fn put(&self, out: &mut Writer);

    /// Reads a value.
    ///
    /// # Errors
    /// If the message ends too early or has an invalid value.
    fn get(reader: &mut Reader<'_>) -> Result<Self, WireError>;

    /// The value as a whole message. An encoded value gives its bytes away without a copy.
    fn into_message(self) -> OwnedBytes {
        written(&self).into_message()
    }

    /// Reads a value from a whole message. An encoded value keeps the bytes without a copy.
    ///
    /// # Errors
    /// As [`Wire::get`].
    fn from_message(bytes: OwnedBytes) -> Result<Self, WireError> {
        from_bytes(&bytes)
    }
}

/// The encoding of `value`.
pub fn to_bytes<T: Wire>(value: &T) -> Vec<u8> {
    written(value).bytes
}

fn written<T: Wire>(value: &T) -> Writer {
    let mut out = Writer::new(T::SECRET);
    value.put(&mut out);
    out
}

/// Reads a `T` from the beginning of `bytes`. It ignores bytes after it, which a newer writer appended.
pub fn from_bytes<T: Wire>(bytes: &[u8]) -> Result<T, WireError> {
    T::get(&mut Reader::new(bytes))
}

macro_rules! wire_int {
    ($($int:ty = $shape:ident),*) => {$(
        impl Wire for $int {
            const SHAPE: &'static Shape = &Shape::$shape;
            fn put(&self, out: &mut Writer) {
                out.extend_from_slice(&self.to_le_bytes());
            }
            fn get(reader: &mut Reader<'_>) -> Result<Self, WireError> {
                Ok(Self::from_le_bytes(reader.array()?))
            }
        }
    )*};
}
wire_int!(u8 = U8, u16 = U16, u32 = U32, u64 = U64, i32 = I32, i64 = I64);

impl Wire for bool {
    const SHAPE: &'static Shape = &Shape::Bool;
    fn put(&self, out: &mut Writer) {
        out.push(u8::from(*self));
    }
    fn get(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let error = reader.error();
        match u8::get(reader)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(error),
        }
    }
}

impl<const N: usize> Wire for [u8; N] {
    const SHAPE: &'static Shape = &Shape::Array(N);
    fn put(&self, out: &mut Writer) {
        out.extend_from_slice(self);
    }
    fn get(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        reader.array()
    }
}

impl Wire for () {
    const SHAPE: &'static Shape = &Shape::Tuple(&[]);
    fn put(&self, _: &mut Writer) {}
    fn get(_: &mut Reader<'_>) -> Result<Self, WireError> {
        Ok(())
    }
}

/// The encoding of a length or a number of items. No message comes near 4 GiB; a reader would refuse it, not misread it.
pub(crate) fn count(len: usize) -> [u8; 4] {
    u32::try_from(len).unwrap_or(u32::MAX).to_le_bytes()
}

impl Wire for Blob {
    const SHAPE: &'static Shape = &Shape::ByteString;
    fn put(&self, out: &mut Writer) {
        out.put_byte_string(&self.0);
    }
    fn get(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        Ok(Self(reader.byte_string()?.to_vec()))
    }
}

/// Clones share the value.
impl<T: Wire> Wire for Arc<T> {
    const SECRET: bool = T::SECRET;
    const SHAPE: &'static Shape = T::SHAPE;
    fn put(&self, out: &mut Writer) {
        T::put(self, out);
    }
    fn get(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        T::get(reader).map(Self::new)
    }
}

impl Wire for Secret {
    const SECRET: bool = true;
    const SHAPE: &'static Shape = &Shape::Secret;
    fn put(&self, out: &mut Writer) {
        out.put_byte_string(self.expose().as_bytes());
    }
    fn get(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        String::get(reader).map(Self::new)
    }
}

impl Wire for String {
    const SHAPE: &'static Shape = &Shape::Text;
    fn put(&self, out: &mut Writer) {
        out.put_byte_string(self.as_bytes());
    }
    fn get(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let error = reader.error();
        String::from_utf8(reader.byte_string()?.to_vec()).map_err(|_| error)
    }
}

impl<T: Wire> Wire for Vec<T> {
    const SECRET: bool = T::SECRET;
    const SHAPE: &'static Shape = &Shape::List(T::SHAPE);
    fn put(&self, out: &mut Writer) {
        out.extend_from_slice(&count(self.len()));
        for item in self {
            item.put(out);
        }
    }
    fn get(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let (count, mut items) = reader.begin_list::<T>()?;
        for _ in 0..count {
            items.push(T::get(reader)?);
        }
        Ok(items)
    }
}

impl<T: Wire> Wire for Option<T> {
    const SECRET: bool = T::SECRET;
    const SHAPE: &'static Shape = &Shape::Option(T::SHAPE);
    fn put(&self, out: &mut Writer) {
        self.is_some().put(out);
        if let Some(value) = self {
            value.put(out);
        }
    }
    fn get(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        if bool::get(reader)? { Ok(Some(T::get(reader)?)) } else { Ok(None) }
    }
}

macro_rules! wire_tuple {
    ($($name:ident $index:tt),+) => {
        impl<$($name: Wire),+> Wire for ($($name,)+) {
            const SECRET: bool = $($name::SECRET ||)+ false;
            const SHAPE: &'static Shape = &Shape::Tuple(&[$($name::SHAPE),+]);
            fn put(&self, out: &mut Writer) {
                $(self.$index.put(out);)+
            }
            fn get(reader: &mut Reader<'_>) -> Result<Self, WireError> {
                Ok(($($name::get(reader)?,)+))
            }
        }
    };
}
wire_tuple!(A 0);
wire_tuple!(A 0, B 1);
wire_tuple!(A 0, B 1, C 2);
wire_tuple!(A 0, B 1, C 2, D 3);
wire_tuple!(A 0, B 1, C 2, D 3, E 4);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wire_values_come_back_as_they_went() {
        let value = (7_u8, Some(String::from("label")), vec![-1_i64, i64::MAX], Blob(vec![1, 2, 3]));
        assert_eq!(from_bytes::<(u8, Option<String>, Vec<i64>, Blob)>(&to_bytes(&value)).unwrap(), value);
    }

    #[test]
    fn every_truncation_is_an_error_and_none_a_panic() {
        let bytes = to_bytes(&(vec![String::from("a"), String::from("bc")], Some(5_u64)));
        for len in 0..bytes.len() {
            assert!(from_bytes::<(Vec<String>, Option<u64>)>(&bytes[..len]).is_err(), "length {len}");
        }
    }

    #[test]
    fn wire_count_that_lies_reserves_nothing() {
        assert!(from_bytes::<Vec<u8>>(&u32::MAX.to_le_bytes()).is_err());
        let lies = [&u32::MAX.to_le_bytes()[..], &[0; 64]].concat();
        assert!(from_bytes::<Vec<u8>>(&lies).is_err() && from_bytes::<Vec<()>>(&lies).is_err());
    }

    #[test]
    fn a_list_reserves_no_more_memory_than_the_message_has_bytes() {
        // An item that is larger in memory than in the message.
        type Item = [u64; 512];
        for items in [1_u32, 511, 4096, 100_000] {
            let message = [&items.to_le_bytes()[..], &vec![0; items as usize]].concat();
            let (count, list) = Reader::new(&message).begin_list::<Item>().unwrap();
            assert_eq!((count, list.capacity()), (items as usize, items as usize / size_of::<Item>()));
        }
        let nothing = vec![None::<String>; 1000];
        assert_eq!(from_bytes::<Vec<Option<String>>>(&to_bytes(&nothing)).unwrap(), nothing);
    }

    #[test]
    fn wire_ignores_what_a_newer_writer_appends() {
        assert_eq!(from_bytes::<u16>(&[1, 0, 9, 9]).unwrap(), 1);
    }
}
