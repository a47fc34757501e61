//! Detects requests with ambiguous framing (request smuggling).
//!
//! If a request has both `Content-Length` and `Transfer-Encoding`, a proxy may have ended its body elsewhere, so one
//! side's body is a second request to the other. hyper drops the length before it shows the headers, so the bytes from
//! the socket are searched. This module only refuses requests. hyper alone parses them.

/// The longest searched name, with its colon.
const LONGEST_NAME: usize = CODING.len();

const LENGTH: &[u8] = b"content-length:";
const CODING: &[u8] = b"transfer-encoding:";

/// The first position at which `Content-Length` differs from `Content-Type` and `Connection`.
const TELLING: usize = 8;

/// The bytes that are searched for line ends at a time.
const BLOCK: usize = 32;

/// Follows the requests of one connection, up to the first with a transfer coding: that one is the connection's last.
#[derive(Default)]
pub(super) struct Framing {
    at: At,
    /// The beginning of a line from an earlier read, as far as it is needed.
    line: Vec<u8>,
    /// Whether a line of the head was seen that was not empty.
    begun: bool,
    length: Option<u64>,
    coded: bool,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum At {
    #[default]
    Head,
    Body(u64),
    /// After the last head of the connection.
    Last,
}

impl Framing {
    /// Reads the next bytes of the connection. Returns whether they end a head with both headers.
    pub(super) fn take(&mut self, bytes: &[u8]) -> bool {
        let mut rest = bytes;
        loop {
            match self.at {
                At::Last => return false,
                At::Body(left) => {
                    let skipped = usize::try_from(left).unwrap_or(usize::MAX).min(rest.len());
                    rest = rest.get(skipped..).unwrap_or_default();
                    self.at = match left - skipped as u64 {
                        0 => At::Head,
                        left => At::Body(left),
                    };
                }
                At::Head => match self.head(rest) {
                    Some(length) => rest = rest.get(length..).unwrap_or_default(),
                    None => return false,
                },
            }
            if self.at == At::Last {
                return self.length.is_some();
            }
            if rest.is_empty() {
                return false;
            }
        }
    }

    /// Reads lines of a head. Returns where the head ends in these bytes.
    fn head(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut start = 0;
        let (blocks, rest) = bytes.as_chunks::<BLOCK>();
        for (index, block) in blocks.iter().enumerate() {
            let mut ends = line_ends(block);
            while ends != 0 {
                let end = index * BLOCK + ends.trailing_zeros() as usize;
                ends &= ends - 1;
                if self.line(bytes, start, end) {
                    return Some(end + 1);
                }
                start = end + 1;
            }
        }
        for (at, byte) in (blocks.len() * BLOCK..).zip(rest) {
            if *byte == b'\n' {
                if self.line(bytes, start, at) {
                    return Some(at + 1);
                }
                start = at + 1;
            }
        }
        self.keep(bytes.get(start..).unwrap_or_default());
        None
    }

    /// Reads the line from `start` to its line feed at `end`. Returns whether it ends the head.
    #[inline]
    fn line(&mut self, bytes: &[u8], start: usize, end: usize) -> bool {
        // The first byte rules out most lines.
        let first = bytes.get(start).map_or(0, u8::to_ascii_lowercase);
        if end > start + 1 && first != b'c' && first != b't' && self.line.is_empty() {
            self.begun = true;
            return false;
        }
        let rest = bytes.get(start..end).unwrap_or_default();
        if self.line.is_empty() {
            return self.whole_line(rest);
        }
        let mut line = std::mem::take(&mut self.line);
        line.extend_from_slice(rest);
        self.whole_line(&line)
    }

    fn whole_line(&mut self, line: &[u8]) -> bool {
        match line {
            [] | [b'\r'] => return self.begun && self.end_head(),
            [b'c' | b'C', ..] => {
                if let Some(value) = value_of(LENGTH, line) {
                    // An invalid number ends the connection.
                    self.length = Some(value.trim_ascii().iter().fold(0, decimal));
                }
            }
            [b't' | b'T', ..] => self.coded |= value_of(CODING, line).is_some(),
            _ => {}
        }
        self.begun = true;
        false
    }

    fn end_head(&mut self) -> bool {
        self.begun = false;
        self.at = match self.length {
            _ if self.coded => At::Last,
            Some(length) if length > 0 => At::Body(length),
            _ => At::Head,
        };
        if self.at != At::Last {
            self.length = None;
        }
        true
    }

    /// Keeps the beginning of an incomplete line: all of a line with a length, of others just enough to rule them out.
    fn keep(&mut self, part: &[u8]) {
        self.line.extend_from_slice(part);
        if self.line.len() > LONGEST_NAME && value_of(LENGTH, &self.line).is_none() {
            self.line.truncate(LONGEST_NAME);
        }
    }
}

/// Where the read of length `piece` ends that completes the first ambiguous head of `bytes`.
pub fn first_ambiguous_head(bytes: &[u8], piece: usize) -> Option<usize> {
    let mut framing = Framing::default();
    let mut end = 0;
    bytes.chunks(piece).find_map(|bytes| {
        end += bytes.len();
        framing.take(bytes).then_some(end)
    })
}

/// The line ends of a block, one bit each.
fn line_ends(block: &[u8; BLOCK]) -> u32 {
    block.iter().enumerate().fold(0, |ends, (index, byte)| ends | u32::from(*byte == b'\n') << index)
}

/// The value of a line with this name; `name` includes the colon.
fn value_of<'a>(name: &[u8], line: &'a [u8]) -> Option<&'a [u8]> {
    let (start, value) = line.split_at_checked(name.len())?;
    // Names with the same beginning differ in this byte.
    let (told, mark) = (start.get(TELLING)?, name.get(TELLING)?);
    (told.eq_ignore_ascii_case(mark) && start.eq_ignore_ascii_case(name)).then_some(value)
}

fn decimal(number: u64, digit: &u8) -> u64 {
    number.saturating_mul(10).saturating_add(u64::from(digit.wrapping_sub(b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMUGGLING: [&str; 4] = [
        "POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\ntransfer-encoding:chunked\r\nX-Long: 0123456789012345678901234567890123456789\r\ncontent-length:5\r\n\r\n",
        "POST / HTTP/1.1\nTRANSFER-ENCODING: gzip\nCONTENT-LENGTH: 5\n\n",
        "\r\nPOST / HTTP/1.1\r\nContent-Length:    0\r\nTransfer-Encoding: x\r\n\r\n",
    ];
    const PLAIN: [&str; 5] = [
        "POST / HTTP/1.1\r\nContent-Length: 18\r\nTE: trailers\r\n\r\nTransfer-Encoding:",
        "POST /Transfer-Encoding: HTTP/1.1\r\nContent-Length: 3\r\n\r\n\r\n\r",
        "GET / HTTP/1.1\r\nX: Content-Length: 9\r\n\r\n",
        "\n\r\nGET / HTTP/1.1\nContent-Length: 0\n\n",
        "GET / HTTP/1.1\r\nTransfer-Encodings: Content-Length: 7\r\n\r\n",
    ];

    #[test]
    fn both_headers_are_found_however_the_bytes_come() {
        for smuggling in SMUGGLING {
            for before in [String::new(), PLAIN[0].to_owned(), PLAIN.concat()] {
                let all = format!("{before}{smuggling}0\r\n\r\n{smuggling}");
                let end = before.len() + smuggling.len();
                for cut in 0..=all.len() {
                    let mut framing = Framing::default();
                    let (first, second) = (&all.as_bytes()[..cut], &all.as_bytes()[cut..]);
                    assert_eq!(
                        (framing.take(first), framing.take(second)),
                        (cut >= end, cut < end),
                        "{all:?} at {cut}"
                    );
                }
                let mut framing = Framing::default();
                let found: Vec<_> = all.bytes().map(|byte| framing.take(&[byte])).collect();
                assert_eq!(found.iter().position(|found| *found), Some(end - 1));
                assert_eq!(found.iter().filter(|found| **found).count(), 1);
            }
        }
    }

    #[test]
    fn requests_with_one_of_the_headers_are_told_apart() {
        let coded = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nContent-Length: 4\r\n\r\n";
        let all = PLAIN.concat() + &PLAIN.concat() + coded;
        for cut in 0..=all.len() {
            let mut framing = Framing::default();
            assert!(!framing.take(&all.as_bytes()[..cut]) && !framing.take(&all.as_bytes()[cut..]), "at {cut}");
        }
        let mut framing = Framing::default();
        assert!(!all.bytes().any(|byte| framing.take(&[byte])));
    }
}
