//! PSBT versions, and the global fields that only version 2 (BIP 370) has.

use bitcoin::Transaction;
use bitcoin::absolute::LockTime;

use crate::{Input, Psbt};

pub const ZERO: u32 = 0;
pub const TWO: u32 = 2;

/// The global fields of version 2 that are not part of the transaction.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct VersionTwo {
    /// The locktime if no input requires one. `None` means 0.
    pub fallback_lock_time: Option<u32>,
    /// The field PSBT_GLOBAL_TX_MODIFIABLE.
    pub modifiable: Option<u8>,
}

impl VersionTwo {
    /// The flag of `modifiable`: inputs may be added and removed.
    pub const INPUTS_MODIFIABLE: u8 = 1;
    /// The flag of `modifiable`: outputs may be added and removed.
    pub const OUTPUTS_MODIFIABLE: u8 = 1 << 1;
    /// The flag of `modifiable`: an input has a SIGHASH_SINGLE signature, so additions must keep the pairs of inputs
    /// and outputs.
    pub const HAS_SIGHASH_SINGLE: u8 = 1 << 2;
}

impl Psbt {
    /// A PSBT of a transaction, without any other fields: of version 2 (BIP 370), whose maps have the parts of the
    /// transaction, or of version 0 (BIP 174), which has the transaction in a global field.
    pub fn of_version(tx: Transaction, version_two: bool) -> Self {
        let mut psbt = Self::new(tx);
        if version_two {
            let fallback_lock_time = Some(psbt.tx.lock_time.to_consensus_u32());
            psbt.v2 = Some(VersionTwo { fallback_lock_time, modifiable: None });
            psbt.inputs.iter_mut().for_each(|input| input.has_sequence = true);
        }
        psbt
    }

    /// The version number: 0 or 2.
    pub fn version(&self) -> u32 {
        if self.v2.is_some() { TWO } else { ZERO }
    }

    /// The lock time of the transaction (BIP 370): the greatest height that inputs require, or the greatest time if an input
    /// requires no height. `None` if some inputs require only a height and some only a time: such a PSBT has no transaction.
    pub fn lock_time(&self) -> Option<LockTime> {
        let Some(v2) = &self.v2 else { return Some(self.tx.lock_time) };
        let locked = || self.inputs.iter().filter(|input| input.time_lock.is_some() || input.height_lock.is_some());
        if locked().next().is_none() {
            return Some(LockTime::from_consensus(v2.fallback_lock_time.unwrap_or_default()));
        }
        let greatest =
            |lock: fn(&Input) -> Option<u32>| locked().try_fold(0, |most, input| Some(lock(input)?.max(most)));
        greatest(|input| input.height_lock).or_else(|| greatest(|input| input.time_lock)).map(LockTime::from_consensus)
    }

    pub(crate) fn update_lock_time(&mut self) {
        self.tx.lock_time = self.lock_time().unwrap_or(LockTime::ZERO);
    }
}
