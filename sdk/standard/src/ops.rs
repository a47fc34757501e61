//! Reading a script opcode by opcode, and the names of opcodes.

/// The largest opcode that carries its data in the script: OP_PUSHDATA4.
pub(super) const OP_PUSHDATA4: u8 = 0x4e;
const OP_PUSHDATA1: u8 = 0x4c;
const OP_PUSHDATA2: u8 = 0x4d;
/// The largest opcode that counts as a push: OP_16.
const OP_16: u8 = 0x60;
const OP_1: u8 = 0x51;

/// An opcode with what it pushes; empty where it carries no data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Op<'a> {
    pub(super) opcode: u8,
    pub(super) data: &'a [u8],
}

/// The script ends within the data of an opcode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Truncated;

/// Reads a script from its start, and stops after a truncated push.
pub(super) struct Ops<'a> {
    rest: &'a [u8],
}

impl<'a> Ops<'a> {
    pub(super) fn new(script: &'a [u8]) -> Self {
        Self { rest: script }
    }

    /// What has not been read yet.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }

    /// The length that follows a push opcode, in `bytes` bytes, little-endian.
    fn length(&mut self, bytes: usize) -> Option<usize> {
        let length = self.take(bytes)?.iter().rev().fold(0_u64, |length, byte| length << 8 | u64::from(*byte));
        usize::try_from(length).ok()
    }

    fn data(&mut self, opcode: u8) -> Option<&'a [u8]> {
        let length = match opcode {
            OP_PUSHDATA1 => self.length(1)?,
            OP_PUSHDATA2 => self.length(2)?,
            OP_PUSHDATA4 => self.length(4)?,
            _ => usize::from(opcode),
        };
        self.take(length)
    }
}

impl<'a> Iterator for Ops<'a> {
    type Item = Result<Op<'a>, Truncated>;

    fn next(&mut self) -> Option<Self::Item> {
        let opcode = *self.take(1)?.first()?;
        if opcode > OP_PUSHDATA4 {
            return Some(Ok(Op { opcode, data: &[] }));
        }
        let data = self.data(opcode);
        if data.is_none() {
            self.rest = &[];
        }
        Some(data.map(|data| Op { opcode, data }).ok_or(Truncated))
    }
}

/// The number that OP_1 to OP_16 push.
pub(super) fn small_number(opcode: u8) -> Option<u8> {
    (OP_1..=OP_16).contains(&opcode).then(|| opcode - OP_1 + 1)
}

/// Whether a script can be read and only pushes.
pub(super) fn is_push_only(script: &[u8]) -> bool {
    Ops::new(script).all(|op| op.is_ok_and(|op| op.opcode <= OP_16))
}

/// Whether `opcode` is the shortest way to push `data`, where data that has an opcode of its own must use it.
pub(super) fn is_minimal_push(opcode: u8, data: &[u8]) -> bool {
    match data {
        [] => opcode == 0,
        [1..=16 | 0x81] => false,
        _ => match data.len() {
            length @ ..=75 => usize::from(opcode) == length,
            76..=0xff => opcode == OP_PUSHDATA1,
            0x100..=0xffff => opcode == OP_PUSHDATA2,
            _ => true,
        },
    }
}

/// The names of the opcodes from OP_NOP (0x61) to OP_CHECKSIGADD (0xba).
const NAMES: [&str; 90] = [
    "OP_NOP",
    "OP_VER",
    "OP_IF",
    "OP_NOTIF",
    "OP_VERIF",
    "OP_VERNOTIF",
    "OP_ELSE",
    "OP_ENDIF",
    "OP_VERIFY",
    "OP_RETURN",
    "OP_TOALTSTACK",
    "OP_FROMALTSTACK",
    "OP_2DROP",
    "OP_2DUP",
    "OP_3DUP",
    "OP_2OVER",
    "OP_2ROT",
    "OP_2SWAP",
    "OP_IFDUP",
    "OP_DEPTH",
    "OP_DROP",
    "OP_DUP",
    "OP_NIP",
    "OP_OVER",
    "OP_PICK",
    "OP_ROLL",
    "OP_ROT",
    "OP_SWAP",
    "OP_TUCK",
    "OP_CAT",
    "OP_SUBSTR",
    "OP_LEFT",
    "OP_RIGHT",
    "OP_SIZE",
    "OP_INVERT",
    "OP_AND",
    "OP_OR",
    "OP_XOR",
    "OP_EQUAL",
    "OP_EQUALVERIFY",
    "OP_RESERVED1",
    "OP_RESERVED2",
    "OP_1ADD",
    "OP_1SUB",
    "OP_2MUL",
    "OP_2DIV",
    "OP_NEGATE",
    "OP_ABS",
    "OP_NOT",
    "OP_0NOTEQUAL",
    "OP_ADD",
    "OP_SUB",
    "OP_MUL",
    "OP_DIV",
    "OP_MOD",
    "OP_LSHIFT",
    "OP_RSHIFT",
    "OP_BOOLAND",
    "OP_BOOLOR",
    "OP_NUMEQUAL",
    "OP_NUMEQUALVERIFY",
    "OP_NUMNOTEQUAL",
    "OP_LESSTHAN",
    "OP_GREATERTHAN",
    "OP_LESSTHANOREQUAL",
    "OP_GREATERTHANOREQUAL",
    "OP_MIN",
    "OP_MAX",
    "OP_WITHIN",
    "OP_RIPEMD160",
    "OP_SHA1",
    "OP_SHA256",
    "OP_HASH160",
    "OP_HASH256",
    "OP_CODESEPARATOR",
    "OP_CHECKSIG",
    "OP_CHECKSIGVERIFY",
    "OP_CHECKMULTISIG",
    "OP_CHECKMULTISIGVERIFY",
    "OP_NOP1",
    "OP_CHECKLOCKTIMEVERIFY",
    "OP_CHECKSEQUENCEVERIFY",
    "OP_NOP4",
    "OP_NOP5",
    "OP_NOP6",
    "OP_NOP7",
    "OP_NOP8",
    "OP_NOP9",
    "OP_NOP10",
    "OP_CHECKSIGADD",
];

/// The name bitcoind prints for an opcode that carries no data.
pub(super) fn name(opcode: u8) -> String {
    match opcode {
        0x4f => "-1".to_owned(),
        0x50 => "OP_RESERVED".to_owned(),
        0x51..=0x60 => (opcode - 0x50).to_string(),
        0xff => "OP_INVALIDOPCODE".to_owned(),
        _ => {
            let name = opcode.checked_sub(0x61).and_then(|index| NAMES.get(usize::from(index)));
            (*name.unwrap_or(&"OP_UNKNOWN")).to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_at_their_opcodes() {
        for (opcode, text) in [
            (0x4f, "-1"),
            (0x50, "OP_RESERVED"),
            (0x51, "1"),
            (0x60, "16"),
            (0x61, "OP_NOP"),
            (0x6a, "OP_RETURN"),
            (0x76, "OP_DUP"),
            (0x87, "OP_EQUAL"),
            (0xa9, "OP_HASH160"),
            (0xac, "OP_CHECKSIG"),
            (0xb1, "OP_CHECKLOCKTIMEVERIFY"),
            (0xb9, "OP_NOP10"),
            (0xba, "OP_CHECKSIGADD"),
            (0xbb, "OP_UNKNOWN"),
            (0xff, "OP_INVALIDOPCODE"),
        ] {
            assert_eq!(name(opcode), text, "{opcode:#x}");
        }
    }

    #[test]
    fn pushes_are_read_and_a_short_one_ends_the_script() {
        let script = [0x00, 0x02, 7, 8, 0x4c, 1, 9, 0x4d, 1, 0, 5, 0x4e, 1, 0, 0, 0, 6, 0xac, 0x03, 1];
        let read: Vec<_> = Ops::new(&script).map(|op| op.map(|op| (op.opcode, op.data.len()))).collect();
        let ops = [(0, 0), (2, 2), (0x4c, 1), (0x4d, 1), (0x4e, 1), (0xac, 0)];
        assert_eq!(read, [ops.map(Ok).as_slice(), &[Err(Truncated)]].concat());
    }
}
