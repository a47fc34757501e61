//! Control characters in a manifest.

use outrigger_values::text::is_control;
use serde_json::Value;

/// The members whose text may have several lines.
const OF_SEVERAL_LINES: [&str; 2] = ["help", "result"];

/// Where a text or a member's name has a control character, if any.
pub(super) fn control_character(value: &Value, place: &str, lines: bool) -> Option<String> {
    match value {
        Value::String(text) => {
            let bad = |character: char| is_control(character) && !(lines && character == '\n');
            text.contains(bad).then(|| place.to_owned())
        }
        Value::Array(items) => items
            .iter()
            .enumerate()
            .find_map(|(position, item)| control_character(item, &format!("{place}[{position}]"), lines)),
        Value::Object(members) => members.iter().find_map(|(name, member)| {
            if name.contains(is_control) {
                return Some(format!("a member's name in {}", if place.is_empty() { "itself" } else { place }));
            }
            let place = if place.is_empty() { name.clone() } else { format!("{place}.{name}") };
            control_character(member, &place, OF_SEVERAL_LINES.contains(&name.as_str()))
        }),
        _ => None,
    }
}
