//! Scripts as text in bitcoind's format.
//!
//! Pushes of up to four bytes are signed decimals, longer ones hex. Opcodes have names. A malformed end is `[error]`.

use bitcoin::Script;
use bitcoin::script::read_scriptint_non_minimal;

use super::ops;
use outrigger_script::parse::{OP_PUSHDATA4, Reader, is_unspendable};
use outrigger_script::{Flags, check_signature_encoding};
use outrigger_values::params::push_hex;

/// The text of a scriptPubKey.
pub fn asm(script: &Script) -> String {
    let mut text = Vec::with_capacity(2 * script.len());
    push_asm(&mut text, script);
    // The text is ASCII.
    String::from_utf8(text).unwrap_or_default()
}

/// Appends the text of a scriptPubKey. JSON needs no escapes for it.
pub fn push_asm(text: &mut Vec<u8>, script: &Script) {
    write(text, script, push_hex);
}

/// The text of a scriptSig. In pushes encoded as signatures the last byte is shown as a sighash type: `3044...[ALL]`.
pub fn asm_sighash(script: &Script) -> String {
    if is_unspendable(script.as_bytes()) {
        return asm(script);
    }
    let mut text = Vec::with_capacity(2 * script.len());
    write(&mut text, script, |text, data| match signature_and_type(data) {
        Some((signature, name)) => {
            push_hex(text, signature);
            text.extend_from_slice(format!("[{name}]").as_bytes());
        }
        None => push_hex(text, data),
    });
    String::from_utf8(text).unwrap_or_default()
}

/// Writes words directly, since a script may have millions.
fn write(text: &mut Vec<u8>, script: &Script, long_push: impl Fn(&mut Vec<u8>, &[u8])) {
    for (place, op) in Reader::new(script.as_bytes()).enumerate() {
        if place > 0 {
            text.push(b' ');
        }
        match op {
            Err(_) => return text.extend_from_slice(b"[error]"),
            Ok(op) if op.opcode > OP_PUSHDATA4 => text.extend_from_slice(ops::name(op.opcode).as_bytes()),
            Ok(op) => match read_scriptint_non_minimal(op.data) {
                Ok(number) => text.extend_from_slice(number.to_string().as_bytes()),
                // It has more than four bytes.
                Err(_) => long_push(text, op.data),
            },
        }
    }
}

fn signature_and_type(data: &[u8]) -> Option<(&[u8], &'static str)> {
    let (hash_type, signature) = data.split_last()?;
    let name = match hash_type {
        0x01 => "ALL",
        0x02 => "NONE",
        0x03 => "SINGLE",
        0x81 => "ALL|ANYONECANPAY",
        0x82 => "NONE|ANYONECANPAY",
        0x83 => "SINGLE|ANYONECANPAY",
        _ => return None,
    };
    check_signature_encoding(data, Flags::DERSIG).is_ok().then_some((signature, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use outrigger_values::params::decode_hex;

    fn text(hex: &str) -> String {
        asm(Script::from_bytes(&decode_hex(hex).unwrap()))
    }

    #[test]
    fn scripts_read_as_bitcoind_prints_them() {
        for (hex, expected) in [
            ("51034c", "1 [error]"),
            ("4f0181028100", "-1 -1 129"),
            ("0100", "0"),
            ("00", "0"),
            ("04ffffffff", "-2147483647"),
        ] {
            assert_eq!(text(hex), expected, "{hex}");
        }
    }

    #[test]
    fn signatures_show_their_sighash_type_in_inputs_only() {
        let der = "304402203c94e0cf27a2b7f3d3289d6c22388886b01a8d1239aee78251612cd5838b3d4f02206bfb6730aa3c202d40dd3c5724f9730b8fae00c676cb9b1f5c86ba4050f8341a";
        for (hash_type, suffix) in [("01", "[ALL]"), ("83", "[SINGLE|ANYONECANPAY]"), ("82", "[NONE|ANYONECANPAY]")] {
            let bytes = decode_hex(&format!("47{der}{hash_type}")).unwrap();
            let script = Script::from_bytes(&bytes);
            assert_eq!(asm_sighash(script), format!("{der}{suffix}"));
            assert_eq!(asm(script), format!("{der}{hash_type}"));
        }
        for not_a_signature in [format!("47{der}04"), format!("46{der}"), format!("6a47{der}01")] {
            let bytes = decode_hex(&not_a_signature).unwrap();
            assert_eq!(asm_sighash(Script::from_bytes(&bytes)), asm(Script::from_bytes(&bytes)));
        }
    }
}
