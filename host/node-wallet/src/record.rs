//! The records of a wallet's file, as Bitcoin Core's `wallet/walletdb.cpp` writes them.
//!
//! A record's key starts with its kind as a text. Integers are little-endian. Texts and lists are prefixed by their
//! length as a compact size.

use bitcoin::VarInt;
use bitcoin::consensus::Decodable;
use zeroize::Zeroizing;

/// In bytes.
const SECRET_LEN: usize = 32;
/// The bytes before the private key in its DER form (SEC 1, C.4): the version, and the header of an octet string of 32
/// bytes.
const BEFORE_SECRET: [u8; 5] = [0x02, 0x01, 0x01, 0x04, 0x20];

/// A hash of the descriptor's text.
pub type DescriptorId = [u8; 32];

/// The key that encrypts the private keys, itself encrypted with a passphrase (`CMasterKey`).
#[derive(PartialEq, Eq, Debug)]
pub struct MasterKey {
    pub sealed: Vec<u8>,
    pub salt: Vec<u8>,
    pub method: u32,
    pub iterations: u32,
}

/// Why a record is malformed.
pub const SHORT: &str = "it is truncated";
pub const NOT_UTF8: &str = "a text is not UTF-8";
pub const OUT_OF_RANGE: &str = "a number is out of its range";
const NO_SECRET: &str = "it is not a private key";

pub type Result<T> = std::result::Result<T, &'static str>;

/// The kind of a record, for messages; empty if it has none.
pub fn kind(key: &[u8]) -> String {
    Reader(key).text().unwrap_or_default()
}

/// The private key in a DER encoding.
pub fn secret(der: &[u8]) -> Result<Zeroizing<[u8; SECRET_LEN]>> {
    // A sequence, whose length takes one to three bytes.
    let begin = match der {
        [0x30, length, ..] if *length < 0x80 => 2,
        [0x30, 0x81, ..] => 3,
        [0x30, 0x82, ..] => 4,
        _ => return Err(NO_SECRET),
    };
    let rest = der.get(begin..).and_then(|rest| rest.strip_prefix(&BEFORE_SECRET)).ok_or(NO_SECRET)?;
    let secret = rest.first_chunk::<SECRET_LEN>().ok_or(NO_SECRET)?;
    Ok(Zeroizing::new(*secret))
}

/// The unread bytes.
pub struct Reader<'r>(pub &'r [u8]);

impl<'r> Reader<'r> {
    pub fn take(&mut self, length: usize) -> Result<&'r [u8]> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(SHORT)?;
        self.0 = rest;
        Ok(taken)
    }

    pub fn read<T: Decodable>(&mut self) -> Result<T> {
        T::consensus_decode_from_finite_reader(&mut self.0).map_err(|_| SHORT)
    }

    /// An index, stored as a signed number.
    pub fn index(&mut self) -> Result<u32> {
        u32::try_from(self.read::<i32>()?).map_err(|_| OUT_OF_RANGE)
    }

    /// A compact size.
    pub fn count(&mut self) -> Result<u64> {
        self.read().map(|VarInt(count)| count)
    }

    pub fn bytes(&mut self) -> Result<&'r [u8]> {
        let length = self.count()?;
        self.take(usize::try_from(length).map_err(|_| SHORT)?)
    }

    pub fn text(&mut self) -> Result<String> {
        String::from_utf8(self.bytes()?.to_vec()).map_err(|_| NOT_UTF8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_private_key_is_read_from_its_der_form() {
        let der = |head: &[u8]| [head, &BEFORE_SECRET, &[5; 32], &[0xa0, 0x81]].concat();
        for head in [&[0x30, 0x81, 0xd3][..], &[0x30, 0x82, 0x01, 0x13]] {
            assert_eq!(*secret(&der(head)).unwrap(), [5; 32]);
        }
        for wrong in [&[][..], &[0x30], &[0x31, 0x81, 0xd3], &der(&[0x30, 0x81, 0xd3])[..30]] {
            assert_eq!(secret(wrong), Err(NO_SECRET));
        }
    }
}
