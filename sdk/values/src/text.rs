//! Escapes untrusted text for terminals and logs.

use std::borrow::Cow;

/// Whether a character may begin a line, move the cursor, or change the text's direction on a terminal or in a log.
pub fn is_control(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The text on one line, with control characters and line ends escaped (`\n`, `\u{1b}`).
///
/// ```
/// use outrigger_values::text::printable;
///
/// assert_eq!(printable("two\nlines"), r"two\nlines");
/// assert_eq!(printable("\u{1b}[31mred"), r"\u{1b}[31mred");
/// assert_eq!(printable("plain, and grün"), "plain, and grün");
/// ```
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(is_control) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match character {
            character if !is_control(character) => shown.push(character),
            // `escape_default` yields only ASCII.
            character => shown.extend(character.escape_default()),
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_has_nothing_left_that_a_terminal_obeys() {
        let text = "a\r\n\tb\u{7f}\u{9b}31m\u{2028}\u{202e}c\0";
        let shown = printable(text);
        assert_eq!(shown, r"a\r\n\tb\u{7f}\u{9b}31m\u{2028}\u{202e}c\u{0}");
        assert!(!shown.contains(is_control));
    }
}
