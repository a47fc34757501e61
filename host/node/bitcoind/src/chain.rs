//! A mirrored header with the derived values of its chain.

use bitcoin::block::Header;
use bitcoin::consensus::{deserialize, serialize};
use bitcoin::hashes::Hash;
use bitcoin::{BlockHash, Work};
use outrigger_service::chain::Tip;

/// The number of blocks in the median time (BIP 113).
pub const MEDIAN_TIME_SPAN: usize = 11;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    pub header: Header,
    pub height: u32,
    /// The work of the chain up to and with this block.
    pub work: Work,
    /// The median time of this block and its ten ancestors, in Unix seconds.
    pub median_time: u32,
    /// The greatest time of this block and its ancestors, in Unix seconds.
    pub max_time: u32,
}

impl Entry {
    pub fn genesis(header: Header) -> Self {
        Self { header, height: 0, work: header.work(), median_time: header.time, max_time: header.time }
    }

    /// The entry of a header on top of this block; `None` if the header has another parent or no valid proof of work.
    /// `times` are the times of this block and its ancestors, the oldest first; the last ten are used.
    pub fn next(&self, header: Header, times: &[u32]) -> Option<Self> {
        if header.prev_blockhash != self.hash() || header.validate_pow(header.target()).is_err() {
            return None;
        }
        let mut times: Vec<u32> = times.iter().rev().take(MEDIAN_TIME_SPAN - 1).copied().chain([header.time]).collect();
        times.sort_unstable();
        let median_time = times.get(times.len() / 2).copied().unwrap_or(header.time);
        Some(Self {
            header,
            height: self.height.checked_add(1)?,
            work: self.work + header.work(),
            median_time,
            max_time: self.max_time.max(header.time),
        })
    }

    pub fn hash(&self) -> BlockHash {
        self.header.block_hash()
    }

    pub fn tip(&self) -> Tip {
        Tip { hash: self.hash(), height: self.height, time: self.header.time, median_time: self.median_time }
    }

    pub fn to_bytes(self) -> Vec<u8> {
        serialize(&(self.header, self.height, self.work.to_be_bytes(), self.median_time, self.max_time))
    }

    /// `None` if the row is malformed.
    pub fn from_bytes(row: &[u8]) -> Option<Self> {
        let (header, height, work, median_time, max_time) = deserialize(row).ok()?;
        Some(Self { header, height, work: Work::from_be_bytes(work), median_time, max_time })
    }
}

pub fn hash_from(bytes: &[u8]) -> Option<BlockHash> {
    BlockHash::from_slice(bytes).ok()
}

#[cfg(test)]
pub mod tests {
    use bitcoin::block::Version;
    use bitcoin::{CompactTarget, Network, TxMerkleNode};

    use super::*;

    /// A header on top of another, with the proof of work of regtest.
    pub fn mined(previous: BlockHash, time: u32, mark: u8) -> Header {
        let mut header = Header {
            version: Version::from_consensus(0x2000_0000),
            prev_blockhash: previous,
            merkle_root: TxMerkleNode::from_byte_array([mark; 32]),
            time,
            bits: CompactTarget::from_consensus(0x207f_ffff),
            nonce: 0,
        };
        while header.validate_pow(header.target()).is_err() {
            header.nonce += 1;
        }
        header
    }

    #[test]
    fn entries_follow_from_one_another_and_are_stored_whole() {
        let genesis = Entry::genesis(bitcoin::constants::genesis_block(Network::Regtest).header);
        let mut times = vec![genesis.header.time];
        let mut entry = genesis;
        for number in 1..=20_u32 {
            // Times may decrease a little.
            let time = genesis.header.time + number * 10 - (number % 3) * 15;
            entry = entry.next(mined(entry.hash(), time, 0), &times).unwrap();
            times.push(time);
            let from = times.len().saturating_sub(MEDIAN_TIME_SPAN);
            let mut last = times[from..].to_vec();
            last.sort_unstable();
            assert_eq!(entry.median_time, last[last.len() / 2]);
            assert_eq!(entry.max_time, *times.iter().max().unwrap());
            assert_eq!(Entry::from_bytes(&entry.to_bytes()), Some(entry));
        }
        assert_eq!((entry.height, entry.work.to_be_bytes()[31]), (20, 42), "two for each block of regtest");
        assert_eq!(genesis.next(mined(entry.hash(), 0, 0), &times), None, "it follows another");
        let mut header = mined(entry.hash(), 1, 0);
        while header.validate_pow(header.target()).is_ok() {
            header.nonce += 1;
        }
        assert_eq!(entry.next(header, &times), None, "it has no proof of work");
        assert_eq!(Entry::from_bytes(&entry.to_bytes()[1..]), None);
    }
}
