//! Splits descriptor text as bitcoind's `script/parsing.h` does: expressions, functions, constants.

use super::error::DescriptorError;
use super::limits::MAX_NESTING;

/// Removes the first expression from `text` and returns it (`Expr` in bitcoind): up to a `,`, `)` or `}` outside of brackets.
pub(super) fn expression<'a>(text: &mut &'a str) -> &'a str {
    let mut level = 0_usize;
    let end = text.bytes().position(|byte| {
        match byte {
            b'(' | b'{' => level += 1,
            b')' | b'}' if level > 0 => level -= 1,
            b')' | b'}' | b',' => return level == 0,
            _ => {}
        }
        false
    });
    let (expression, rest) = end.and_then(|end| text.split_at_checked(end)).unwrap_or((*text, ""));
    *text = rest;
    expression
}

/// The text between the parentheses if all of `text` is `name(...)` (`Func` in bitcoind).
pub(super) fn arguments<'a>(name: &str, text: &'a str) -> Option<&'a str> {
    text.strip_prefix(name)?.strip_prefix('(')?.strip_suffix(')')
}

/// Removes `constant` from the start of `text` (`Const` in bitcoind). Returns whether it was there.
pub(super) fn constant(constant: char, text: &mut &str) -> bool {
    let rest = text.strip_prefix(constant);
    *text = rest.unwrap_or(text);
    rest.is_some()
}

/// Refuses text that nests deeper than [`MAX_NESTING`]. A miniscript wrapper is a level until its expression ends.
pub(super) fn check_nesting(text: &str) -> Result<(), DescriptorError> {
    // The number of levels around each open bracket.
    let (mut outer, mut levels, mut word) = (Vec::new(), 0_usize, 0_usize);
    for byte in text.bytes() {
        match byte {
            b'(' | b'{' => {
                outer.push(levels);
                (levels, word) = (levels + 1, 0);
            }
            b')' | b'}' => {
                levels = outer.pop().unwrap_or(0);
                word = 0;
            }
            b',' => {
                levels = outer.last().map_or(0, |outside| outside + 1);
                word = 0;
            }
            b':' => {
                levels += word;
                word = 0;
            }
            _ => word += 1,
        }
        if levels > MAX_NESTING {
            return Err(format!("Descriptor nests deeper than {MAX_NESTING} levels").into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expression_ends_at_its_own_level() {
        let mut text = "a(b,{c,d}),e";
        assert_eq!(expression(&mut text), "a(b,{c,d})");
        assert!(constant(',', &mut text));
        assert_eq!((expression(&mut text), text), ("e", ""));
    }

    #[test]
    fn arguments_need_the_whole_text_to_be_the_call() {
        assert_eq!(arguments("pkh", "pkh(K,K)"), Some("K,K"));
        assert_eq!(arguments("pkh", "pkh(K)x"), None);
        assert_eq!(arguments("pk", "pkh(K)"), None);
    }

    #[test]
    fn check_nesting_counts_brackets_and_wrappers() {
        assert_eq!(check_nesting(&"(".repeat(MAX_NESTING)), Ok(()));
        assert!(check_nesting(&"(".repeat(MAX_NESTING + 1)).is_err());
        assert!(check_nesting(&format!("wsh({}:pk(K))", "n".repeat(MAX_NESTING))).is_err());
        assert_eq!(check_nesting(&"a:f(b:g(),".repeat(60)), Ok(()), "wrappers end with their expression");
    }
}
