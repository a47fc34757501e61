//! How bitcoind writes an unspent output where room is scarce: numbers of variable length, amounts without their zeros, and the
//! standard scripts without what is the same in all of them.

use bitcoin::opcodes::all::{OP_CHECKSIG, OP_DUP, OP_EQUAL, OP_EQUALVERIFY, OP_HASH160};
use bitcoin::secp256k1::PublicKey;
use bitcoin::{Amount, Script};
use outrigger_service::chain::Coin;

/// How many first numbers of a script's length stand for the standard scripts.
const SPECIAL_SCRIPTS: u64 = 6;

/// A number in groups of seven bits, the highest first; each but the last has its top bit set and counts one more, so that a number
/// has one form alone (bitcoind's VARINT).
pub fn variable_number(mut number: u64) -> Vec<u8> {
    let mut bytes = vec![(number & 0x7f) as u8];
    while number > 0x7f {
        number = (number >> 7) - 1;
        bytes.push((number & 0x7f) as u8 | 0x80);
    }
    bytes.reverse();
    bytes
}

/// An unspent output: its height with the mark of a coinbase, its amount, its script.
pub fn put_coin(coin: &Coin, out: &mut Vec<u8>) {
    out.extend(variable_number((u64::from(coin.height) << 1) | u64::from(coin.coinbase)));
    out.extend(variable_number(compressed_amount(coin.output.value)));
    put_script(&coin.output.script_pubkey, out);
}

/// An amount as a smaller number: how many zeros its satoshi end with, at most nine, the last digit before them, the digits before
/// that.
fn compressed_amount(amount: Amount) -> u64 {
    let mut number = amount.to_sat();
    if number == 0 {
        return 0;
    }
    let mut zeros = 0;
    while number.is_multiple_of(10) && zeros < 9 {
        number /= 10;
        zeros += 1;
    }
    if zeros == 9 {
        return 1 + (number - 1) * 10 + 9;
    }
    let digit = number % 10;
    1 + (number / 10 * 9 + digit - 1) * 10 + zeros
}

fn put_script(script: &Script, out: &mut Vec<u8>) {
    if put_standard_script(script.as_bytes(), out).is_none() {
        out.extend(variable_number(script.len() as u64 + SPECIAL_SCRIPTS));
        out.extend_from_slice(script.as_bytes());
    }
}

/// A script that has a shorter form: P2PKH, P2SH, and P2PK of a public key that is one.
fn put_standard_script(script: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let (kind, rest) = match script.len() {
        25 => {
            let rest = script.strip_prefix(&[OP_DUP.to_u8(), OP_HASH160.to_u8(), 20])?;
            (0, rest.strip_suffix(&[OP_EQUALVERIFY.to_u8(), OP_CHECKSIG.to_u8()])?)
        }
        23 => (1, script.strip_prefix(&[OP_HASH160.to_u8(), 20])?.strip_suffix(&[OP_EQUAL.to_u8()])?),
        35 => {
            let (kind, rest) = script.strip_prefix(&[33])?.strip_suffix(&[OP_CHECKSIG.to_u8()])?.split_first()?;
            (Some(*kind).filter(|kind| matches!(kind, 2 | 3))?, rest)
        }
        67 => {
            let key = script.strip_prefix(&[65])?.strip_suffix(&[OP_CHECKSIG.to_u8()])?;
            // One that is no point could not be brought back from half of it. Bitcoind leaves hybrid keys as they are.
            let (rest, y) = key.strip_prefix(&[4])?.split_at_checked(32)?;
            PublicKey::from_slice(key).ok()?;
            (4 | (y.last()? & 1), rest)
        }
        _ => return None,
    };
    out.push(kind);
    out.extend_from_slice(rest);
    Some(())
}

#[cfg(test)]
mod tests {
    use bitcoin::ScriptBuf;
    use bitcoin::hex::{DisplayHex, FromHex};

    use super::*;

    #[test]
    fn variable_numbers_are_those_of_bitcoind() {
        for (number, bytes) in [
            (0, "00"),
            (0x7f, "7f"),
            (0x80, "8000"),
            (0x1234, "a334"),
            (0xffff, "82fe7f"),
            (0x0012_3456, "c7e756"),
            (0x8012_3456, "86ffc7e756"),
            (0xffff_ffff, "8efefefe7f"),
            (u64::MAX, "80fefefefefefefefe7f"),
        ] {
            assert_eq!(variable_number(number).to_lower_hex_string(), bytes, "{number}");
        }
    }

    #[test]
    fn amounts_are_compressed_as_by_bitcoind() {
        for (satoshi, number) in
            [(0, 0), (1, 1), (1_000_000, 7), (100_000_000, 9), (5_000_000_000, 50), (2_100_000_000_000_000, 21_000_000)]
        {
            assert_eq!(compressed_amount(Amount::from_sat(satoshi)), number, "{satoshi}");
        }
    }

    #[test]
    fn scripts_are_compressed_where_they_can_be_brought_back() {
        const X: &str = "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";
        const Y: &str = "483ada7726a3c4655da4fbfc0e1108a8fd17b448a68554199c47d08ffb10d4b8";
        let hash = "11".repeat(20);
        for (script, compressed) in [
            (format!("76a914{hash}88ac"), format!("00{hash}")),
            (format!("a914{hash}87"), format!("01{hash}")),
            (format!("2102{X}ac"), format!("02{X}")),
            (format!("2103{X}ac"), format!("03{X}")),
            // Of these one needs not be a point.
            (format!("2102{}ac", "ff".repeat(32)), format!("02{}", "ff".repeat(32))),
            (format!("4104{X}{Y}ac"), format!("04{X}")),
            (format!("4106{X}{Y}ac"), format!("494106{X}{Y}ac")),
            (format!("4104{X}{X}ac"), format!("494104{X}{X}ac")),
            (format!("2104{X}ac"), format!("292104{X}ac")),
            (format!("0014{hash}"), format!("1c0014{hash}")),
            (String::new(), "06".to_owned()),
            ("51".repeat(200), format!("804e{}", "51".repeat(200))),
        ] {
            let script = ScriptBuf::from_hex(&script).unwrap_or_default();
            let mut out = Vec::new();
            put_script(&script, &mut out);
            assert_eq!(out.to_lower_hex_string(), compressed, "{script:x}");
        }
        assert!(Vec::<u8>::from_hex(X).is_ok());
    }
}
