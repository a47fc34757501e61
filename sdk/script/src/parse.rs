//! Parses scripts opcode by opcode, and matches patterns without executing them.
//!
//! Invariant: in a malformed script the reader stops where Core's `GetScriptOp` does, as legacy signature hashes need.

use std::borrow::Cow;

use bitcoin::ScriptBuf;
use bitcoin::script::{Builder, PushBytes};

use super::ScriptError;
use super::limits::MAX_SCRIPT_SIZE;

/// The largest opcode with data in the script.
pub const OP_PUSHDATA4: u8 = 0x4e;
/// The largest opcode that counts as a push.
pub(super) const OP_16: u8 = 0x60;
const OP_1: u8 = 0x51;
const OP_PUSHDATA1: u8 = 0x4c;
const OP_PUSHDATA2: u8 = 0x4d;
const OP_CODESEPARATOR: u8 = 0xab;
const OP_RETURN: u8 = 0x6a;

/// An opcode of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op<'a> {
    /// The opcode.
    pub opcode: u8,
    /// The data that it pushes; empty for opcodes above OP_PUSHDATA4.
    pub data: &'a [u8],
}

/// An iterator over the opcodes of a script.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    script: &'a [u8],
    position: usize,
}

impl<'a> Reader<'a> {
    /// A reader at the start of a script.
    pub const fn new(script: &'a [u8]) -> Reader<'a> {
        Reader { script, position: 0 }
    }

    /// The offset of the next byte to read.
    pub const fn position(&self) -> usize {
        self.position
    }

    /// Reads the length of a push opcode's data.
    fn read_length(&mut self, opcode: u8) -> Option<usize> {
        match opcode {
            OP_PUSHDATA1 => Some(usize::from(*self.take(1)?.first()?)),
            OP_PUSHDATA2 => Some(usize::from(u16::from_le_bytes(self.take(2)?.try_into().ok()?))),
            OP_PUSHDATA4 => usize::try_from(u32::from_le_bytes(self.take(4)?.try_into().ok()?)).ok(),
            direct => Some(usize::from(direct)),
        }
    }

    /// Takes the next `length` bytes; `None`, without taking any, if there are fewer.
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let end = self.position.checked_add(length)?;
        let bytes = self.script.get(self.position..end)?;
        self.position = end;
        Some(bytes)
    }
}

impl<'a> Iterator for Reader<'a> {
    type Item = Result<Op<'a>, ScriptError>;

    /// Reads the next opcode; `None` at the end. Fails with [`ScriptError::BadOpcode`] if its data is truncated.
    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let opcode = *self.script.get(self.position)?;
        self.position += 1;
        if opcode > OP_PUSHDATA4 {
            return Some(Ok(Op { opcode, data: &[] }));
        }
        let data = self.read_length(opcode).and_then(|length| self.take(length));
        Some(data.map(|data| Op { opcode, data }).ok_or(ScriptError::BadOpcode))
    }
}

/// The number that OP_1 to OP_16 pushes.
pub const fn small_number(opcode: u8) -> Option<u8> {
    match opcode {
        OP_1..=OP_16 => Some(opcode - OP_1 + 1),
        _ => None,
    }
}

/// Whether a script is well-formed without opcodes above OP_16 (`IsPushOnly` in Core).
pub fn is_push_only(script: &[u8]) -> bool {
    Reader::new(script).all(|op| op.is_ok_and(|op| op.opcode <= OP_16))
}

/// Whether an output with this script can never be spent, so the UTXO set omits it (`IsUnspendable` in Core).
pub fn is_unspendable(script: &[u8]) -> bool {
    script.first() == Some(&OP_RETURN) || script.len() > MAX_SCRIPT_SIZE
}

/// The version and program of a witness program (BIP 141).
pub fn witness_program(script: &[u8]) -> Option<(u8, &[u8])> {
    let [opcode, length, program @ ..] = script else {
        return None;
    };
    let version = if *opcode == 0 { 0 } else { small_number(*opcode)? };
    let fits = (2..=40).contains(&program.len()) && usize::from(*length) == program.len();
    fits.then_some((version, program))
}

/// Whether a push opcode is the shortest for its data (`CheckMinimalPush` in Core).
pub fn is_minimal_push(opcode: u8, data: &[u8]) -> bool {
    match data {
        [] => opcode == 0,
        // OP_1 to OP_16 and OP_1NEGATE push these values.
        [1..=16 | 0x81] => false,
        _ => match data.len() {
            length @ ..=75 => usize::from(opcode) == length,
            76..=0xff => opcode == OP_PUSHDATA1,
            0x100..=0xffff => opcode == OP_PUSHDATA2,
            _ => true,
        },
    }
}

/// The push of `data` as `CScript <<` encodes it; `None` for 4 GiB or more.
fn push_of(data: &[u8]) -> Option<ScriptBuf> {
    Some(Builder::new().push_slice(<&PushBytes>::try_from(data).ok()?).into_script())
}

/// Whether `script` is exactly one push of `data`, as `CScript <<` encodes it.
pub(super) fn is_push_of(script: &[u8], data: &[u8]) -> bool {
    push_of(data).is_some_and(|push| push.as_bytes() == script)
}

/// Removes each push of `signature` from a legacy scriptCode (`FindAndDelete` in Core). `Borrowed` if there is none. A
/// push matches only at the start of an opcode, or right after a removal. A malformed end stays.
pub(super) fn find_and_delete<'a>(script: &'a [u8], signature: &[u8]) -> Cow<'a, [u8]> {
    let Some(push) = push_of(signature) else { return Cow::Borrowed(script) };
    let mut kept: Option<Vec<u8>> = None;
    let mut kept_from = 0;
    let mut reader = Reader::new(script);
    loop {
        let start = reader.position;
        let mut rest = script.get(start..).unwrap_or_default();
        while let Some(after) = rest.strip_prefix(push.as_bytes()) {
            rest = after;
        }
        let end = script.len() - rest.len();
        if end > start {
            let out = kept.get_or_insert_with(|| Vec::with_capacity(script.len()));
            out.extend_from_slice(script.get(kept_from..start).unwrap_or_default());
            kept_from = end;
            reader.position = end;
        }
        if !matches!(reader.next(), Some(Ok(_))) {
            break;
        }
    }
    match kept {
        None => Cow::Borrowed(script),
        Some(mut out) => {
            out.extend_from_slice(script.get(kept_from..).unwrap_or_default());
            Cow::Owned(out)
        }
    }
}

/// The pieces of a legacy scriptCode between its OP_CODESEPARATORs, and the length for the signature hash. If the
/// script is malformed, the last piece ends where parsing stops, but the length includes the rest (consensus).
pub(super) fn code_pieces(script: &[u8]) -> (usize, impl Iterator<Item = &[u8]>) {
    let is_separator = |op: &Op<'_>| op.opcode == OP_CODESEPARATOR;
    // Most scripts do not contain the byte of OP_CODESEPARATOR and need no parsing.
    let separators = if script.contains(&OP_CODESEPARATOR) {
        Reader::new(script).map_while(Result::ok).filter(is_separator).count()
    } else {
        0
    };
    let mut reader = Reader::new(script);
    let mut start = Some(0);
    let pieces = std::iter::from_fn(move || {
        let from = start?;
        let found = reader.by_ref().map_while(Result::ok).any(|op| is_separator(&op));
        start = found.then_some(reader.position());
        script.get(from..reader.position() - usize::from(found))
    });
    (script.len() - separators, pieces)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reader_reads_every_push_opcode() {
        let script = [0x00, 0x02, 7, 8, 0x4c, 1, 9, 0x4d, 1, 0, 5, 0x4e, 1, 0, 0, 0, 6, 0xac];
        let ops: Vec<_> = Reader::new(&script).map_while(Result::ok).map(|op| (op.opcode, op.data.to_vec())).collect();
        assert_eq!(
            ops,
            [(0x00, vec![]), (0x02, vec![7, 8]), (0x4c, vec![9]), (0x4d, vec![5]), (0x4e, vec![6]), (0xac, vec![])]
        );
    }

    #[test]
    fn reader_stops_after_the_consumed_bytes_of_a_truncated_push() {
        for (script, stop) in [(&[0x51, 0x03, 1, 2][..], 2), (&[0x4c], 1), (&[0x4c, 2, 1], 2), (&[0x4d, 1], 1)] {
            let mut reader = Reader::new(script);
            assert_eq!(reader.by_ref().find(Result::is_err), Some(Err(ScriptError::BadOpcode)));
            assert_eq!(reader.position(), stop, "{script:?}");
        }
    }

    #[test]
    fn find_and_delete_matches_at_opcode_starts_only() {
        // Matches: one, then two in a row. No match: within another push, and with OP_PUSHDATA1.
        let script = [1, 9, 0x51, 1, 9, 1, 9, 0x02, 1, 9, 0x4c, 1, 9];
        assert_eq!(&*find_and_delete(&script, &[9]), [0x51, 0x02, 1, 9, 0x4c, 1, 9]);
        assert!(matches!(find_and_delete(&script, &[8]), Cow::Borrowed(_)));
        // Parsing resumes after the removed push, even if the rest is malformed.
        assert_eq!(&*find_and_delete(&[0x03, 1, 2, 3, 0x05, 1], &[1, 2, 3]), [0x05, 1]);
        assert_eq!(&*find_and_delete(&[0x00, 0x51, 0x00], &[]), [0x51]);
    }

    #[test]
    fn code_pieces_leave_out_the_separators() {
        let pieces = |script: &[u8]| {
            let (length, pieces) = code_pieces(script);
            (length, pieces.collect::<Vec<_>>().concat())
        };
        assert_eq!(pieces(&[0xab, 0x51, 0xab, 0xab, 0x52]), (2, vec![0x51, 0x52]));
        assert_eq!(pieces(&[0x02, 0xab, 0xab]), (3, vec![0x02, 0xab, 0xab]));
        // The data of a truncated push is not hashed, but counts in the length.
        assert_eq!(pieces(&[0x51, 0x05, 1, 2]), (4, vec![0x51, 0x05]));
    }

    #[test]
    fn witness_programs_are_recognised() {
        assert_eq!(witness_program(&[0x51, 2, 0x4e, 0x73]), Some((1, &[0x4e, 0x73][..])));
        assert_eq!(witness_program(&[0x60, 3, 1, 2, 3]), Some((16, &[1, 2, 3][..])));
        for script in [&[][..], &[0x00], &[0x00, 1, 1], &[0x4f, 2, 1, 1], &[0x51, 3, 1, 1], &[0x61, 2, 1, 1]] {
            assert_eq!(witness_program(script), None, "{script:?}");
        }
    }

    #[test]
    fn push_is_minimal_by_its_shortest_opcode_alone() {
        assert!(is_minimal_push(0, &[]));
        assert!(!is_minimal_push(0x4c, &[]));
        assert!(!is_minimal_push(1, &[16]));
        assert!(is_minimal_push(1, &[17]));
        assert!(!is_minimal_push(1, &[0x81]));
        assert!(is_minimal_push(75, &[1; 75]));
        assert!(!is_minimal_push(0x4c, &[1; 75]));
        assert!(is_minimal_push(0x4c, &[1; 76]));
        assert!(is_minimal_push(0x4d, &[1; 256]));
        assert!(!is_minimal_push(0x4e, &[1; 256]));
    }
}
