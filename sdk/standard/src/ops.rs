//! bitcoind's names of opcodes.

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

/// bitcoind's name of an opcode without data.
pub(super) fn name(opcode: u8) -> &'static str {
    let of = |names: &[&'static str], first: u8| {
        opcode.checked_sub(first).and_then(|index| names.get(usize::from(index)).copied())
    };
    match opcode {
        0x4f => "-1",
        0x50 => "OP_RESERVED",
        0x51..=0x60 => of(&NUMBERS, 0x51).unwrap_or_default(),
        0xff => "OP_INVALIDOPCODE",
        _ => of(&NAMES, 0x61).unwrap_or("OP_UNKNOWN"),
    }
}

const NUMBERS: [&str; 16] = ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16"];

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
}
