//! The layouts of the rows. Integers are little-endian and unaligned, since LMDB aligns nothing.
//!
//! Keys: the hash of a block or transaction in internal byte order; a height in big-endian order, so that the table is
//! ordered by height; an outpoint's txid and its index in big-endian order.

use bitcoin::consensus::{deserialize, serialize};
use bitcoin::hashes::Hash;
use bitcoin::{Amount, BlockHash, OutPoint, ScriptBuf, TxOut, Txid, Work, block::Header};
use outrigger_service::chain::{BlockState, Coin, Tip};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

pub const OUTPOINT_KEY: usize = 36;

pub fn outpoint_key(outpoint: &OutPoint) -> [u8; OUTPOINT_KEY] {
    let mut key = [0; OUTPOINT_KEY];
    let (txid, vout) = key.split_at_mut(32);
    txid.copy_from_slice(outpoint.txid.as_byte_array());
    vout.copy_from_slice(&outpoint.vout.to_be_bytes());
    key
}

pub fn read_outpoint(key: &[u8]) -> Option<OutPoint> {
    let (txid, vout) = key.split_first_chunk::<32>()?;
    Some(OutPoint::new(Txid::from_byte_array(*txid), u32::from_be_bytes(vout.try_into().ok()?)))
}

/// How far a block has been validated, whether or not it has failed since.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Validity {
    /// Only its header is known.
    Header,
    /// The block is stored and was never connected.
    Stored,
    /// The block was connected at least once, so it is valid.
    Connected,
}

/// Whether a block is excluded from the best chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failure {
    None,
    /// The block breaks a rule, or was invalidated.
    Own,
    /// An ancestor failed.
    Inherited,
}

#[derive(Clone, Copy, Debug)]
pub struct BlockEntry {
    pub header: Header,
    pub height: u32,
    /// The chainwork up to and including this block.
    pub work: Work,
    /// The median time of this block and its ten ancestors, in Unix seconds.
    pub median_time: u32,
    /// The number of transactions; 0 while only the header is known.
    pub transactions: u32,
    /// The serialised size in bytes; 0 while only the header is known.
    pub size: u32,
    /// The order of arrival: the block with the lower one is preferred. Negative for a precious block.
    pub sequence: i64,
    pub validity: Validity,
    pub failure: Failure,
}

impl BlockEntry {
    pub fn tip(&self, hash: BlockHash) -> Tip {
        Tip { hash, height: self.height, time: self.header.time, median_time: self.median_time }
    }

    pub fn state(&self) -> BlockState {
        match (self.failure, self.validity) {
            (Failure::Own | Failure::Inherited, _) => BlockState::Failed,
            (Failure::None, Validity::Header) => BlockState::HeaderOnly,
            (Failure::None, Validity::Stored) => BlockState::Stored,
            (Failure::None, Validity::Connected) => BlockState::Valid,
        }
    }

    pub fn to_row(self) -> Vec<u8> {
        let numbers = (self.height, self.median_time, self.transactions, self.size, self.sequence);
        serialize(&(self.header, self.work.to_be_bytes(), numbers, self.validity as u8, self.failure as u8))
    }

    pub fn from_row(bytes: &[u8]) -> Option<Self> {
        let (header, work, numbers, validity, failure): (_, _, _, u8, u8) = deserialize(bytes).ok()?;
        let (height, median_time, transactions, size, sequence) = numbers;
        let validity = match validity {
            0 => Validity::Header,
            1 => Validity::Stored,
            2 => Validity::Connected,
            _ => return None,
        };
        let failure = match failure {
            0 => Failure::None,
            1 => Failure::Own,
            2 => Failure::Inherited,
            _ => return None,
        };
        let work = Work::from_be_bytes(work);
        Some(Self { header, height, work, median_time, transactions, size, sequence, validity, failure })
    }
}

/// The fixed part of a coin's row; the script follows it.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Debug)]
#[repr(C)]
struct CoinHead {
    value: U64,
    height: U32,
    coinbase: u8,
}

pub fn push_coin(row: &mut Vec<u8>, output: &TxOut, height: u32, coinbase: bool) {
    let head =
        CoinHead { value: U64::new(output.value.to_sat()), height: U32::new(height), coinbase: u8::from(coinbase) };
    row.extend_from_slice(head.as_bytes());
    row.extend_from_slice(output.script_pubkey.as_bytes());
}

pub fn read_coin(bytes: &[u8]) -> Option<Coin> {
    let (head, script) = CoinHead::ref_from_prefix(bytes).ok()?;
    let output =
        TxOut { value: Amount::from_sat(head.value.get()), script_pubkey: ScriptBuf::from_bytes(script.to_vec()) };
    Some(Coin { output, height: head.height.get(), coinbase: head.coinbase != 0 })
}

pub fn coin_script(bytes: &[u8]) -> Option<&[u8]> {
    bytes.get(size_of::<CoinHead>()..)
}

/// The position of a confirmed transaction.
pub struct TxRow {
    pub block: BlockHash,
    pub index: u32,
    /// In the block's bytes.
    pub offset: u32,
    pub len: u32,
}

impl TxRow {
    pub fn to_row(&self) -> Vec<u8> {
        serialize(&(self.block, self.index, self.offset, self.len))
    }

    pub fn from_row(bytes: &[u8]) -> Option<Self> {
        let (block, index, offset, len) = deserialize(bytes).ok()?;
        Some(Self { block, index, offset, len })
    }

    /// The transaction's bytes, from those of its block; `None` if the block is too short.
    pub fn slice<'a>(&self, block: &'a [u8]) -> Option<&'a [u8]> {
        let start = self.offset as usize;
        block.get(start..start.checked_add(self.len as usize)?)
    }
}

#[cfg(test)]
mod tests {
    use bitcoin::{Network, constants::genesis_block};

    use super::*;

    #[test]
    fn block_rows_round_trip() {
        let header = genesis_block(Network::Regtest).header;
        for (validity, failure) in [(Validity::Header, Failure::Inherited), (Validity::Connected, Failure::None)] {
            let entry = BlockEntry {
                header,
                height: 7,
                work: header.work(),
                median_time: 9,
                transactions: 3,
                size: 1_000_000,
                sequence: -4,
                validity,
                failure,
            };
            let row = entry.to_row();
            let read = BlockEntry::from_row(&row).unwrap();
            assert_eq!(format!("{read:?}"), format!("{entry:?}"));
            assert!(BlockEntry::from_row(&row[1..]).is_none());
        }
    }

    #[test]
    fn coin_rows_round_trip() {
        for script in [vec![], vec![0x51; 9_999]] {
            let output = TxOut { value: Amount::from_sat(u64::MAX), script_pubkey: ScriptBuf::from_bytes(script) };
            let coin = Coin { output, height: u32::MAX, coinbase: true };
            let mut row = Vec::new();
            push_coin(&mut row, &coin.output, coin.height, coin.coinbase);
            assert_eq!(coin_script(&row), Some(coin.output.script_pubkey.as_bytes()));
            assert_eq!(read_coin(&row), Some(coin));
        }
        assert_eq!((read_coin(&[0; 12]), coin_script(&[0; 12])), (None, None));
    }

    #[test]
    fn outpoints_of_a_transaction_are_ordered_by_index() {
        let key = |vout| outpoint_key(&OutPoint { txid: Txid::all_zeros(), vout });
        assert_eq!(read_outpoint(&key(256)), Some(OutPoint::new(Txid::all_zeros(), 256)));
        assert_eq!((read_outpoint(&[0; 35]), read_outpoint(&[0; 37])), (None, None));
        assert!(key(1) < key(256));
    }
}
