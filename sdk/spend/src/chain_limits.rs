//! The mempool's limits for chains of unconfirmed transactions, or since Bitcoin Core 31 for clusters, checked before the transaction is submitted
//! (`CTxMemPool::CheckPackageLimits` of Bitcoin Core).

use std::collections::{BTreeSet, HashSet};

use bitcoin::Txid;
use bitcoin::hashes::Hash;

use crate::bump::Unconfirmed;

/// The most transactions of an unconfirmed chain, the new one included: Bitcoin Core's defaults of
/// `-limitancestorcount` and `-limitdescendantcount`.
pub const MAX_CHAIN: u64 = 25;
/// The greatest size of a chain, in virtual bytes: the defaults of `-limitancestorsize` and `-limitdescendantsize`.
const MAX_CHAIN_SIZE: u64 = 101_000;

/// The most transactions of a cluster, the new one included, and their greatest total size in virtual bytes: the defaults of
/// `-limitclustercount` and `-limitclustersize`.
const MAX_CLUSTER: usize = 64;
const MAX_CLUSTER_SIZE: u64 = 101_000;

impl Unconfirmed {
    /// Checks a transaction as [`Self::check_limits`], against the limits of clusters.
    pub fn check_cluster(&self, spent: impl IntoIterator<Item = Txid>, size: u64) -> Result<(), String> {
        let (mut open, mut cluster, mut total) = (Vec::from_iter(spent), HashSet::new(), size);
        while let Some(txid) = open.pop() {
            let Some(entry) = self.entry(txid).filter(|_| cluster.insert(txid)) else { continue };
            total = total.saturating_add(entry.virtual_size);
            open.extend(entry.depends.iter().chain(&entry.spent_by));
        }
        if cluster.len() + 1 > MAX_CLUSTER || total > MAX_CLUSTER_SIZE {
            return Err("too many unconfirmed transactions in cluster".to_owned());
        }
        Ok(())
    }

    /// Checks a transaction of `size` virtual bytes that spends outputs of the transactions `spent`. The error is the
    /// first limit that it exceeds, in Bitcoin Core's words.
    pub fn check_limits(&self, spent: impl IntoIterator<Item = Txid>, size: u64) -> Result<(), String> {
        // Bitcoin Core's order, which decides the reported limit.
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
