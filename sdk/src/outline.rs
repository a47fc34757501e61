//! Checks a manifest's outline at compile time: [`crate::export_plugin!`] refuses a manifest that no host would accept.
//!
//! The outline is one JSON object with the required members, and with all brackets and strings closed.
//! [`crate::manifest::Manifest::parse`] checks the rest, for example when a plugin's tests start it on a test host.

/// The deepest nesting of arrays and objects in a manifest.
const MAX_DEPTH: usize = 64;

/// The members that every manifest has.
const MEMBERS: [&[u8]; 4] = [b"id", b"version", b"summary", b"methods"];

/// Checks the outline of a manifest.
///
/// # Panics
/// When the text is not a manifest; in a constant this is a compile error that names what is missing.
pub const fn check(manifest: &str) {
    let text = manifest.as_bytes();
    let mut at = skip_space(text, 0);
    assert!(at < text.len(), "the manifest is empty: it must be a JSON object that lists the plugin's methods");
    assert!(text[at] == b'{', "the manifest must be a JSON object: it must begin with a curly bracket");
    let mut found = [false; MEMBERS.len()];
    // The closing brackets of the open objects and arrays.
    let mut open = [0; MAX_DEPTH];
    let mut depth = 0;
    // Whether the next string is a member's name.
    let mut name = false;
    while at < text.len() {
        match text[at] {
            b'"' => {
                let end = end_of_string(text, at);
                if depth == 1 && name {
                    mark_member(text, at + 1, end, &mut found);
                }
                name = false;
                at = end;
            }
            b'{' | b'[' => {
                assert!(depth < MAX_DEPTH, "the manifest nests too deeply");
                open[depth] = text[at] + 2;
                depth += 1;
                name = text[at] == b'{';
            }
            b'}' | b']' => {
                assert!(
                    depth > 0 && open[depth - 1] == text[at],
                    "the manifest is not JSON: a closing bracket has no match"
                );
                depth -= 1;
                if depth == 0 {
                    at += 1;
                    break;
                }
            }
            b',' => name = open[depth - 1] == b'}',
            _ => {}
        }
        at += 1;
    }
    assert!(depth == 0, "the manifest is not JSON: it ends before its last bracket is closed");
    assert!(skip_space(text, at) == text.len(), "the manifest is not JSON: there is text after the object");
    assert!(found[0], "the manifest has no \"id\": the plugin's name, in lower-case letters, digits and '-'");
    assert!(found[1], "the manifest has no \"version\": the plugin's own version");
    assert!(found[2], "the manifest has no \"summary\": what the plugin is for, in one line");
    assert!(found[3], "the manifest has no \"methods\": the list of the methods that the plugin answers");
}

const fn skip_space(text: &[u8], mut at: usize) -> usize {
    while at < text.len() && text[at].is_ascii_whitespace() {
        at += 1;
    }
    at
}

/// The position of the quote that ends the string whose opening quote is at `begin`.
const fn end_of_string(text: &[u8], begin: usize) -> usize {
    let mut at = begin + 1;
    while at < text.len() && text[at] != b'"' {
        at += if text[at] == b'\\' { 2 } else { 1 };
    }
    assert!(at < text.len(), "the manifest is not JSON: a string is not closed");
    at
}

/// Marks the member whose name is `text[begin..end]` as found.
const fn mark_member(text: &[u8], begin: usize, end: usize, found: &mut [bool; MEMBERS.len()]) {
    let mut member = 0;
    while member < MEMBERS.len() {
        let name = MEMBERS[member];
        let mut same = name.len() == end - begin;
        let mut index = 0;
        while same && index < name.len() {
            same = name[index] == text[begin + index];
            index += 1;
        }
        found[member] |= same;
        member += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panic_message(manifest: &str) -> String {
        let text = manifest.to_owned();
        let panic = std::panic::catch_unwind(move || check(&text)).unwrap_err();
        panic.downcast_ref::<&str>().copied().unwrap_or_default().to_owned()
    }

    #[test]
    fn valid_manifest_outlines_are_accepted() {
        check(" {\"id\": \"a\\\"}\", \"version\": \"1\", \"summary\": \"{\", \"methods\": [{\"name\": \"m]\"}]}\n");
    }

    #[test]
    fn outline_names_what_is_missing() {
        for (manifest, expected) in [
            ("", "is empty"),
            (" \n", "is empty"),
            ("id = \"x\"", "must begin with a curly bracket"),
            ("{\"id\": \"x\"", "ends before its last bracket"),
            ("{\"id\": \"x}", "a string is not closed"),
            ("{\"id\": [}]", "a closing bracket has no match"),
            ("{\"methods\": [], \"version\": \"1\", \"summary\": \"id\"}", "has no \"id\""),
            ("{\"id\": \"x\", \"version\": \"1\", \"summary\": \"s\", \"m\": {\"methods\": []}}", "has no \"methods\""),
            ("{\"id\": \"x\", \"version\": \"1\", \"methods\": []}", "has no \"summary\""),
            ("{\"id\": \"x\", \"summary\": \"s\", \"methods\": []}", "has no \"version\""),
            (
                "{\"id\": \"x\", \"version\": \"1\", \"summary\": \"s\", \"methods\": []} {}",
                "there is text after the object",
            ),
        ] {
            assert!(panic_message(manifest).contains(expected), "{manifest}: {}", panic_message(manifest));
        }
    }
}
