//! Decodes blocks as bitcoind does, and computes the ids of their transactions.

use std::ops::Deref;

use bitcoin::block::Header;
use bitcoin::consensus::{Decodable, encode};
use bitcoin::hashes::{Hash, HashEngine, sha256d};
use bitcoin::{Block, Transaction, Txid, VarInt, Wtxid};

use outrigger_standard::decode::{Form, read};

/// The size of the version and of the lock time, in bytes.
const FIELD: usize = 4;
/// The size of a witness serialisation's marker and flag, in bytes.
const MARKER_AND_FLAG: usize = 2;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ids {
    pub txid: Txid,
    pub wtxid: Wtxid,
}

impl Ids {
    /// The ids of the transaction that `raw` encodes. Hashing `raw` is many times faster than serialising the
    /// transaction twice.
    pub fn of(tx: &Transaction, raw: &[u8]) -> Self {
        let whole = sha256d::Hash::hash(raw);
        let middle = tx.base_size().saturating_sub(2 * FIELD);
        let parts = (
            raw.get(..FIELD),
            raw.get(FIELD + MARKER_AND_FLAG..).and_then(|rest| rest.get(..middle)),
            raw.len().checked_sub(FIELD).and_then(|end| raw.get(end..)),
        );
        let bare = match parts {
            (Some(version), Some(middle), Some(lock_time)) if raw.len() > tx.base_size() => {
                let mut engine = sha256d::Hash::engine();
                [version, middle, lock_time].into_iter().for_each(|part| engine.input(part));
                sha256d::Hash::from_engine(engine)
            }
            // Without witnesses both ids are the same.
            _ => whole,
        };
        Self { txid: Txid::from_raw_hash(bare), wtxid: Wtxid::from_raw_hash(whole) }
    }
}

/// A block with the ids of its transactions, computed once.
#[derive(Clone, Debug)]
pub struct NamedBlock {
    block: Block,
    ids: Vec<Ids>,
}

impl Deref for NamedBlock {
    type Target = Block;

    fn deref(&self) -> &Block {
        &self.block
    }
}

impl NamedBlock {
    pub fn txids(&self) -> impl Iterator<Item = Txid> {
        self.ids.iter().map(|ids| ids.txid)
    }

    pub fn transactions(&self) -> impl Iterator<Item = (&Transaction, Ids)> {
        self.block.txdata.iter().zip(self.ids.iter().copied())
    }

    /// The coinbase, to add a witness. The caller must not change its txid. Its wtxid in [`Self::transactions`] becomes stale.
    pub fn coinbase_mut(&mut self) -> Option<&mut Transaction> {
        self.block.txdata.first_mut()
    }
}

/// Decodes a block, and ignores bytes after it. Also returns the block's own bytes.
pub fn decode_block(raw: &[u8]) -> Result<(NamedBlock, &[u8]), encode::Error> {
    let mut rest = raw;
    let header = Header::consensus_decode(&mut rest)?;
    let count = VarInt::consensus_decode(&mut rest)?.0;
    let (mut txdata, mut ids) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let before = rest;
        let tx = read(&mut rest, Form::Extended)?;
        let own = before.get(..before.len() - rest.len()).unwrap_or(before);
        ids.push(Ids::of(&tx, own));
        txdata.push(tx);
    }
    let own = raw.get(..raw.len() - rest.len()).unwrap_or(raw);
    Ok((NamedBlock { block: Block { header, txdata }, ids }, own))
}

#[cfg(test)]
mod tests {
    use bitcoin::Network;
    use bitcoin::consensus::serialize;
    use bitcoin::constants::genesis_block;

    use super::*;

    #[test]
    fn decode_block_ignores_trailing_bytes_and_refuses_truncated_blocks() {
        let block = genesis_block(Network::Regtest);
        let raw = serialize(&block);
        for end in 0..raw.len() {
            assert!(decode_block(&raw[..end]).is_err(), "{end} bytes");
        }
        let longer = [&raw[..], &[1, 2, 3]].concat();
        let (decoded, own) = decode_block(&longer).unwrap();
        assert_eq!((&*decoded, own), (&block, &raw[..]));
    }

    #[test]
    fn decode_reserves_no_memory_for_a_false_count() {
        let mut raw = serialize(&genesis_block(Network::Regtest).header);
        raw.extend([0xff; 9]);
        assert!(decode_block(&raw).is_err());
    }

    #[test]
    fn decode_ids_are_those_of_the_library() {
        let coinbase = genesis_block(Network::Regtest).txdata.swap_remove(0);
        let mut witness = coinbase.clone();
        witness.input[0].witness.push([7; 300]);
        let mut two = witness.clone();
        two.input.push(coinbase.input[0].clone());
        for tx in [coinbase, witness, two] {
            let ids = Ids { txid: tx.compute_txid(), wtxid: tx.compute_wtxid() };
            assert_eq!(Ids::of(&tx, &serialize(&tx)), ids);
        }
    }
}
