//! The witness commitment in the coinbase (BIP 141).

use bitcoin::hashes::{Hash, HashEngine, sha256d};

use super::ValidationError;
use crate::decode::NamedBlock;
use outrigger_node::merkle::{merkle_root, witness_commitment};

/// The size of the coinbase's reserved value, in bytes.
const RESERVED_SIZE: usize = 32;

/// Checks the witnesses against the coinbase's commitment.
///
/// Order: `bad-witness-nonce-size`, `bad-witness-merkle-match`; `unexpected-witness` without a commitment.
pub(super) fn check_commitment(block: &NamedBlock) -> Result<(), ValidationError> {
    let Some(coinbase) = block.txdata.first() else { return Ok(()) };
    let Some(committed) = witness_commitment(coinbase) else {
        let has_witness = block.txdata.iter().any(|tx| tx.input.iter().any(|input| !input.witness.is_empty()));
        return if has_witness { Err(ValidationError::mutated("unexpected-witness")) } else { Ok(()) };
    };
    let witness = coinbase.input.first().map(|input| &input.witness);
    let reserved = witness
        .filter(|witness| witness.len() == 1)
        .and_then(|witness| witness.last())
        .filter(|reserved| reserved.len() == RESERVED_SIZE)
        .ok_or_else(|| ValidationError::mutated("bad-witness-nonce-size"))?;
    let zero = sha256d::Hash::all_zeros();
    let others = block.transactions().skip(1).map(|(_, ids)| ids.wtxid.into());
    let (root, _) = merkle_root(std::iter::once(zero).chain(others).collect());
    let mut engine = sha256d::Hash::engine();
    engine.input(root.as_byte_array());
    engine.input(reserved);
    if sha256d::Hash::from_engine(engine).as_byte_array() != committed {
        return Err(ValidationError::mutated("bad-witness-merkle-match"));
    }
    Ok(())
}

/// Adds the reserved value (zeros) to a coinbase with a commitment and no witness. Returns whether it did.
///
/// `submitblock` does so for miners that omit the value (bitcoind's `UpdateUncommittedBlockStructures`).
pub fn fill_coinbase_witness(block: &mut NamedBlock) -> bool {
    let Some(coinbase) = block.coinbase_mut() else { return false };
    if witness_commitment(coinbase).is_none() || coinbase.input.iter().any(|input| !input.witness.is_empty()) {
        return false;
    }
    let Some(input) = coinbase.input.first_mut() else { return false };
    input.witness.push([0; RESERVED_SIZE]);
    true
}
