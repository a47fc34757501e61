//! The lines of a text file with a wallet's keys and scripts, as dumpwallet writes and importwallet reads it.

use std::fmt::Write as _;

use bitcoin::{NetworkKind, ScriptBuf};
use outrigger_service::wire::Secret;
use outrigger_values::params::decode_hex;
use outrigger_values::time::from_iso8601;

use super::wif::WifKey;

/// What a line of a dump says.
pub struct DumpLine {
    /// The birth time, in seconds; 0 where it is not known.
    pub time: u64,
    /// What was born then.
    pub entry: DumpEntry,
}

/// A key or script of a dump.
pub enum DumpEntry {
    /// A private key.
    Key {
        /// It, as WIF.
        wif: Secret,
        /// Its public key, 33 or 65 bytes.
        public_key: Vec<u8>,
        /// The label of its address; none for a key of the keypool or for change.
        label: Option<String>,
    },
    /// A redeem script or witness script.
    Script(ScriptBuf),
}

/// The lines that begin with a private key of the network, or a script; others say nothing.
pub fn dump_lines(text: &str, network: NetworkKind) -> impl Iterator<Item = DumpLine> {
    text.lines().filter(|line| !line.starts_with('#')).filter_map(move |line| read(line, network))
}

fn read(line: &str, network: NetworkKind) -> Option<DumpLine> {
    let mut words = line.split(' ');
    let (first, time) = (words.next()?, words.next()?);
    let time = from_iso8601(time).unwrap_or(0);
    let entry = match WifKey::parse(first, network) {
        Ok(key) => DumpEntry::Key {
            wif: Secret::new(first.to_owned()),
            public_key: key.public_key().to_vec(),
            label: label(words),
        },
        Err(_) => DumpEntry::Script(ScriptBuf::from_bytes(decode_hex(first).filter(|script| !script.is_empty())?)),
    };
    Some(DumpLine { time, entry })
}

/// The label of a key's line: none for one of the keypool or for change.
fn label<'a>(words: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut label = Some(String::new());
    for word in words.take_while(|word| !word.starts_with('#')) {
        match word.strip_prefix("label=") {
            Some(encoded) => label = Some(decode_dump_label(encoded)),
            None if matches!(word, "change=1" | "reserve=1") => label = None,
            None => {}
        }
    }
    label
}

/// A label without characters that end it: those are written as `%` and two hexadecimal digits.
pub fn encode_dump_label(label: &str) -> String {
    label.bytes().fold(String::new(), |mut text, byte| {
        match byte {
            33..=127 if byte != b'%' => text.push(char::from(byte)),
            _ => {
                // Writing to text cannot fail.
                let _ = write!(text, "%{byte:02x}");
            }
        }
        text
    })
}

/// A label in which `%` and two hexadecimal digits stand for a byte.
pub fn decode_dump_label(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let digits = behind.get(..2).filter(|digits| *first == b'%' && digits.iter().all(u8::is_ascii_hexdigit));
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = behind.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_a_dump_are_decoded() {
        assert_eq!(decode_dump_label("a%20b%25%c3%a9"), "a b%\u{e9}");
        assert_eq!(decode_dump_label("%"), "%");
        assert_eq!(decode_dump_label("%zz%4%+1"), "%zz%4%+1");
        assert_eq!(decode_dump_label(&encode_dump_label("100 % \u{e9}\n#")), "100 % \u{e9}\n#");
        assert_eq!(label(["label=x%20y", "#", "label=z"].into_iter()).as_deref(), Some("x y"));
        assert_eq!(label(["reserve=1", "#", "addr=1"].into_iter()), None);
        assert_eq!(label(["hdseed=1"].into_iter()).as_deref(), Some(""));
    }
}
