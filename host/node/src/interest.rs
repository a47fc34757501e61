//! Interests: hashes of scripts, outputs and transactions. A node filters by them without knowing the wallets. A
//! collision is a false positive; there are no false negatives.

use bitcoin::hashes::{Hash, sha256};
use bitcoin::{OutPoint, Script, Transaction, Txid};

/// An odd constant that spreads small numbers over all bits.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let part = bytes.get(at..at + 8).and_then(|part| part.try_into().ok());
    part.map_or(0, u64::from_le_bytes)
}

/// The interest in a script with this SHA-256.
pub fn script_hash_interest(hash: &[u8]) -> u64 {
    u64_at(hash, 0)
}

pub fn script_interest(script: &Script) -> u64 {
    script_hash_interest(sha256::Hash::hash(script.as_bytes()).as_byte_array())
}

/// The interest in the spender of an output.
pub fn outpoint_interest(outpoint: &OutPoint) -> u64 {
    u64_at(outpoint.txid.as_byte_array(), 0) ^ (u64::from(outpoint.vout) + 1).wrapping_mul(SPREAD)
}

pub fn transaction_interest(txid: &Txid) -> u64 {
    u64_at(txid.as_byte_array(), 8)
}

/// The interests that match a transaction: by its id, its inputs, and its outputs' scripts.
pub fn interests<'t>(transaction: &'t Transaction, txid: &Txid) -> impl Iterator<Item = u64> + 't {
    let inputs = if transaction.is_coinbase() { &[][..] } else { &transaction.input };
    let spent = inputs.iter().map(|input| outpoint_interest(&input.previous_output));
    let paid = transaction.output.iter().map(|output| script_interest(&output.script_pubkey));
    std::iter::once(transaction_interest(txid)).chain(spent).chain(paid)
}

/// The transactions with a wanted interest, and their descendants. Parents must precede children in `transactions`.
pub fn concerning<T: AsRef<Transaction>>(
    transactions: impl IntoIterator<Item = (Txid, T)>,
    wanted: &dyn Fn(u64) -> bool,
) -> Vec<(Txid, T)> {
    let mut found: Vec<(Txid, T)> = Vec::new();
    let mut parents = std::collections::HashSet::new();
    for (txid, transaction) in transactions {
        let spends = transaction.as_ref().input.iter().any(|input| parents.contains(&input.previous_output.txid));
        if spends || interests(transaction.as_ref(), &txid).any(wanted) {
            parents.insert(txid);
            found.push((txid, transaction));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn outputs_of_one_transaction_have_different_interests() {
        let outpoint = |vout| OutPoint { txid: Txid::from_byte_array([9; 32]), vout };
        let interests: HashSet<u64> = (0..1000).map(|vout| outpoint_interest(&outpoint(vout))).collect();
        assert_eq!(interests.len(), 1000);
    }
}
