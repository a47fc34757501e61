//! Rules of a block by itself and on its parent.

use bitcoin::block::Header;
use bitcoin::constants::WITNESS_SCALE_FACTOR;
use bitcoin::script::Builder;
use bitcoin::{Script, ScriptBuf, Weight};

use super::transaction::exceeds_block;
use super::witness::check_commitment;
use super::{ValidationError, check_transaction, is_final};
use crate::decode::NamedBlock;
use crate::params::MAX_BLOCK_SIGOPS_COST;
use outrigger_node::merkle::merkle_root;
use outrigger_script::legacy_sigop_count;
use outrigger_service::chain::Tip;

/// Checks a block by itself, except for its proof of work (bitcoind's `CheckBlock`).
///
/// Order: merkle root, size, coinbase, transactions, legacy signature operations.
pub fn check_block(block: &NamedBlock) -> Result<(), ValidationError> {
    let (root, mutated) = merkle_root(block.txids().map(Into::into).collect());
    if root != block.header.merkle_root.into() {
        return Err(ValidationError::mutated("bad-txnmrklroot"));
    }
    if mutated {
        return Err(ValidationError::mutated("bad-txns-duplicate"));
    }
    let Some((coinbase, others)) = block.txdata.split_first() else {
        return Err(ValidationError::new("bad-blk-length"));
    };
    let count = block.txdata.len();
    let stripped = Header::SIZE
        + bitcoin::VarInt::from(count).size()
        + block.txdata.iter().map(bitcoin::Transaction::base_size).sum::<usize>();
    if exceeds_block(count) || exceeds_block(stripped) {
        return Err(ValidationError::new("bad-blk-length").with_detail("size limits failed".to_owned()));
    }
    if !coinbase.is_coinbase() {
        return Err(ValidationError::new("bad-cb-missing"));
    }
    if others.iter().any(bitcoin::Transaction::is_coinbase) {
        return Err(ValidationError::new("bad-cb-multiple").with_detail("more than one coinbase".to_owned()));
    }
    for (tx, ids) in block.transactions() {
        check_transaction(tx).map_err(|error| {
            let detail = format!("Transaction check failed (tx hash {}) {}", ids.txid, error.detail);
            error.with_detail(detail)
        })?;
    }
    let sigops: u64 = block.txdata.iter().map(legacy_sigop_count).sum();
    if sigops * WITNESS_SCALE_FACTOR as u64 > MAX_BLOCK_SIGOPS_COST {
        return Err(ValidationError::new("bad-blk-sigops").with_detail("out-of-bounds SigOpCount".to_owned()));
    }
    Ok(())
}

/// Checks a block on its parent (bitcoind's `ContextualCheckBlock`).
///
/// Order: `bad-txns-nonfinal`, `bad-cb-height`, the witness commitment, `bad-blk-weight`.
pub fn check_in_context(block: &NamedBlock, parent: &Tip) -> Result<(), ValidationError> {
    let height = parent.height + 1;
    if block.txdata.iter().any(|tx| !is_final(tx, height, parent.median_time)) {
        return Err(ValidationError::new("bad-txns-nonfinal").with_detail("non-final transaction".to_owned()));
    }
    let script = block.txdata.first().and_then(|tx| tx.input.first()).map(|input| input.script_sig.as_script());
    if !script.is_some_and(|script| begins_with_height(script, height)) {
        return Err(ValidationError::new("bad-cb-height"));
    }
    check_commitment(block)?;
    if block.weight() > Weight::MAX_BLOCK {
        let detail = "ContextualCheckBlock : weight limit failed";
        return Err(ValidationError::new("bad-blk-weight").with_detail(detail.to_owned()));
    }
    Ok(())
}

/// Whether a coinbase's script begins with the minimal push of this height (BIP 34).
fn begins_with_height(script: &Script, height: u32) -> bool {
    let push: ScriptBuf = Builder::new().push_int(i64::from(height)).into_script();
    script.as_bytes().starts_with(push.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bip34_heights_are_pushed_in_their_shortest_form() {
        for (height, push) in [(1_u32, &[0x51_u8][..]), (16, &[0x60]), (17, &[1, 17]), (128, &[2, 128, 0])] {
            assert!(begins_with_height(Script::from_bytes(push), height), "height {height}");
            let mut longer = push.to_vec();
            longer.push(0);
            assert!(begins_with_height(Script::from_bytes(&longer), height));
            assert!(!begins_with_height(Script::from_bytes(&push[1..]), height));
        }
        // The heights up to 16 have opcodes of their own, which are shorter than a push of one byte.
        for height in 1..=16_u8 {
            assert!(!begins_with_height(Script::from_bytes(&[1, height]), u32::from(height)), "height {height}");
        }
        assert!(!begins_with_height(Script::from_bytes(&[2, 17, 0]), 17));
    }
}
