//! The records of the mempool's journal: transactions that entered, transactions that left, and fee deltas.
//!
//! A record is a marker, the length of its content, the content's checksum, and the content, which begins with a tag. After a
//! damaged record, reading goes on at the next marker, so that no other record is lost.

use std::collections::{BTreeMap, HashMap};

use bitcoin::consensus::deserialize;
use bitcoin::hashes::{Hash, sha256d};
use bitcoin::{SignedAmount, Transaction, Txid};
use outrigger_service::wire::{self, Blob, Reader, Wire, WireError};

use crate::mempool::entry::{Entry, EntryTime, Offer};

/// The first bytes of a journal: its kind, and the version of its records.
pub const HEADER: [u8; 8] = *b"ORMPOOL1";
/// The first bytes of a record.
const MARKER: [u8; 4] = [0xf0, b'm', b'p', 0x0f];
/// The bytes before a record's content.
const HEAD: usize = 12;
/// The most bytes of a record's content: more than any transaction has.
const MAX_CONTENT: usize = 8 << 20;

mod tag {
    pub const ADDED: u8 = 0;
    pub const REMOVED: u8 = 1;
    pub const PRIORITISED: u8 = 2;
}

/// Encoded records, to be written to the journal.
#[derive(Default)]
pub struct Records(Vec<u8>);

impl Records {
    /// Records that a transaction entered the mempool.
    pub fn added(&mut self, entry: &Entry) {
        self.kept(&entry.raw, entry.entry_time());
    }

    /// As [`Records::added`], by the transaction's bytes and entry time.
    pub fn kept(&mut self, raw: &[u8], entry_time: EntryTime) {
        let EntryTime { time, height, unbroadcast } = entry_time;
        let mut content = Vec::with_capacity(raw.len() + 18);
        content.push(tag::ADDED);
        content.extend_from_slice(&time.to_le_bytes());
        content.extend_from_slice(&height.to_le_bytes());
        content.extend_from_slice(&u32::try_from(raw.len()).unwrap_or(u32::MAX).to_le_bytes());
        content.extend_from_slice(raw);
        content.push(u8::from(unbroadcast));
        self.push(&content);
    }

    /// Records that a transaction left the mempool.
    pub fn removed(&mut self, txid: &Txid) {
        self.push(&wire::to_bytes(&(tag::REMOVED, *txid)));
    }

    /// Records a transaction's fee delta, the sum of all prioritisetransaction calls.
    pub fn prioritised(&mut self, txid: &Txid, delta: SignedAmount) {
        self.push(&wire::to_bytes(&(tag::PRIORITISED, *txid, delta)));
    }

    fn push(&mut self, content: &[u8]) {
        self.0.extend_from_slice(&MARKER);
        self.0.extend_from_slice(&u32::try_from(content.len()).unwrap_or(u32::MAX).to_le_bytes());
        self.0.extend_from_slice(&checksum(content));
        self.0.extend_from_slice(content);
    }

    /// The encoded bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

fn checksum(content: &[u8]) -> [u8; 4] {
    let [a, b, c, d, ..] = sha256d::Hash::hash(content).to_byte_array();
    [a, b, c, d]
}

/// A transaction that was in the mempool.
pub struct Kept {
    /// The transaction.
    pub offer: Offer,
    /// When it entered, and whether it was broadcast.
    pub entry_time: EntryTime,
}

/// The contents of a journal.
#[derive(Default)]
pub struct Stored {
    /// The transactions that entered and did not leave, in the order in which they entered.
    pub transactions: Vec<Kept>,
    /// The fee deltas.
    pub deltas: BTreeMap<Txid, SignedAmount>,
    /// The number of bytes that are not valid records.
    pub damaged: usize,
}

impl Stored {
    /// Reads a journal.
    pub fn read(bytes: &[u8]) -> Self {
        let Some(mut rest) = bytes.strip_prefix(&HEADER) else {
            return Self { damaged: bytes.len(), ..Self::default() };
        };
        let mut replay = Replay::default();
        while !rest.is_empty() {
            if let Some((content, after)) = split_record(rest)
                && replay.take(content).is_ok()
            {
                rest = after;
                continue;
            }
            let next = rest.get(1..).and_then(|rest| rest.windows(MARKER.len()).position(|bytes| bytes == MARKER));
            let skipped = next.map_or(rest.len(), |next| next + 1);
            replay.damaged += skipped;
            rest = rest.get(skipped..).unwrap_or_default();
        }
        replay.end()
    }
}

/// The content of the record that `bytes` begin with, and what follows it.
fn split_record(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (head, rest) = bytes.split_at_checked(HEAD)?;
    let (marker, head) = head.split_first_chunk::<4>()?;
    let (len, check) = head.split_first_chunk::<4>()?;
    let len = u32::from_le_bytes(*len) as usize;
    if *marker != MARKER || len > MAX_CONTENT {
        return None;
    }
    let (content, after) = rest.split_at_checked(len)?;
    (checksum(content) == check).then_some((content, after))
}

/// The mempool of the records so far.
#[derive(Default)]
struct Replay {
    transactions: Vec<Option<Kept>>,
    positions: HashMap<Txid, usize>,
    deltas: BTreeMap<Txid, SignedAmount>,
    damaged: usize,
}

impl Replay {
    fn take(&mut self, content: &[u8]) -> Result<(), WireError> {
        let mut reader = Reader::new(content);
        match u8::get(&mut reader)? {
            tag::ADDED => {
                let (time, height, raw) = <(u64, u32, Blob)>::get(&mut reader)?;
                let tx = deserialize::<Transaction>(&raw).map_err(|_| reader.error())?;
                // Journals of the first version lack it.
                let unbroadcast = reader.rest_or(false)?;
                let kept = Kept { offer: Offer::new(tx, &raw), entry_time: EntryTime { time, height, unbroadcast } };
                self.remove(&kept.offer.txid);
                self.positions.insert(kept.offer.txid, self.transactions.len());
                self.transactions.push(Some(kept));
            }
            tag::REMOVED => self.remove(&Txid::get(&mut reader)?),
            tag::PRIORITISED => {
                let (txid, delta) = <(Txid, SignedAmount)>::get(&mut reader)?;
                if delta == SignedAmount::ZERO {
                    self.deltas.remove(&txid)
                } else {
                    self.deltas.insert(txid, delta)
                };
            }
            _ => return Err(reader.error()),
        }
        Ok(())
    }

    fn remove(&mut self, txid: &Txid) {
        if let Some(kept) = self.positions.remove(txid).and_then(|position| self.transactions.get_mut(position)) {
            *kept = None;
        }
    }

    fn end(self) -> Stored {
        let Self { transactions, deltas, damaged, .. } = self;
        Stored { transactions: transactions.into_iter().flatten().collect(), deltas, damaged }
    }
}

#[cfg(test)]
mod tests {
    use bitcoin::consensus::serialize;
    use bitcoin::{Network, constants::genesis_block};

    use super::*;

    /// Transactions that differ in their lock time.
    fn transaction(number: u32) -> Transaction {
        let mut tx = genesis_block(Network::Regtest).txdata.swap_remove(0);
        tx.lock_time = bitcoin::absolute::LockTime::from_consensus(number);
        tx
    }

    fn entry_time(time: u64, height: u32) -> EntryTime {
        EntryTime { time, height, unbroadcast: true }
    }

    fn journal(records: &Records) -> Vec<u8> {
        [&HEADER, records.as_bytes()].concat()
    }

    fn numbers(stored: &Stored) -> Vec<u32> {
        stored.transactions.iter().map(|kept| kept.offer.tx.lock_time.to_consensus_u32()).collect()
    }

    fn five() -> (Records, Vec<usize>) {
        let mut records = Records::default();
        let mut ends = Vec::new();
        for number in 0..5 {
            records.kept(&serialize(&transaction(number)), entry_time(1_000 + u64::from(number), 7));
            ends.push(HEADER.len() + records.as_bytes().len());
        }
        (records, ends)
    }

    #[test]
    fn journal_keeps_the_order_of_what_came_and_did_not_leave() {
        let (mut records, _) = five();
        let id = |number| transaction(number).compute_txid();
        records.removed(&id(1));
        records.removed(&id(9));
        records.removed(&id(0));
        records.kept(&serialize(&transaction(0)), entry_time(5, 6));
        records.prioritised(&id(3), SignedAmount::from_sat(-40));
        records.prioritised(&id(4), SignedAmount::from_sat(40));
        records.prioritised(&id(4), SignedAmount::from_sat(0));
        let stored = Stored::read(&journal(&records));
        assert_eq!((numbers(&stored), stored.damaged), (vec![2, 3, 4, 0], 0));
        assert_eq!(stored.transactions[0].entry_time, entry_time(1_002, 7));
        assert_eq!(stored.transactions[3].entry_time, entry_time(5, 6));
        assert_eq!(stored.deltas.into_iter().collect::<Vec<_>>(), [(id(3), SignedAmount::from_sat(-40))]);
    }

    #[test]
    fn journal_of_the_first_version_is_read() {
        let mut content = vec![tag::ADDED];
        content.extend_from_slice(&wire::to_bytes(&(9_u64, 8_u32, Blob(serialize(&transaction(3))))));
        let mut records = Records::default();
        records.push(&content);
        let stored = Stored::read(&journal(&records));
        assert_eq!((numbers(&stored), stored.damaged), (vec![3], 0));
        assert_eq!(stored.transactions[0].entry_time, EntryTime { time: 9, height: 8, unbroadcast: false });
    }

    #[test]
    fn journal_that_is_cut_off_keeps_what_is_whole() {
        let (records, ends) = five();
        let whole = journal(&records);
        for end in 0..=whole.len() {
            let stored = Stored::read(&whole[..end]);
            let complete = ends.iter().filter(|record| **record <= end).count();
            assert_eq!(stored.transactions.len(), complete, "cut at {end}");
        }
    }

    #[test]
    fn journal_loses_one_record_to_one_damaged_byte() {
        let (records, ends) = five();
        let whole = journal(&records);
        for at in HEADER.len()..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x5a;
            let stored = Stored::read(&damaged);
            let hit = ends.iter().filter(|end| **end <= at).count() as u32;
            let expected: Vec<u32> = (0..5).filter(|number| *number != hit).collect();
            assert_eq!(numbers(&stored), expected, "byte {at}");
            assert!(stored.damaged > 0);
        }
    }

    #[test]
    fn journal_of_another_kind_of_file_is_empty() {
        for bytes in [&b""[..], b"ORMPOOL", b"ORMPOOL2 and what follows"] {
            let stored = Stored::read(bytes);
            assert!(stored.transactions.is_empty());
            assert_eq!(stored.damaged, bytes.len());
        }
    }
}
