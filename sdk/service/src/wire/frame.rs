//! Values prefixed with their length, and messages that stay encoded and are read in place.

use std::fmt;
use std::marker::PhantomData;

use super::{Reader, Shape, Viewed, Wire, WireError, Writer, from_bytes, to_bytes};
use outrigger_abi::OwnedBytes;

/// A value prefixed with the length of its encoding (`u32`). A reader can skip the value, and fields that a newer writer
/// appended to it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Framed<T>(pub T);

impl<T: Wire> Wire for Framed<T> {
    const SECRET: bool = T::SECRET;
    const SHAPE: &'static Shape = &Shape::Framed(T::SHAPE);
    fn put(&self, out: &mut Writer) {
        out.put_framed(|out| self.0.put(out));
    }
    fn get(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        from_bytes(reader.byte_string()?).map(Self)
    }
}

impl<T: Viewed + 'static> Viewed for Framed<T> {
    type View<'a> = FramedView<'a, T>;
    fn view<'a>(reader: &mut Reader<'a>) -> Result<FramedView<'a, T>, WireError> {
        Ok(FramedView { bytes: reader.byte_string()?, value: PhantomData })
    }
}

/// A view of a framed value. Unlike other views, it decodes nothing until [`FramedView::open`] or [`FramedView::read`].
pub struct FramedView<'a, T> {
    bytes: &'a [u8],
    value: PhantomData<fn() -> T>,
}

impl<'a, T: Viewed> FramedView<'a, T> {
    /// A view of the value.
    ///
    /// # Errors
    /// The frame does not contain a complete value.
    pub fn open(&self) -> Result<T::View<'a>, WireError> {
        T::view(&mut Reader::new(self.bytes))
    }

    /// Decodes the value into an owned copy.
    ///
    /// # Errors
    /// As [`FramedView::open`].
    pub fn read(&self) -> Result<T, WireError> {
        from_bytes(self.bytes)
    }

    /// The encoded value, without its length.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

impl<T> Clone for FramedView<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for FramedView<'_, T> {}

impl<T: Viewed> fmt::Debug for FramedView<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.open().fmt(f)
    }
}

/// A message that stays encoded and is read in place.
///
/// Its encoding is that of a `T`. In the answer of a service's function, the sender encodes the message once, and the receiver reads it in
/// place.
pub struct Encoded<T> {
    bytes: OwnedBytes,
    message: PhantomData<fn() -> T>,
}

impl<T: Viewed> Encoded<T> {
    /// Encodes a message.
    pub fn new(message: &T) -> Self {
        Self::written(to_bytes(message))
    }

    /// Wraps a message that the caller has encoded.
    pub(crate) fn written(bytes: Vec<u8>) -> Self {
        Self { bytes: bytes.into(), message: PhantomData }
    }

    /// A view of the message.
    ///
    /// # Errors
    /// The bytes do not encode a `T`.
    pub fn view(&self) -> Result<T::View<'_>, WireError> {
        T::view(&mut Reader::new(&self.bytes))
    }

    /// Decodes the message into an owned copy.
    ///
    /// # Errors
    /// As [`Encoded::view`].
    pub fn read(&self) -> Result<T, WireError> {
        from_bytes(&self.bytes)
    }

    /// The encoded message.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl<T: Viewed> fmt::Debug for Encoded<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.view().fmt(f)
    }
}

impl<T: Viewed> Wire for Encoded<T> {
    const SECRET: bool = T::SECRET;
    const SHAPE: &'static Shape = T::SHAPE;
    fn put(&self, out: &mut Writer) {
        out.extend_from_slice(&self.bytes);
    }
    fn get(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let begin = reader.at;
        T::view(reader)?;
        Ok(Self::written(reader.bytes.get(begin..reader.at).unwrap_or_default().to_vec()))
    }
    fn into_message(self) -> OwnedBytes {
        self.bytes
    }
    fn from_message(bytes: OwnedBytes) -> Result<Self, WireError> {
        Ok(Self { bytes, message: PhantomData })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_hides_what_a_newer_writer_appended() {
        let bytes = to_bytes(&(Framed((1_u16, 2_u16)), 3_u8));
        assert_eq!(bytes, [4, 0, 0, 0, 1, 0, 2, 0, 3]);
        let (older, after) = from_bytes::<(Framed<u16>, u8)>(&bytes).unwrap();
        assert_eq!((older, after), (Framed(1), 3));
        let (view, after) = <(Framed<u16>, u8)>::view(&mut Reader::new(&bytes)).unwrap();
        assert_eq!((view.open(), view.read(), view.bytes().len(), after), (Ok(1), Ok(1), 4, 3));
    }

    #[test]
    fn a_frame_that_is_too_short_is_damage_when_it_is_opened() {
        let bytes = to_bytes(&Framed(7_u8));
        let view = <Framed<u32>>::view(&mut Reader::new(&bytes)).unwrap();
        assert!(view.open().is_err() && view.read().is_err());
        assert!(<Framed<u8>>::view(&mut Reader::new(&bytes[..4])).is_err());
    }

    #[test]
    fn an_encoded_message_is_the_message() {
        let message = vec![String::from("a"), String::from("b")];
        let encoded = Encoded::new(&message);
        assert_eq!(encoded.bytes(), to_bytes(&message));
        assert_eq!(encoded.read().unwrap(), message);
        let pair = (Encoded::new(&message), 9_u8);
        let (again, after) = from_bytes::<(Encoded<Vec<String>>, u8)>(&to_bytes(&pair)).unwrap();
        assert_eq!((again.read().unwrap(), after), (message.clone(), 9));
        let sent = Encoded::<Vec<String>>::from_message(encoded.into_message()).unwrap();
        assert_eq!(sent.view().unwrap().iter().collect::<Vec<_>>(), ["a", "b"]);
        let damaged = Encoded::<Vec<String>>::from_message(OwnedBytes::from(vec![1, 0])).unwrap();
        assert!(damaged.view().is_err());
    }
}
