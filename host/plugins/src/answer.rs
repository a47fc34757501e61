//! Checks of plugins' answers. An answer is one JSON value on one line. Answers of untrusted plugins are also bounded
//! in length and nesting.

use outrigger_abi::PASS_ON;
use outrigger_base::nesting::{MAX_NESTING, are_parameters, depth};

/// The longest parameters that a plugin may pass on, in bytes: as long as requests may be.
const MAX_PARAMS: usize = 32 << 20;

/// The default of `max_answer_bytes`: the longest answer of an untrusted plugin, in bytes.
pub const DEFAULT_MAX_BYTES: usize = 64 << 20;

/// The longest error message of an untrusted plugin, in bytes.
const MAX_ERROR_BYTES: usize = 1 << 20;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AnswerRules {
    /// Only line ends are refused, since they would break a client's framing.
    Trusted,
    /// At most this many bytes of valid JSON.
    Bounded(usize),
}

/// Why an answer was refused; sent to the client as its error.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadAnswer {
    /// Not one JSON value on one line.
    #[error("The plugin's answer is not JSON on one line")]
    NotJson,
    #[error("The plugin's answer is too long: it has {len} bytes, and at most {most} are allowed (max_answer_bytes)")]
    TooLong { len: usize, most: usize },
    #[error("The plugin's error message is too long: it has {len} bytes, and at most {MAX_ERROR_BYTES} are allowed")]
    LongError { len: usize },
    /// The parameters for the next link are not a JSON array or object.
    #[error("The plugin passed the call on with parameters that are not a JSON array or object")]
    Parameters,
    #[error("The plugin's answer nests too deeply: at most {MAX_NESTING} arrays and objects are allowed")]
    TooDeep,
}

impl AnswerRules {
    /// Checks an answer: a JSON result if `code` is 0, parameters if it is [`PASS_ON`], else an error message.
    pub fn check(self, code: i32, answer: &[u8]) -> Result<(), BadAnswer> {
        if code == PASS_ON {
            // Without parameters, the next link gets the client's.
            let is_good = answer.is_empty() || are_parameters(answer, MAX_PARAMS);
            return if is_good { Ok(()) } else { Err(BadAnswer::Parameters) };
        }
        let Self::Bounded(most) = self else {
            return if code == 0 && has_line_end(answer) { Err(BadAnswer::NotJson) } else { Ok(()) };
        };
        if answer.len() > most {
            return Err(BadAnswer::TooLong { len: answer.len(), most });
        }
        if code != 0 {
            let len = answer.len();
            return if len > MAX_ERROR_BYTES { Err(BadAnswer::LongError { len }) } else { Ok(()) };
        }
        if has_line_end(answer) || serde_json::from_slice::<&serde_json::value::RawValue>(answer).is_err() {
            return Err(BadAnswer::NotJson);
        }
        if depth(answer) > MAX_NESTING { Err(BadAnswer::TooDeep) } else { Ok(()) }
    }
}

/// Chunks are tested without a branch per byte, since a block template has millions of bytes.
fn has_line_end(bytes: &[u8]) -> bool {
    let (chunks, rest) = bytes.as_chunks::<64>();
    let found = |bytes: &[u8]| bytes.iter().fold(0, |found, byte| found | u8::from(*byte == b'\n')) != 0;
    chunks.iter().any(|chunk| found(chunk)) || found(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(depth: usize) -> Vec<u8> {
        [vec![b'['; depth], vec![b']'; depth]].concat()
    }

    #[test]
    fn untrusted_answer_is_bounded_in_size_and_nesting() {
        let rules = AnswerRules::Bounded(2000);
        assert_eq!(rules.check(0, &vec![b'1'; 2000]), Ok(()));
        assert_eq!(rules.check(0, &vec![b'1'; 2001]), Err(BadAnswer::TooLong { len: 2001, most: 2000 }));
        assert_eq!(rules.check(-1, &vec![b'1'; 2001]), Err(BadAnswer::TooLong { len: 2001, most: 2000 }));
        let most = AnswerRules::Bounded(DEFAULT_MAX_BYTES);
        assert!(
            most.check(-1, &vec![b'1'; MAX_ERROR_BYTES]).is_ok()
                && most.check(-1, &vec![b'1'; MAX_ERROR_BYTES + 1]).is_err()
        );
        assert_eq!(rules.check(0, &nested(MAX_NESTING)), Ok(()));
        assert_eq!(rules.check(0, &nested(MAX_NESTING + 1)), Err(BadAnswer::TooDeep));
        // The checks do not recurse: deep nesting must not overflow the stack.
        assert_eq!(most.check(0, &nested(10 << 20)), Err(BadAnswer::TooDeep));
        for answer in [&b"{\"half\":"[..], b"[1,\n2]", b"", b"1 2"] {
            assert_eq!(rules.check(0, answer), Err(BadAnswer::NotJson));
        }
        let brackets_in_text = format!("\"\\\"{}\"", "[".repeat(MAX_NESTING + 1));
        assert_eq!(rules.check(0, brackets_in_text.as_bytes()), Ok(()));
    }

    #[test]
    fn trusted_answer_is_only_checked_for_line_ends() {
        assert_eq!(AnswerRules::Trusted.check(0, &nested(MAX_NESTING + 1)), Ok(()));
        assert_eq!(AnswerRules::Trusted.check(0, b"[1,\n2]"), Err(BadAnswer::NotJson));
        assert_eq!(AnswerRules::Trusted.check(-1, b"two\nlines"), Ok(()));
    }
}
