//! A scan of a body before it is parsed.
//!
//! It bounds the nesting, so that no parser recurses deeply, and refuses escapes of lone surrogates: bitcoind's parser
//! refuses them, and serde_json accepts them in values that it skips. serde_json finds all other errors.

/// How many bytes of a string are tested at once.
const CHUNK: usize = 64;

/// `None` if the text is refused. `max_nesting` bounds arrays and objects together.
pub(super) fn scan(text: &[u8], max_nesting: usize) -> Option<()> {
    let mut depth = 0_usize;
    let mut rest = text;
    while let Some((byte, tail)) = rest.split_first() {
        rest = tail;
        match byte {
            b'[' | b'{' => {
                depth += 1;
                if depth > max_nesting {
                    return None;
                }
            }
            // serde_json refuses brackets that do not match. This only keeps the depth from underflowing.
            b']' | b'}' => depth = depth.saturating_sub(1),
            b'"' => rest = skip_string(rest)?,
            _ => {}
        }
    }
    Some(())
}

/// Skips a string. `rest` starts after its opening quote. `None` if it is refused.
fn skip_string(mut rest: &[u8]) -> Option<&[u8]> {
    while let Some(end) = next_quote_or_escape(rest) {
        let tail = rest.get(end..).unwrap_or_default();
        match tail {
            [b'"', after @ ..] => return Some(after),
            [b'\\', b'u', escape @ ..] => rest = skip_unicode_escape(escape)?,
            // The escaped character cannot end the string.
            [_, _, after @ ..] => rest = after,
            _ => return Some(&[]),
        }
    }
    Some(&[])
}

/// The position of the first quote or backslash. Large bodies are mostly long strings (a block in hex), so whole chunks
/// are tested without a branch per byte.
fn next_quote_or_escape(text: &[u8]) -> Option<usize> {
    let is_special = |byte: &u8| u8::from(*byte == b'"') | u8::from(*byte == b'\\');
    let (chunks, _) = text.as_chunks::<CHUNK>();
    let clean =
        chunks.iter().take_while(|chunk| chunk.iter().fold(0, |found, byte| found | is_special(byte)) == 0).count();
    let start = clean * CHUNK;
    let within = text.get(start..)?.iter().position(|byte| is_special(byte) != 0)?;
    Some(start + within)
}

/// Skips an escape. `escape` starts after its `\u`. `None` for an unpaired `\uD800` to `\uDFFF`.
fn skip_unicode_escape(escape: &[u8]) -> Option<&[u8]> {
    match code_unit(escape) {
        Some((0xD800..=0xDBFF, [b'\\', b'u', low @ ..])) => match code_unit(low) {
            Some((0xDC00..=0xDFFF, after)) => Some(after),
            _ => None,
        },
        Some((0xD800..=0xDFFF, _)) => None,
        Some((_, after)) => Some(after),
        // serde_json refuses it: not four hex digits.
        None => Some(escape),
    }
}

/// The UTF-16 code unit in the first four hex digits of `text`.
fn code_unit(text: &[u8]) -> Option<(u16, &[u8])> {
    let (digits, after) = text.split_first_chunk::<4>()?;
    let mut unit = 0_u16;
    for digit in digits {
        let value = char::from(*digit).to_digit(16)?;
        unit = (unit << 4) | u16::try_from(value).ok()?;
    }
    Some((unit, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nesting_is_counted_outside_strings() {
        let cases: [(&str, usize, Option<()>); 8] = [
            ("1", 0, Some(())),
            ("[]", 0, None),
            ("[{}]", 2, Some(())),
            ("[{}]", 1, None),
            ("[[],[],[]]", 2, Some(())),
            (r#"["[[[["]"#, 1, Some(())),
            (r#"["\"[[",[]]"#, 2, Some(())),
            (r#"["\\",[[]]]"#, 2, None),
        ];
        for (text, max, expected) in cases {
            assert_eq!(scan(text.as_bytes(), max), expected, "{text}");
        }
    }

    #[test]
    fn surrogates_come_in_pairs() {
        let cases: [(&str, Option<()>); 9] = [
            (r#""\ud83d\ude00""#, Some(())),
            (r#""\u0041\u0000\ue000""#, Some(())),
            (r#""\ud800""#, None),
            (r#""\udc00""#, None),
            (r#""\ud800\ud800""#, None),
            (r#""\ud800x""#, None),
            (r#""\\ud800""#, Some(())),
            (r#""\ud8"#, Some(())),
            (r#""\"#, Some(())),
        ];
        for (text, expected) in cases {
            assert_eq!(scan(text.as_bytes(), 1), expected, "{text}");
        }
    }

    #[test]
    fn scan_finds_the_end_of_strings() {
        for length in 0..3 * CHUNK {
            for tail in ["", "\\\"", "\\\\"] {
                let text = format!("\"{}{tail}\"[[", "x".repeat(length));
                assert_eq!(scan(text.as_bytes(), 1), None, "{text}");
                assert_eq!(scan(text.as_bytes(), 2), Some(()), "{text}");
            }
        }
    }

    #[test]
    fn scan_survives_nonsense() {
        for text in ["]]]]", "}{", "\"", "\"\\u", "\"\\u12", "[\"\\"] {
            assert_eq!(scan(text.as_bytes(), 4), Some(()), "{text}");
        }
    }
}
