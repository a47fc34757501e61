//! The mempool's limits for chains of unconfirmed transactions, or since Bitcoin Core 31 for clusters, checked before the
//! transaction is submitted (`CTxMemPool::CheckPackageLimits` of Bitcoin Core).

use std::collections::{BTreeSet, HashSet};

use bitcoin::Txid;
use bitcoin::hashes::Hash;

use outrigger_service::mempool::{ClusterLimits, MempoolEntry};

use crate::bump::Unconfirmed;

/// The most transactions of an unconfirmed chain, the new one included: Bitcoin Core's defaults of
/// `-limitancestorcount` and `-limitdescendantcount`.
pub const MAX_CHAIN: u64 = 25;
/// The greatest size of a chain, in virtual bytes: the defaults of `-limitancestorsize` and `-limitdescendantsize`.
const MAX_CHAIN_SIZE: u64 = 101_000;

impl Unconfirmed {
    /// Checks a transaction of `size` virtual bytes that spends outputs of the transactions `spent`. The error is for
    /// the first limit that it exceeds, with Bitcoin Core's message.
    pub fn check_limits(&self, spent: impl IntoIterator<Item = Txid>, size: u64) -> Result<(), String> {
        match self.limits {
            Some(limits) => self.check_cluster(limits, spent, size),
            None => self.check_chain(spent, size),
        }
    }

    /// The limits of nodes with clusters (Bitcoin Core 31). Coin selection still keeps the limits of chains, since older nodes
    /// may relay the payment.
    fn check_cluster(
        &self,
        limits: ClusterLimits,
        spent: impl IntoIterator<Item = Txid>,
        size: u64,
    ) -> Result<(), String> {
        let add =
            |(count, total): (u64, u64), entry: &MempoolEntry| (count + 1, total.saturating_add(entry.virtual_size));
        let (count, total) = self.clusters(spent).fold((1, size), add);
        if count > limits.count || total > limits.size {
            return Err("too many unconfirmed transactions in cluster".to_owned());
        }
        Ok(())
    }

    /// The limits before Bitcoin Core 31.
    fn check_chain(&self, spent: impl IntoIterator<Item = Txid>, size: u64) -> Result<(), String> {
        // Bitcoin Core's order, which determines the reported limit.
        let mut open = BTreeSet::new();
        for txid in spent.into_iter().filter(|txid| self.entry(*txid).is_some()) {
            open.insert(txid.to_byte_array());
            if open.len() as u64 + 1 > MAX_CHAIN {
                return Err(format!("too many unconfirmed parents [limit: {MAX_CHAIN}]"));
            }
        }
        let (mut seen, mut total) = (HashSet::new(), size);
        while let Some(next) = open.pop_first() {
            let txid = Txid::from_byte_array(next);
            seen.insert(next);
            let Some(entry) = self.entry(txid) else { continue };
            total = total.saturating_add(entry.virtual_size);
            if entry.descendant_size.saturating_add(size) > MAX_CHAIN_SIZE {
                return Err(format!("possibly exceeds descendant size limit for tx {txid} [limit: {MAX_CHAIN_SIZE}]"));
            }
            if entry.descendant_count + 1 > MAX_CHAIN {
                return Err(format!("possibly too many descendants for tx {txid} [limit: {MAX_CHAIN}]"));
            }
            if total > MAX_CHAIN_SIZE {
                return Err(format!("possibly exceeds ancestor size limit [limit: {MAX_CHAIN_SIZE}]"));
            }
            for parent in &entry.depends {
                let parent = parent.to_byte_array();
                if !seen.contains(&parent) {
                    open.insert(parent);
                }
                if (open.len() + seen.len()) as u64 + 1 > MAX_CHAIN {
                    return Err(format!("possibly too many unconfirmed ancestors [limit: {MAX_CHAIN}]"));
                }
            }
        }
        Ok(())
    }
}
