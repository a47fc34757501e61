//! Reads the parts of a PSBT, with bitcoind's messages.

use std::collections::{BTreeMap, BTreeSet};

use bitcoin::consensus::encode::{self, Decodable};
use bitcoin::secp256k1::PublicKey;
use bitcoin::{Amount, ScriptBuf, Transaction, TxOut, Witness};
use outrigger_standard::decode::{self, Form};

use crate::{Bytes, Fields, MuSig2Key, MuSig2Signer, Origin, PreviousTransaction, Proprietary, TaprootOrigin};

/// The type of proprietary fields.
pub const PROPRIETARY: u64 = 0xfc;

/// The greatest length or type (`MAX_SIZE` of bitcoind).
const MAX_SIZE: u64 = 0x0200_0000;
/// Why a PSBT is invalid, in bitcoind's words.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("TX decode failed {0}")]
pub struct DecodeError(pub(crate) String);

/// The suffix of bitcoind's messages for exceptions while reading.
const STREAM: &str = ": iostream error";

pub fn error(text: &str) -> DecodeError {
    DecodeError(format!("{text}{STREAM}"))
}

pub type Result<T> = std::result::Result<T, DecodeError>;

pub fn ensure(holds: bool, otherwise: &str) -> Result<()> {
    if holds { Ok(()) } else { Err(error(otherwise)) }
}

/// Reads the key data of a pubnonce or partial signature: participant key, aggregate key, leaf hash.
pub fn musig2_signer(of: &str, key: &[u8]) -> Result<MuSig2Signer> {
    const KEY: usize = 33;
    const LEAF: usize = 32;
    let size = format!("Input musig2 {of} key is not expected size of 67 or 99 bytes");
    ensure(key.len() == 2 * KEY || key.len() == 2 * KEY + LEAF, &size)?;
    let mut parts = Reader::new(key, "SpanReader");
    let (participant, aggregate) = (parts.take(KEY)?, parts.take(KEY)?);
    // bitcoind checks the aggregate key first.
    let aggregate = musig2_key(aggregate, "musig2 aggregate")?;
    let participant = musig2_key(participant, "musig2 participant")?;
    // All zeros mean the key path, without a leaf.
    let leaf = if parts.is_empty() { None } else { Some(parts.array()?).filter(|leaf| *leaf != [0; LEAF]) };
    Ok((aggregate, leaf, participant))
}

/// The identifier and subtype of a proprietary field's key.
pub fn proprietary(key: &[u8]) -> Result<Proprietary<'_>> {
    let mut reader = Reader::new(key, "SpanReader");
    reader.number()?;
    Ok((reader.bytes()?, reader.number()?))
}

/// Checks that a public key has a valid length and is on the curve.
pub fn public_key<'a>(bytes: &'a [u8], of: &str) -> Result<&'a [u8]> {
    let size = format!("Size of key was not the expected size for the type {of}");
    ensure(matches!(bytes.len(), 33 | 65), &size)?;
    ensure(PublicKey::from_slice(bytes).is_ok(), "Invalid pubkey")?;
    Ok(bytes)
}

/// A compressed public key on the curve.
fn musig2_key(bytes: &[u8], of: &str) -> Result<MuSig2Key> {
    let key = bytes.try_into().ok().filter(|_| PublicKey::from_slice(bytes).is_ok());
    key.ok_or_else(|| error(&format!("{of} pubkey is invalid")))
}

/// The bytes left to read.
pub struct Reader<'a> {
    rest: &'a [u8],
    /// The name of bitcoind's stream class, for errors.
    name: &'static str,
    /// The last previous transaction, and its bytes with their length.
    previous: Option<(&'a [u8], PreviousTransaction)>,
}

impl<'a> Reader<'a> {
    pub fn new(rest: &'a [u8], name: &'static str) -> Self {
        Self { rest, name, previous: None }
    }

    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    fn end(&self) -> DecodeError {
        error(&format!("{}::read(): end of data", self.name))
    }

    pub fn take(&mut self, length: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or_else(|| self.end())?;
        self.rest = rest;
        Ok(taken)
    }

    pub fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or_else(|| self.end())?;
        self.rest = rest;
        Ok(*taken)
    }

    /// Reads a minimal CompactSize.
    pub fn number(&mut self) -> Result<u64> {
        let [first] = self.array()?;
        let (number, least) = match first {
            0xfd => (u16::from_le_bytes(self.array()?).into(), 0xfd),
            0xfe => (u32::from_le_bytes(self.array()?).into(), 0x1_0000),
            0xff => (u64::from_le_bytes(self.array()?), 0x1_0000_0000),
            byte => (byte.into(), 0),
        };
        ensure(number >= least, "non-canonical ReadCompactSize()")?;
        ensure(number <= MAX_SIZE, "ReadCompactSize(): size too large")?;
        Ok(number)
    }

    pub fn length(&mut self) -> Result<usize> {
        Ok(usize::try_from(self.number()?).unwrap_or(usize::MAX))
    }

    /// Reads bytes with a length prefix.
    pub fn bytes(&mut self) -> Result<&'a [u8]> {
        let length = self.length()?;
        self.take(length)
    }

    /// Reads a value whose size must equal its length prefix.
    pub fn sized<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let length = self.length()?;
        let before = self.rest.len();
        let value = read(self)?;
        ensure(before - self.rest.len() == length, "Size of value was not the stated size")?;
        Ok(value)
    }

    /// Reads a value with the library's decoder.
    fn decoded<T>(&mut self, read: impl FnOnce(&mut &'a [u8]) -> std::result::Result<T, encode::Error>) -> Result<T> {
        read(&mut self.rest).map_err(|failure| match failure {
            encode::Error::NonMinimalVarInt => error("non-canonical ReadCompactSize()"),
            encode::Error::OversizedVectorAllocation { .. } => error("ReadCompactSize(): size too large"),
            encode::Error::UnsupportedSegwitFlag(_) => error("Unknown transaction optional data"),
            encode::Error::ParseFailed(_) => error("Superfluous witness record"),
            _ => self.end(),
        })
    }

    /// Reads an input's previous transaction. Shares the last one if the bytes are equal.
    pub fn previous_transaction(&mut self) -> Result<PreviousTransaction> {
        let begin = self.rest;
        if let Some((bytes, previous)) = &self.previous
            && let Some(rest) = begin.strip_prefix(*bytes)
        {
            self.rest = rest;
            return Ok(previous.clone());
        }
        let transaction = PreviousTransaction::new(self.sized(|reader| reader.transaction(Form::Extended))?);
        let (bytes, _) = begin.split_at(begin.len() - self.rest.len());
        self.previous = Some((bytes, transaction.clone()));
        Ok(transaction)
    }

    pub fn transaction(&mut self, form: Form) -> Result<Transaction> {
        self.decoded(|rest| decode::read(rest, form))
    }

    pub fn output(&mut self) -> Result<TxOut> {
        let value = Amount::from_sat(u64::from_le_bytes(self.array()?));
        Ok(TxOut { value, script_pubkey: ScriptBuf::from_bytes(self.bytes()?.to_vec()) })
    }

    pub fn witness(&mut self) -> Result<Witness> {
        self.decoded(Witness::consensus_decode)
    }

    /// Reads a Schnorr signature with or without hash type.
    pub fn schnorr(&mut self, path: &str) -> Result<Bytes> {
        let signature = self.bytes()?;
        ensure(signature.len() >= 64, &format!("Input Taproot {path} path signature is shorter than 64 bytes"))?;
        ensure(signature.len() <= 65, &format!("Input Taproot {path} path signature is longer than 65 bytes"))?;
        Ok(signature.to_vec())
    }

    fn origin(&mut self, length: usize) -> Result<Origin> {
        ensure(length > 0 && length.is_multiple_of(4), "Invalid length for HD key path")?;
        let fingerprint = self.array()?;
        let steps = (1..length / 4).map(|_| self.array().map(u32::from_le_bytes));
        Ok(Origin { fingerprint, path: steps.collect::<Result<_>>()? })
    }

    pub fn origin_field(&mut self) -> Result<Origin> {
        let length = self.length()?;
        self.origin(length)
    }

    pub fn origins(&mut self, key: &[u8], origins: &mut BTreeMap<Bytes, Origin>) -> Result<()> {
        let key = public_key(key, "BIP32 keypath")?;
        let origin = self.origin_field()?;
        origins.insert(key.to_vec(), origin);
        Ok(())
    }

    pub fn taproot_origins(
        &mut self,
        of: &str,
        key: &[u8],
        origins: &mut BTreeMap<[u8; 32], TaprootOrigin>,
    ) -> Result<()> {
        let key = Reader::new(key, "SpanReader").array()?;
        let length = self.length()?;
        let before = self.rest.len();
        let count = self.number()?;
        let leaves = (0..count).map(|_| self.array()).collect::<Result<BTreeSet<_>>>()?;
        let origin = length.checked_sub(before - self.rest.len());
        let origin = origin.ok_or_else(|| error(&format!("{of} Taproot BIP32 keypath has an invalid length")))?;
        origins.insert(key, (leaves, self.origin(origin)?));
        Ok(())
    }

    /// Reads the participants of an aggregate key.
    pub fn musig2_participants(
        &mut self,
        of: &str,
        key: &[u8],
        participants: &mut BTreeMap<MuSig2Key, Vec<MuSig2Key>>,
    ) -> Result<()> {
        let aggregate = musig2_key(key, &format!("{of} musig2 aggregate"))?;
        let (keys, rest) = self.bytes()?.as_chunks::<33>();
        let keys = keys.iter().map(|key| musig2_key(key, &format!("{of} musig2 participant")));
        let keys = keys.collect::<Result<_>>()?;
        ensure(rest.is_empty(), &format!("{of} musig2 participants pubkeys value size is not a multiple of 33"))?;
        participants.insert(aggregate, keys);
        Ok(())
    }

    /// Reads a field of a proprietary or unknown type.
    pub fn other(&mut self, kind: u64, key: &[u8], private: &mut Fields, unknown: &mut Fields) -> Result<()> {
        let fields = if kind == PROPRIETARY {
            proprietary(key)?;
            private
        } else {
            unknown
        };
        fields.insert(key.to_vec(), self.bytes()?.to_vec());
        Ok(())
    }

    /// Reads pairs up to a separator. Returns whether there was a separator. `value` gets the type and key, and reads the value.
    pub fn pairs(&mut self, mut value: impl FnMut(&mut Self, u64, &[u8]) -> Result<()>) -> Result<bool> {
        while !self.is_empty() {
            let key = self.bytes()?;
            if key.is_empty() {
                return Ok(true);
            }
            let kind = Reader::new(key, "SpanReader").number()?;
            value(self, kind, key)?;
        }
        Ok(false)
    }
}
