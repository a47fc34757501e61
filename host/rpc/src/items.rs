//! Reads the items of an array or object without parsing them.

use std::fmt;

use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// The items of an array, without names, or the members of an object in order, including duplicates.
#[derive(Default)]
pub struct Items<'a> {
    /// Up to a limit, so that a long list costs little.
    pub kept: Vec<(String, &'a RawValue)>,
    /// How many there are.
    pub count: usize,
}

/// Reads `text`, and keeps at most `most` items.
pub fn items(text: &str, most: usize) -> serde_json::Result<Items<'_>> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let items = deserializer.deserialize_any(Keep(most))?;
    deserializer.end()?;
    Ok(items)
}

struct Keep(usize);

impl<'de> Visitor<'de> for Keep {
    type Value = Items<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array or an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut items = Items::default();
        while items.count < self.0
            && let Some(member) = map.next_entry()?
        {
            items.kept.push(member);
            items.count += 1;
        }
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {
            items.count += 1;
        }
        Ok(items)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut items = Items::default();
        while items.count < self.0
            && let Some(item) = seq.next_element()?
        {
            items.kept.push((String::new(), item));
            items.count += 1;
        }
        while seq.next_element::<IgnoredAny>()?.is_some() {
            items.count += 1;
        }
        Ok(items)
    }
}
