//! Merges PSBTs.

use std::collections::BTreeMap;

use bitcoin::ScriptBuf;

use crate::{Input, Output, Psbt};

/// Inserts the entries of missing keys.
fn insert<K: Ord + Clone, V: Clone>(into: &mut BTreeMap<K, V>, from: &BTreeMap<K, V>) {
    for (key, value) in from {
        into.entry(key.clone()).or_insert_with(|| value.clone());
    }
}

fn fill(into: &mut ScriptBuf, from: &ScriptBuf) {
    if into.is_empty() {
        into.clone_from(from);
    }
}

impl Psbt {
    /// Adds the missing fields from another PSBT of the same transaction. Hash types are not added, as in bitcoind 29.
    /// Returns whether it is the same transaction.
    #[must_use]
    pub fn combine(&mut self, other: &Self) -> bool {
        if self.tx.compute_txid() != other.tx.compute_txid() {
            return false;
        }
        self.inputs.iter_mut().zip(&other.inputs).for_each(|(ours, theirs)| ours.combine(theirs));
        self.outputs.iter_mut().zip(&other.outputs).for_each(|(ours, theirs)| ours.combine(theirs));
        for (origin, xpubs) in &other.xpubs {
            self.xpubs.entry(origin.clone()).or_default().extend(xpubs);
        }
        insert(&mut self.proprietary, &other.proprietary);
        insert(&mut self.unknown, &other.unknown);
        true
    }

    /// Adds the missing global fields of unknown types.
    pub fn take_unknown(&mut self, other: &Self) {
        insert(&mut self.unknown, &other.unknown);
    }
}

impl Input {
    fn combine(&mut self, other: &Self) {
        self.non_witness_utxo = self.non_witness_utxo.take().or_else(|| other.non_witness_utxo.clone());
        self.witness_utxo = self.witness_utxo.take().or_else(|| other.witness_utxo.clone());
        insert(&mut self.partial_sigs, &other.partial_sigs);
        insert(&mut self.origins, &other.origins);
        self.preimages.iter_mut().zip(&other.preimages).for_each(|(ours, theirs)| insert(ours, theirs));
        insert(&mut self.proprietary, &other.proprietary);
        insert(&mut self.unknown, &other.unknown);
        insert(&mut self.tap_script_sigs, &other.tap_script_sigs);
        insert(&mut self.tap_scripts, &other.tap_scripts);
        insert(&mut self.tap_origins, &other.tap_origins);
        fill(&mut self.redeem_script, &other.redeem_script);
        fill(&mut self.witness_script, &other.witness_script);
        fill(&mut self.final_script_sig, &other.final_script_sig);
        if self.final_witness.is_empty() {
            self.final_witness.clone_from(&other.final_witness);
        }
        if self.tap_key_sig.is_empty() {
            self.tap_key_sig.clone_from(&other.tap_key_sig);
        }
        self.tap_internal_key = self.tap_internal_key.or(other.tap_internal_key);
        self.tap_merkle_root = self.tap_merkle_root.or(other.tap_merkle_root);
    }
}

impl Output {
    fn combine(&mut self, other: &Self) {
        insert(&mut self.origins, &other.origins);
        insert(&mut self.proprietary, &other.proprietary);
        insert(&mut self.unknown, &other.unknown);
        insert(&mut self.tap_origins, &other.tap_origins);
        fill(&mut self.redeem_script, &other.redeem_script);
        fill(&mut self.witness_script, &other.witness_script);
        self.tap_internal_key = self.tap_internal_key.or(other.tap_internal_key);
        if self.tap_tree.is_empty() {
            self.tap_tree.clone_from(&other.tap_tree);
        }
    }
}
