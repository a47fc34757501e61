//! Views of messages, which borrow from the message's bytes instead of copying them.
//!
//! Making a view checks it as a whole, so that reading it later meets no damage.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use bitcoin::{Amount, BlockHash, OutPoint, Script, ScriptBuf, Txid, Weight, Wtxid};

use super::{Blob, Reader, Wire, WireError};

/// A value that can be viewed without a copy.
pub trait Viewed: Wire {
    /// The value, borrowed from the message.
    type View<'a>: Copy + fmt::Debug;

    /// Views the next value.
    ///
    /// # Errors
    /// As [`Wire::get`].
    fn view<'a>(reader: &mut Reader<'a>) -> Result<Self::View<'a>, WireError>;
}

/// Implements [`Viewed`] for small types, which are copied: they are their own views.
macro_rules! view_by_value {
    ($($type:ty),* $(,)?) => {$(
        impl $crate::wire::Viewed for $type {
            type View<'a> = Self;
            fn view<'a>(reader: &mut $crate::wire::Reader<'a>) -> Result<Self, $crate::wire::WireError> {
                $crate::wire::Wire::get(reader)
            }
        }
    )*};
}
pub(crate) use view_by_value;

view_by_value!(u8, u16, u32, u64, i32, i64, bool, BlockHash, Txid, Wtxid, OutPoint, Amount, Weight);

impl Viewed for Blob {
    type View<'a> = &'a [u8];
    fn view<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], WireError> {
        reader.byte_string()
    }
}

impl<T: Viewed> Viewed for Arc<T> {
    type View<'a> = T::View<'a>;
    fn view<'a>(reader: &mut Reader<'a>) -> Result<Self::View<'a>, WireError> {
        T::view(reader)
    }
}

impl Viewed for ScriptBuf {
    type View<'a> = &'a Script;
    fn view<'a>(reader: &mut Reader<'a>) -> Result<&'a Script, WireError> {
        reader.byte_string().map(Script::from_bytes)
    }
}

impl Viewed for String {
    type View<'a> = &'a str;
    fn view<'a>(reader: &mut Reader<'a>) -> Result<&'a str, WireError> {
        let error = reader.error();
        std::str::from_utf8(reader.byte_string()?).map_err(|_| error)
    }
}

impl<T: Viewed> Viewed for Option<T> {
    type View<'a> = Option<T::View<'a>>;
    fn view<'a>(reader: &mut Reader<'a>) -> Result<Self::View<'a>, WireError> {
        if bool::get(reader)? { T::view(reader).map(Some) } else { Ok(None) }
    }
}

impl<A: Viewed, B: Viewed> Viewed for (A, B) {
    type View<'a> = (A::View<'a>, B::View<'a>);
    fn view<'a>(reader: &mut Reader<'a>) -> Result<Self::View<'a>, WireError> {
        Ok((A::view(reader)?, B::view(reader)?))
    }
}

impl<T: Viewed> Viewed for Vec<T> {
    type View<'a> = ListView<'a, T>;
    fn view<'a>(reader: &mut Reader<'a>) -> Result<Self::View<'a>, WireError> {
        let error = reader.error();
        let items = reader.count()?;
        let count = u32::try_from(items).map_err(|_| error)?;
        let begin = reader.at;
        for _ in 0..items {
            T::view(reader)?;
        }
        let bytes = reader.bytes.get(begin..reader.at).unwrap_or_default();
        Ok(ListView { count, bytes, item: PhantomData })
    }
}

/// A list in a message.
pub struct ListView<'a, T> {
    count: u32,
    /// The items, which have been checked.
    bytes: &'a [u8],
    item: PhantomData<fn() -> T>,
}

impl<'a, T: Viewed> ListView<'a, T> {
    /// A list without items.
    pub const EMPTY: Self = Self { count: 0, bytes: &[], item: PhantomData };

    /// How many items there are.
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The encoded items.
    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The items in their order.
    pub fn iter(&self) -> impl Iterator<Item = T::View<'a>> + use<'a, T> {
        let mut reader = Reader::new(self.bytes);
        // The list was checked when its view was made.
        (0..self.count).map_while(move |_| T::view(&mut reader).ok())
    }
}

impl<T> Clone for ListView<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for ListView<'_, T> {}

impl<T: Viewed> Default for ListView<'_, T> {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl<T: Viewed> fmt::Debug for ListView<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Declares a struct as [`wire_struct!`](crate::wire_struct) does, and its view: the same fields, borrowed from a message.
macro_rules! wire_view {
    (@get $reader:ident $type:ty) => { <$type as $crate::wire::Viewed>::view($reader)? };
    (@get $reader:ident $type:ty, $since:literal) => {
        if $reader.is_empty() { Default::default() } else { <$type as $crate::wire::Viewed>::view($reader)? }
    };
    (@view $view:ident $(#[doc = $doc:literal])* $(#[derive($($derive:ident),* $(,)?)])? pub struct $name:ident {
        $($(#[doc = $field_doc:literal])* $(#[since($since:literal)])? pub $field:ident: $type:ty,)*
    }) => {
        #[doc = concat!("A [`", stringify!($name), "`] in a message.")]
        #[derive(Clone, Copy, Debug)]
        pub struct $view<'a> {
            $($(#[doc = $field_doc])* pub $field: <$type as $crate::wire::Viewed>::View<'a>,)*
        }
        impl $crate::wire::Viewed for $name {
            type View<'a> = $view<'a>;
            fn view<'a>(reader: &mut $crate::wire::Reader<'a>) -> Result<$view<'a>, $crate::wire::WireError> {
                Ok($view { $($field: $crate::wire::wire_view!(@get reader $type $(, $since)?),)* })
            }
        }
    };
    ($view:ident of $($declaration:tt)*) => {
        $crate::wire_struct! { $($declaration)* }
        $crate::wire::wire_view! { @view $view $($declaration)* }
    };
}
pub(crate) use wire_view;

#[cfg(test)]
mod tests {
    use super::super::to_bytes;
    use super::*;

    fn view<T: Viewed>(bytes: &[u8]) -> Result<T::View<'_>, WireError> {
        T::view(&mut Reader::new(bytes))
    }

    #[test]
    fn a_view_shows_what_was_written() {
        let value = (vec![String::from("a"), String::new()], Some(Blob(vec![7, 8])));
        let bytes = to_bytes(&value);
        let (texts, blob) = view::<(Vec<String>, Option<Blob>)>(&bytes).unwrap();
        assert_eq!(texts.iter().collect::<Vec<_>>(), ["a", ""]);
        assert_eq!((texts.len(), texts.is_empty(), blob), (2, false, Some(&[7, 8][..])));
        assert_eq!(format!("{texts:?}"), r#"["a", ""]"#);
    }

    #[test]
    fn view_of_a_damaged_message_is_refused_when_it_is_made() {
        let bytes = to_bytes(&(vec![String::from("a"), String::from("bc")], Some(5_u64)));
        for len in 0..bytes.len() {
            assert!(view::<(Vec<String>, Option<u64>)>(&bytes[..len]).is_err(), "length {len}");
        }
        assert!(view::<Vec<String>>(&[1, 0, 0, 0, 1, 0, 0, 0, 0xff]).is_err(), "not UTF-8");
        assert!(view::<Vec<bool>>(&[1, 0, 0, 0, 2]).is_err(), "no bool");
    }

    #[test]
    fn a_count_that_lies_is_damage() {
        for count in [3, 1 << 30, u32::MAX] {
            let bytes = [count.to_le_bytes(), [0; 4], [0; 4]].concat();
            assert!(view::<Vec<u32>>(&bytes).is_err(), "{count}");
            assert!(view::<Vec<Option<u64>>>(&bytes).is_err() || count == 3, "{count}");
        }
    }

    crate::wire::wire_view! { GrownView of
        /// A message with a field that an older writer does not have.
        #[derive(Debug)]
        pub struct Grown {
            /// The first.
            pub first: u8,
            /// The second.
            #[since(1)]
            pub second: Vec<u16>,
        }
    }

    #[test]
    fn view_gives_defaults_for_what_an_older_writer_left_out() {
        assert!(view::<Grown>(&[7]).unwrap().second.is_empty());
        let bytes = to_bytes(&Grown { first: 7, second: vec![9] });
        let grown = view::<Grown>(&bytes).unwrap();
        assert_eq!((grown.first, grown.second.iter().collect::<Vec<_>>()), (7, vec![9]));
    }
}
