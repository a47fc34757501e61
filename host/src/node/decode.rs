//! Decoding blocks as bitcoind does.

use bitcoin::absolute::LockTime;
use bitcoin::block::Header;
use bitcoin::consensus::{Decodable, encode};
use bitcoin::transaction::Version;
use bitcoin::{Block, Transaction, VarInt};

/// The bytes of a transaction without inputs and outputs.
const EMPTY_TRANSACTION: usize = 10;

/// Decodes a block. Bytes that follow it are ignored. Gives its own bytes too.
///
/// # Errors
/// When the bytes are no block.
pub fn decode_block(raw: &[u8]) -> Result<(Block, &[u8]), encode::Error> {
    let mut rest = raw;
    let header = Header::consensus_decode(&mut rest)?;
    let count = VarInt::consensus_decode(&mut rest)?.0;
    let mut txdata = Vec::new();
    for _ in 0..count {
        let tx = match empty_transaction(rest) {
            Some((tx, after)) => {
                rest = after;
                tx
            }
            None => Transaction::consensus_decode(&mut rest)?,
        };
        txdata.push(tx);
    }
    let own = raw.get(..raw.len() - rest.len()).unwrap_or(raw);
    Ok((Block { header, txdata }, own))
}

/// A transaction without inputs and outputs at the beginning of `bytes`, and what follows it.
///
/// Its two counts look like the marker and flag of a witness serialisation with a flag of 0. bitcoind reads them as
/// counts and refuses the block for what the transaction lacks; the library refuses the bytes.
fn empty_transaction(bytes: &[u8]) -> Option<(Transaction, &[u8])> {
    let (tx, after) = bytes.split_at_checked(EMPTY_TRANSACTION)?;
    let (version, rest) = tx.split_first_chunk::<4>()?;
    let (counts, lock_time) = rest.split_first_chunk::<2>()?;
    if counts != &[0, 0] {
        return None;
    }
    let lock_time = u32::from_le_bytes(lock_time.try_into().ok()?);
    let tx = Transaction {
        version: Version(i32::from_le_bytes(*version)),
        lock_time: LockTime::from_consensus(lock_time),
        input: Vec::new(),
        output: Vec::new(),
    };
    Some((tx, after))
}

#[cfg(test)]
mod tests {
    use bitcoin::Network;
    use bitcoin::consensus::serialize;
    use bitcoin::constants::genesis_block;

    use super::*;

    #[test]
    fn what_follows_a_block_is_ignored_and_what_is_cut_off_is_missed() {
        let block = genesis_block(Network::Regtest);
        let raw = serialize(&block);
        for end in 0..raw.len() {
            assert!(decode_block(&raw[..end]).is_err(), "{end} bytes");
        }
        let longer = [&raw[..], &[1, 2, 3]].concat();
        let (decoded, own) = decode_block(&longer).unwrap();
        assert_eq!((decoded, own), (block, &raw[..]));
    }

    #[test]
    fn a_count_that_lies_reserves_nothing() {
        let mut raw = serialize(&genesis_block(Network::Regtest).header);
        raw.extend([0xff; 9]);
        assert!(decode_block(&raw).is_err());
    }

    #[test]
    fn a_transaction_of_nothing_is_decoded() {
        let mut raw = serialize(&genesis_block(Network::Regtest).header);
        raw.extend([1, 2, 0, 0, 0, 0, 0, 7, 0, 0, 0]);
        let (block, _) = decode_block(&raw).unwrap();
        assert!(block.txdata[0].input.is_empty() && block.txdata[0].output.is_empty());
        assert_eq!(block.txdata[0].lock_time.to_consensus_u32(), 7);
    }
}
