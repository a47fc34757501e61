//! The nesting depth of JSON text.

use serde_json::value::RawValue;

/// The nesting limit for JSON text from plugins, equal to the limit of bitcoin-cli's parser (UniValue).
pub const MAX_NESTING: usize = 512;

/// The deepest nesting of arrays and objects in JSON text.
pub fn depth(json: &[u8]) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let (mut in_text, mut escaped) = (false, false);
    for byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b'[' | b'{' if !in_text => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Whether text is a JSON array or object of at most `most` bytes, within [`MAX_NESTING`]. The host inserts the text into a
/// request, and invalid JSON could add members to that request.
pub fn are_parameters(text: &[u8], most: usize) -> bool {
    matches!(text.first(), Some(b'[' | b'{'))
        && text.len() <= most
        && depth(text) <= MAX_NESTING
        && serde_json::from_slice::<&RawValue>(text).is_ok()
}
