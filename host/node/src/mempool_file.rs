//! bitcoind's file of a mempool, `mempool.dat`, which savemempool writes and importmempool reads.
//!
//! The file is a version and, from version 2 on, a key of its own, which everything after it is combined with by XOR: by the byte of
//! the key at the position in the file. Then the transactions, each with the time at which it came and with what prioritisetransaction
//! added to its fee; then such additions to transactions that are not in the mempool; then the transactions that no peer is known to
//! have. All integers are little-endian.

use std::io::{self, Read, Write};
use std::sync::Arc;

use bitcoin::consensus::{Decodable, Encodable, encode, serialize};
use bitcoin::io::Write as _;
use bitcoin::{SignedAmount, Transaction, Txid, VarInt};

/// The version without a key, which is only read.
const VERSION_WITHOUT_KEY: u64 = 1;
/// The version with one.
const VERSION: u64 = 2;
/// The bytes of a key that is written.
pub const KEY_BYTES: usize = 8;
/// The bytes that the key is at most read with.
const MAX_KEY_BYTES: u64 = 4096;

/// Why a file is not read.
#[derive(Debug, thiserror::Error)]
pub enum MempoolFileError {
    /// It is of a version that is not known.
    #[error("a mempool file of version {0} is not known")]
    Version(u64),
    /// Its key is too long.
    #[error("the key of a mempool file has {0} bytes")]
    KeyLength(u64),
    /// It ends too early, or holds what is no transaction or no amount.
    #[error("the mempool file cannot be read on: {0}")]
    Contents(#[from] encode::Error),
}

type Result<T> = std::result::Result<T, MempoolFileError>;

/// A transaction of a mempool, as a file has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SavedTransaction {
    /// Its serialisation, with witness.
    pub raw: Arc<[u8]>,
    pub txid: Txid,
    /// When it came, in Unix seconds.
    pub time: i64,
    /// What prioritisetransaction added to its fee.
    pub fee_delta: SignedAmount,
}

/// What follows the transactions.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct SavedMarks {
    /// What was added to the fees of transactions that are not in the mempool, by their ids.
    pub fee_deltas: Vec<(Txid, SignedAmount)>,
    /// The transactions of the mempool that no peer is known to have, by their ids.
    pub unbroadcast: Vec<Txid>,
}

/// All that a file holds.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct SavedMempool {
    /// The transactions, parents before children.
    pub transactions: Vec<SavedTransaction>,
    /// What follows them.
    pub marks: SavedMarks,
}

impl SavedMempool {
    /// Writes a file with this key.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, key: [u8; KEY_BYTES], out: &mut impl Write) -> io::Result<()> {
        out.write_all(&VERSION.to_le_bytes())?;
        let mut prefix = serialize(&VarInt::from(KEY_BYTES));
        prefix.extend_from_slice(&key);
        out.write_all(&prefix)?;
        let position = size_of_val(&VERSION) + prefix.len();
        let mut out = Masked { inner: out, key: key.to_vec(), position };
        out.write_all(&(self.transactions.len() as u64).to_le_bytes())?;
        for one in &self.transactions {
            out.write_all(&one.raw)?;
            out.write_all(&one.time.to_le_bytes())?;
            out.write_all(&one.fee_delta.to_sat().to_le_bytes())?;
        }
        let SavedMarks { fee_deltas, unbroadcast } = &self.marks;
        VarInt::from(fee_deltas.len()).consensus_encode(&mut out)?;
        for (txid, delta) in fee_deltas {
            txid.consensus_encode(&mut out)?;
            out.write_all(&delta.to_sat().to_le_bytes())?;
        }
        VarInt::from(unbroadcast.len()).consensus_encode(&mut out)?;
        unbroadcast.iter().try_for_each(|txid| txid.consensus_encode(&mut out).map(drop))?;
        Ok(())
    }
}

/// A file that is read from its begin: what is before a damage is read.
pub struct MempoolReader<R> {
    source: Masked<R>,
    left: u64,
}

impl<R: Read> MempoolReader<R> {
    /// Reads the begin of a file.
    ///
    /// # Errors
    /// When it is no file of a mempool.
    pub fn open(source: R) -> Result<Self> {
        let mut source = Masked { inner: source, key: Vec::new(), position: 0 };
        match u64::consensus_decode(&mut source)? {
            VERSION_WITHOUT_KEY => {}
            VERSION => {
                let length = VarInt::consensus_decode(&mut source)?.0;
                if length > MAX_KEY_BYTES {
                    return Err(MempoolFileError::KeyLength(length));
                }
                let key: std::result::Result<Vec<u8>, _> =
                    (0..length).map(|_| u8::consensus_decode(&mut source)).collect();
                source.key = key?;
            }
            other => return Err(MempoolFileError::Version(other)),
        }
        let left = u64::consensus_decode(&mut source)?;
        Ok(Self { source, left })
    }

    /// The next transaction; none after the last.
    ///
    /// # Errors
    /// When the file cannot be read on.
    pub fn transaction(&mut self) -> Result<Option<SavedTransaction>> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
        self.left = left;
        let transaction = Transaction::consensus_decode_from_finite_reader(&mut self.source)?;
        let time = i64::consensus_decode(&mut self.source)?;
        let fee_delta = self.amount()?;
        let (raw, txid) = (serialize(&transaction).into(), transaction.compute_txid());
        Ok(Some(SavedTransaction { raw, txid, time, fee_delta }))
    }

    /// What follows the transactions, of which all have been read.
    ///
    /// # Errors
    /// When the file cannot be read on.
    pub fn marks(mut self) -> Result<SavedMarks> {
        let mut marks = SavedMarks::default();
        for _ in 0..VarInt::consensus_decode(&mut self.source)?.0 {
            let txid = Txid::consensus_decode(&mut self.source)?;
            marks.fee_deltas.push((txid, self.amount()?));
        }
        for _ in 0..VarInt::consensus_decode(&mut self.source)?.0 {
            marks.unbroadcast.push(Txid::consensus_decode(&mut self.source)?);
        }
        Ok(marks)
    }

    fn amount(&mut self) -> Result<SignedAmount> {
        Ok(SignedAmount::from_sat(i64::consensus_decode(&mut self.source)?))
    }
}

/// What is read or written, combined with the key.
struct Masked<T> {
    inner: T,
    key: Vec<u8>,
    /// How many bytes came before.
    position: usize,
}

impl<T> Masked<T> {
    fn mask(&mut self, bytes: &mut [u8]) {
        if !self.key.is_empty() {
            let skipped = self.position % self.key.len();
            bytes.iter_mut().zip(self.key.iter().cycle().skip(skipped)).for_each(|(byte, key)| *byte ^= key);
        }
        self.position = self.position.wrapping_add(bytes.len());
    }
}

impl<R: Read> bitcoin::io::Read for Masked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> bitcoin::io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.mask(buffer.get_mut(..read).unwrap_or_default());
        Ok(read)
    }
}

impl<W: Write> bitcoin::io::Write for Masked<W> {
    fn write(&mut self, bytes: &[u8]) -> bitcoin::io::Result<usize> {
        let mut masked = bytes.to_vec();
        self.mask(&mut masked);
        self.inner.write_all(&masked)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> bitcoin::io::Result<()> {
        Ok(self.inner.flush()?)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]
mod tests {
    use bitcoin::Network;
    use bitcoin::constants::genesis_block;
    use bitcoin::hashes::Hash;

    use super::*;

    fn saved() -> SavedMempool {
        let tx = genesis_block(Network::Regtest).txdata.swap_remove(0);
        let one = SavedTransaction {
            raw: serialize(&tx).into(),
            txid: tx.compute_txid(),
            time: 1_700_000_000,
            fee_delta: SignedAmount::from_sat(-7),
        };
        let marks = SavedMarks {
            fee_deltas: vec![(Txid::from_byte_array([3; 32]), SignedAmount::from_sat(9))],
            unbroadcast: vec![one.txid],
        };
        SavedMempool { transactions: vec![one.clone(), one], marks }
    }

    fn written(key: [u8; KEY_BYTES]) -> Vec<u8> {
        let mut bytes = Vec::new();
        saved().write(key, &mut bytes).unwrap();
        bytes
    }

    /// What is read of a file, and whether all of it was.
    fn read(bytes: &[u8]) -> (SavedMempool, Result<()>) {
        let mut found = SavedMempool::default();
        let mut all = || {
            let mut reader = MempoolReader::open(bytes)?;
            while let Some(one) = reader.transaction()? {
                found.transactions.push(one);
            }
            found.marks = reader.marks()?;
            Ok(())
        };
        let outcome = all();
        (found, outcome)
    }

    #[test]
    fn mempool_file_is_read_as_it_was_written_with_any_key() {
        for key in [[0; KEY_BYTES], [1, 2, 3, 4, 5, 6, 7, 8], [0xff; KEY_BYTES]] {
            let (found, outcome) = read(&written(key));
            outcome.unwrap();
            assert_eq!(found, saved());
        }
    }

    #[test]
    fn mempool_file_of_the_first_version_has_no_key() {
        let plain = written([0; KEY_BYTES]);
        let first = [&VERSION_WITHOUT_KEY.to_le_bytes()[..], &plain[8 + 1 + KEY_BYTES..]].concat();
        assert_eq!(read(&first).0, saved());
        let third = [&3_u64.to_le_bytes()[..], &plain[8..]].concat();
        assert!(matches!(read(&third).1, Err(MempoolFileError::Version(3))));
        let long = [&VERSION.to_le_bytes()[..], &[0xfe, 0xff, 0xff, 0xff, 0xff], &[0; 90]].concat();
        assert!(matches!(read(&long).1, Err(MempoolFileError::KeyLength(0xffff_ffff))));
    }

    #[test]
    fn mempool_file_that_is_cut_off_gives_what_is_whole() {
        let whole = written([9; KEY_BYTES]);
        let one = saved().transactions[0].raw.len() + 16;
        for end in 0..whole.len() {
            let (found, outcome) = read(&whole[..end]);
            assert!(outcome.is_err(), "cut at {end}");
            assert_eq!(found.transactions.len(), (end.saturating_sub(25) / one).min(2), "cut at {end}");
        }
    }
}
