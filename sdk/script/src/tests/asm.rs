//! Parses the script notation of Bitcoin Core's test vectors: opcode names, decimal numbers, raw hex, quoted text.

use bitcoin::ScriptBuf;
use bitcoin::hex::FromHex;
use bitcoin::opcodes::Opcode;
use bitcoin::opcodes::all::*;
use bitcoin::script::{Builder, PushBytesBuf};

pub(super) fn parse(text: &str) -> ScriptBuf {
    let mut script = Vec::new();
    for word in text.split_ascii_whitespace() {
        script.extend(parse_word(word));
    }
    ScriptBuf::from_bytes(script)
}

fn parse_word(word: &str) -> Vec<u8> {
    if let Ok(number) = word.parse::<i64>() {
        return Builder::new().push_int(number).into_bytes();
    }
    if let Some(hex) = word.strip_prefix("0x") {
        return Vec::from_hex(hex).expect("hex in a script");
    }
    if let Some(text) = word.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
        let data = PushBytesBuf::try_from(text.as_bytes().to_vec()).expect("a short text");
        return Builder::new().push_slice(data).into_bytes();
    }
    let name = word.strip_prefix("OP_").unwrap_or(word);
    let opcode = (0..=0xff).map(Opcode::from).find(|opcode| name_of(*opcode).as_deref() == Some(name));
    vec![opcode.expect("a known opcode").to_u8()]
}

/// The name of an opcode in this notation; `None` for pushes.
fn name_of(opcode: Opcode) -> Option<String> {
    match opcode {
        OP_CLTV => Some("CHECKLOCKTIMEVERIFY".to_owned()),
        OP_CSV => Some("CHECKSEQUENCEVERIFY".to_owned()),
        _ if opcode == OP_RESERVED || (OP_NOP.to_u8()..=OP_CHECKSIGADD.to_u8()).contains(&opcode.to_u8()) => {
            opcode.to_string().strip_prefix("OP_").map(str::to_owned)
        }
        _ => None,
    }
}
