//! The records of a wallet's file, as Bitcoin Core's `wallet/walletdb.cpp` writes them.
//!
//! A record's key starts with its kind as a text. Integers are little-endian. Texts and lists are prefixed by their
//! length as a compact size.

use bitcoin::consensus::encode;
use bitcoin::hashes::Hash;
use bitcoin::{OutPoint, Transaction, Txid, VarInt};
use zeroize::Zeroizing;

/// In bytes.
const SECRET_LEN: usize = 32;
/// The bytes before the private key in its DER form (SEC 1, C.4): the version, and the header of an octet string of 32
/// bytes.
const BEFORE_SECRET: [u8; 5] = [0x02, 0x01, 0x01, 0x04, 0x20];

/// The block hash in the record of an abandoned transaction: the number 1.
const ABANDONED: [u8; 32] = {
    let mut hash = [0; 32];
    hash[0] = 1;
    hash
};

/// A hash of the descriptor's text.
pub type DescriptorId = [u8; 32];

#[derive(PartialEq, Eq, Debug)]
pub enum Record {
    /// `WalletFlags`.
    Flags(u64),
    /// A descriptor, in its public form.
    Descriptor(DescriptorRecord),
    /// A private key of a descriptor.
    Key {
        descriptor: DescriptorId,
        public: Vec<u8>,
        secret: Zeroizing<[u8; SECRET_LEN]>,
    },
    EncryptedKey {
        descriptor: DescriptorId,
        public: Vec<u8>,
        sealed: Vec<u8>,
    },
    /// The key that encrypts the private keys.
    MasterKey(MasterKey),
    /// A descriptor that provides new addresses.
    Active {
        descriptor: DescriptorId,
        is_change: bool,
    },
    Label {
        address: String,
        label: String,
    },
    /// A transaction, with its comments and the time of its receipt, in Unix seconds.
    Transaction {
        transaction: Box<Transaction>,
        state: State,
        comment: String,
        to: String,
        received: u32,
    },
    Locked(OutPoint),
    /// An address whose coins were spent while the wallet avoided reuse.
    Used {
        address: String,
    },
    Other,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    Confirmed,
    Pending,
    /// Abandoned, or in conflict with a block.
    Dead,
}

#[derive(PartialEq, Eq, Debug)]
pub struct DescriptorRecord {
    pub id: DescriptorId,
    pub text: String,
    /// In Unix seconds.
    pub timestamp: u64,
    pub next_index: u32,
    /// The first index in use, and the end (exclusive).
    pub range: (u32, u32),
}

/// The key that encrypts the private keys, itself encrypted with a passphrase (`CMasterKey`).
#[derive(PartialEq, Eq, Debug)]
pub struct MasterKey {
    pub sealed: Vec<u8>,
    pub salt: Vec<u8>,
    pub method: u32,
    pub iterations: u32,
}

/// Why a record is malformed.
const SHORT: &str = "it is truncated";
const NOT_UTF8: &str = "a text is not UTF-8";
const OUT_OF_RANGE: &str = "a number is out of its range";
const NO_SECRET: &str = "it is not a private key";

type Result<T> = std::result::Result<T, &'static str>;

/// The kind of a record, for messages; empty if it has none.
pub fn kind(key: &[u8]) -> String {
    Reader(key).text().unwrap_or_default()
}

/// Parses a record. Fails if a record of a known kind is malformed.
pub fn read(key: &[u8], value: &[u8]) -> Result<Record> {
    let (mut key, mut value) = (Reader(key), Reader(value));
    Ok(match key.text()?.as_str() {
        "flags" => Record::Flags(u64::from_le_bytes(value.array()?)),
        "walletdescriptor" => Record::Descriptor(DescriptorRecord {
            id: key.array()?,
            text: value.text()?,
            timestamp: u64::from_le_bytes(value.array()?),
            next_index: value.index()?,
            range: (value.index()?, value.index()?),
        }),
        "walletdescriptorkey" => {
            Record::Key { descriptor: key.array()?, public: key.bytes()?.to_vec(), secret: secret(value.bytes()?)? }
        }
        "walletdescriptorckey" => Record::EncryptedKey {
            descriptor: key.array()?,
            public: key.bytes()?.to_vec(),
            sealed: value.bytes()?.to_vec(),
        },
        "mkey" => Record::MasterKey(MasterKey {
            sealed: value.bytes()?.to_vec(),
            salt: value.bytes()?.to_vec(),
            method: value.u32()?,
            iterations: value.u32()?,
        }),
        "activeexternalspk" => Record::Active { descriptor: value.array()?, is_change: false },
        "activeinternalspk" => Record::Active { descriptor: value.array()?, is_change: true },
        "name" => Record::Label { address: key.text()?, label: value.text()? },
        "tx" => transaction(&mut value)?,
        "destdata" => match (key.text()?, key.text()?.as_str()) {
            (address, "used") => Record::Used { address },
            _ => Record::Other,
        },
        "lockedutxo" => Record::Locked(OutPoint { txid: Txid::from_byte_array(key.array()?), vout: key.u32()? }),
        _ => Record::Other,
    })
}

/// `CWalletTx`.
fn transaction(value: &mut Reader<'_>) -> Result<Record> {
    let (transaction, length): (Transaction, usize) =
        encode::deserialize_partial(value.0).map_err(|_| "it is not a transaction")?;
    value.take(length)?;
    let block: [u8; 32] = value.array()?;
    // The Merkle branch, which is obsolete.
    for _ in 0..value.count()? {
        value.take(32)?;
    }
    let position = value.u32()?.cast_signed();
    let state = match (position, block) {
        (0, block) if block == [0; 32] => State::Pending,
        (0.., _) if block != ABANDONED => State::Confirmed,
        _ => State::Dead,
    };
    // Previous transactions. No release with descriptor wallets writes them.
    if value.count()? != 0 {
        return Err(OUT_OF_RANGE);
    }
    let (mut comment, mut to) = (String::new(), String::new());
    for _ in 0..value.count()? {
        match (value.text()?.as_str(), value.text()?) {
            ("comment", text) => comment = text,
            ("to", text) => to = text,
            _ => {}
        }
    }
    // `vOrderForm`.
    for _ in 0..value.count()? {
        value.bytes()?;
        value.bytes()?;
    }
    // `fTimeReceivedIsTxTime`.
    value.u32()?;
    let received = value.u32()?;
    Ok(Record::Transaction { transaction: Box::new(transaction), state, comment, to, received })
}

/// The private key in a DER encoding.
fn secret(der: &[u8]) -> Result<Zeroizing<[u8; SECRET_LEN]>> {
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
struct Reader<'r>(&'r [u8]);

impl<'r> Reader<'r> {
    fn take(&mut self, length: usize) -> Result<&'r [u8]> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(SHORT)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(SHORT)?;
        self.0 = rest;
        Ok(*taken)
    }

    fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    /// An index, stored as a signed number.
    fn index(&mut self) -> Result<u32> {
        u32::try_from(i32::from_le_bytes(self.array()?)).map_err(|_| OUT_OF_RANGE)
    }

    /// A compact size.
    fn count(&mut self) -> Result<u64> {
        let (VarInt(count), length) = encode::deserialize_partial(self.0).map_err(|_| SHORT)?;
        self.take(length)?;
        Ok(count)
    }

    fn bytes(&mut self) -> Result<&'r [u8]> {
        let length = self.count()?;
        self.take(usize::try_from(length).map_err(|_| SHORT)?)
    }

    fn text(&mut self) -> Result<String> {
        String::from_utf8(self.bytes()?.to_vec()).map_err(|_| NOT_UTF8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Vec<u8> {
        [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat()
    }

    #[test]
    fn a_descriptor_is_read_and_a_short_one_refused() {
        let key = [text("walletdescriptor"), vec![7; 32]].concat();
        let value = [
            text("raw(51)#abcdefgh"),
            9_u64.to_le_bytes().to_vec(),
            3_i32.to_le_bytes().to_vec(),
            0_i32.to_le_bytes().to_vec(),
            1000_i32.to_le_bytes().to_vec(),
        ]
        .concat();
        let expected = DescriptorRecord {
            id: [7; 32],
            text: "raw(51)#abcdefgh".to_owned(),
            timestamp: 9,
            next_index: 3,
            range: (0, 1000),
        };
        assert_eq!(read(&key, &value), Ok(Record::Descriptor(expected)));
        for length in 0..value.len() {
            assert_eq!(read(&key, &value[..length]), Err(SHORT), "{length}");
        }
        let negative = [&value[..value.len() - 4], &(-1_i32).to_le_bytes()].concat();
        assert_eq!(read(&key, &negative), Err(OUT_OF_RANGE));
    }

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

    #[test]
    fn a_record_of_another_kind_is_skipped_and_a_record_without_a_kind_refused() {
        assert_eq!(read(&text("bestblock"), &[]), Ok(Record::Other));
        assert_eq!(read(&[], &[]), Err(SHORT));
        assert_eq!(read(&[2, 0xff, 0xff], &[]), Err(NOT_UTF8));
    }
}
