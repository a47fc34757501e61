//! The digests of the best chain's blocks: short hashes of the scripts that each block pays to and spends from.
//!
//! They are keyed by height, so that a scan is sequential, and are written and deleted with the block's other rows.

use bitcoin::hashes::Hash;
use bitcoin::{Block, BlockHash};
use heed::RwTxn;
use outrigger_service::chain::SpentOutputs;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{Reading, Store};
use crate::EmbeddedError;
use outrigger_node::search::script_hash;

/// The fixed part of a digest's row; the hashes follow it.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub struct DigestHead {
    hash: [u8; 32],
    max_time: U32,
}

/// A digest, read in place.
pub struct Digest<'txn> {
    pub height: u32,
    head: &'txn DigestHead,
    hashes: &'txn [U64],
}

impl Digest<'_> {
    pub fn block(&self) -> BlockHash {
        BlockHash::from_byte_array(self.head.hash)
    }

    /// The greatest time of the block and its ancestors, in Unix seconds.
    pub fn max_time(&self) -> u32 {
        self.head.max_time.get()
    }

    pub fn hashes(&self) -> impl Iterator<Item = u64> {
        self.hashes.iter().map(|hash| hash.get())
    }
}

fn read<'txn>(height: u32, row: &'txn [u8]) -> Result<Digest<'txn>, EmbeddedError> {
    let corrupt = || EmbeddedError::corrupt("digests", height);
    let (head, hashes) = DigestHead::ref_from_prefix(row).map_err(|_| corrupt())?;
    let hashes = <[U64]>::ref_from_bytes(hashes).map_err(|_| corrupt())?;
    Ok(Digest { height, head, hashes })
}

fn read_entry<'txn>((key, row): (&'txn [u8], &'txn [u8])) -> Result<Digest<'txn>, EmbeddedError> {
    let height = key.try_into().map_err(|_| EmbeddedError::corrupt("digests", "a row without a height"))?;
    read(u32::from_be_bytes(height), row)
}

impl Store {
    pub fn digest<'txn>(&self, txn: &'txn Reading, height: u32) -> Result<Option<Digest<'txn>>, EmbeddedError> {
        self.digests.get(txn, &height.to_be_bytes())?.map(|row| read(height, row)).transpose()
    }

    pub fn digests_from<'txn>(
        &self,
        txn: &'txn Reading,
        height: u32,
    ) -> Result<impl Iterator<Item = Result<Digest<'txn>, EmbeddedError>>, EmbeddedError> {
        let from = height.to_be_bytes();
        let rows = self.digests.range(txn, &(std::ops::Bound::Included(&from[..]), std::ops::Bound::Unbounded))?;
        Ok(rows.map(|entry| read_entry(entry?)))
    }

    /// Writes the digest of a block that is being connected. The parent's digest must exist.
    pub fn put_digest(
        &self,
        txn: &mut RwTxn,
        hash: &BlockHash,
        height: u32,
        block: &Block,
        spent: &[SpentOutputs],
    ) -> Result<(), EmbeddedError> {
        let below = match height.checked_sub(1) {
            Some(below) => self.digest(txn, below)?.ok_or_else(|| EmbeddedError::corrupt("digests", below))?.max_time(),
            None => 0,
        };
        let max_time = U32::new(below.max(block.header.time));
        let outputs = block.txdata.iter().flat_map(|tx| &tx.output).map(|output| &output.script_pubkey);
        let inputs = spent.iter().flat_map(|spent| &spent.coins).map(|coin| &coin.output.script_pubkey);
        let mut row = DigestHead { hash: hash.to_byte_array(), max_time }.as_bytes().to_vec();
        for script in outputs.chain(inputs) {
            row.extend_from_slice(&script_hash(script).to_le_bytes());
        }
        Ok(self.digests.put(txn, &height.to_be_bytes(), &row)?)
    }
}
