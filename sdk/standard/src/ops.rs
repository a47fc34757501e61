//! bitcoind's names of opcodes.

use std::sync::LazyLock;

use bitcoin::Opcode;

/// The names by opcode: rust-bitcoin's, except where bitcoind's differ.
static NAMES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let name = |opcode: u8| match opcode {
        0x4f => "-1".to_owned(),
        0x51..=0x60 => (opcode - 0x50).to_string(),
        0xb1 => "OP_CHECKLOCKTIMEVERIFY".to_owned(),
        0xb2 => "OP_CHECKSEQUENCEVERIFY".to_owned(),
        0xbb..=0xfe => "OP_UNKNOWN".to_owned(),
        _ => Opcode::from(opcode).to_string(),
    };
    (0..=u8::MAX).map(name).collect()
});

/// bitcoind's name of an opcode without data.
pub(super) fn name(opcode: u8) -> &'static str {
    NAMES.get(usize::from(opcode)).map_or("", String::as_str)
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
}
