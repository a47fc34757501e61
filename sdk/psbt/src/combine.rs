//! Merges PSBTs.

use std::collections::{BTreeMap, BTreeSet};

use bitcoin::{ScriptBuf, Sequence, Txid};
use outrigger_standard::release::Rules;

use crate::version::VersionTwo;
use crate::{Input, Output, Psbt, Xpub};

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
    /// Adds the missing fields from another PSBT of the same version and transaction. Like bitcoind, it does not add sighash
    /// types. Returns whether it is of the same version and transaction.
    #[must_use]
    pub fn combine(&mut self, other: &Self, rules: &Rules) -> bool {
        let id = self.id();
        if self.v2.is_some() != other.v2.is_some() || id.is_none() || id != other.id() {
            return false;
        }
        if let (Some(ours), Some(theirs)) = (&mut self.v2, &other.v2) {
            ours.combine(theirs);
            for ((spends, ours), (other, theirs)) in self.tx.input.iter_mut().zip(&self.inputs).zip(other.each_input())
            {
                if !ours.has_sequence && theirs.has_sequence {
                    spends.sequence = other.sequence;
                }
            }
        }
        self.inputs.iter_mut().zip(&other.inputs).for_each(|(ours, theirs)| ours.combine(theirs));
        self.outputs.iter_mut().zip(&other.outputs).for_each(|(ours, theirs)| ours.combine(theirs));
        self.update_lock_time();
        let mut known: BTreeSet<Xpub> = self.xpubs.values().flatten().copied().collect();
        for (origin, xpubs) in &other.xpubs {
            for xpub in xpubs {
                if known.insert(*xpub) || !rules.psbt_v2 {
                    self.xpubs.entry(origin.clone()).or_default().insert(*xpub);
                }
            }
        }
        insert(&mut self.proprietary, &other.proprietary);
        insert(&mut self.unknown, &other.unknown);
        true
    }

    /// The unique identifier of BIP 370: the txid, in version 2 with all sequences set to 0. `None` if no locktime satisfies all
    /// inputs.
    fn id(&self) -> Option<Txid> {
        self.lock_time()?;
        if self.v2.is_none() {
            return Some(self.tx.compute_txid());
        }
        let mut tx = self.tx.clone();
        tx.input.iter_mut().for_each(|input| input.sequence = Sequence::ZERO);
        Some(tx.compute_txid())
    }

    /// Adds the missing global fields of unknown types.
    pub fn take_unknown(&mut self, other: &Self) {
        insert(&mut self.unknown, &other.unknown);
    }
}

impl VersionTwo {
    /// ANDs the flags. Only the flag for SIGHASH_SINGLE is ORed.
    fn combine(&mut self, other: &Self) {
        self.fallback_lock_time = self.fallback_lock_time.or(other.fallback_lock_time);
        if self.modifiable.is_some() || other.modifiable.is_some() {
            let [ours, theirs] = [&*self, other].map(|one| one.modifiable.unwrap_or_default());
            self.modifiable = Some(ours & theirs | (ours | theirs) & Self::HAS_SIGHASH_SINGLE);
        }
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
        insert(&mut self.musig2_participants, &other.musig2_participants);
        insert(&mut self.musig2_nonces, &other.musig2_nonces);
        insert(&mut self.musig2_sigs, &other.musig2_sigs);
        self.has_sequence |= other.has_sequence;
        self.time_lock = self.time_lock.or(other.time_lock);
        self.height_lock = self.height_lock.or(other.height_lock);
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
        insert(&mut self.musig2_participants, &other.musig2_participants);
    }
}
