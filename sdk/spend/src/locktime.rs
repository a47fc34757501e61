//! The locktime of payments against fee sniping.

use bitcoin::absolute::LockTime;
use bitcoin::secp256k1::rand::Rng;
use bitcoin::{Sequence, Transaction};
use outrigger_service::Result;
use outrigger_service::wallet::{Synced, WalletInfo};

use crate::Services;

/// The greatest age of the tip, in seconds, at which payments get a locktime (`MAX_ANTI_FEE_SNIPING_TIP_AGE`).
const MAX_TIP_AGE: u64 = 8 * 60 * 60;

/// One payment in this many gets a lower height, so that payments sent long after signing do not stand out.
const FURTHER_BACK_ONE_IN: u32 = 10;

/// Such a height is less than this many blocks below the tip.
const FURTHER_BACK_BLOCKS: u32 = 100;

/// The locktime of a new payment, from the last block that both node and wallet have. The node would refuse a later one.
pub fn for_payment(services: Services<'_>, wallet: &WalletInfo, random: &mut impl Rng) -> Result<LockTime> {
    let now = services.host.chain.time(services.scope)?;
    Ok(against_fee_sniping(wallet.node_behind.as_ref().unwrap_or(&wallet.synced), now, random))
}

/// Sets the locktime of a new payment, unless an input has a sequence that the wallet does not choose (send and sendall).
pub fn set(
    services: Services<'_>,
    wallet: &WalletInfo,
    transaction: &mut Transaction,
    random: &mut impl Rng,
) -> Result<()> {
    const USUAL: [Sequence; 2] = [Sequence::ENABLE_RBF_NO_LOCKTIME, Sequence::ENABLE_LOCKTIME_NO_RBF];
    if transaction.input.iter().all(|input| USUAL.contains(&input.sequence)) {
        transaction.lock_time = for_payment(services, wallet, random)?;
    }
    Ok(())
}

/// The locktime against fee sniping (`DiscourageFeeSniping` of Bitcoin Core), so that reorganising the tip gains no
/// fee. It is the tip's height, for one payment in ten up to 99 less; 0 if the tip is old at Unix time `now`.
pub fn against_fee_sniping(tip: &Synced, now: u64, random: &mut impl Rng) -> LockTime {
    if u64::from(tip.time) < now.saturating_sub(MAX_TIP_AGE) {
        return LockTime::ZERO;
    }
    let back = match random.gen_range(0..FURTHER_BACK_ONE_IN) {
        0 => random.gen_range(0..FURTHER_BACK_BLOCKS),
        _ => 0,
    };
    LockTime::from_height(tip.height.saturating_sub(back)).unwrap_or(LockTime::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bitcoin::BlockHash;
    use bitcoin::hashes::Hash;
    use bitcoin::secp256k1::rand::SeedableRng;
    use bitcoin::secp256k1::rand::rngs::StdRng;

    const NOW: u64 = 1_700_000_000;

    fn tip(height: u32, age: u64) -> Synced {
        let time = u32::try_from(NOW - age).unwrap();
        Synced { hash: BlockHash::all_zeros(), height, time, median_time: time }
    }

    fn heights(tip: &Synced, payments: usize) -> Vec<u32> {
        let mut random = StdRng::seed_from_u64(7);
        (0..payments).map(|_| against_fee_sniping(tip, NOW, &mut random).to_consensus_u32()).collect()
    }

    #[test]
    fn sendtoaddress_locktime_is_the_height_and_in_one_of_ten_older() {
        let heights = heights(&tip(500, 0), 10_000);
        let back: Vec<u32> = heights.iter().copied().filter(|height| *height != 500).collect();
        assert!((850..=1150).contains(&back.len()), "{}", back.len());
        assert_eq!((back.iter().min(), back.iter().max()), (Some(&401), Some(&499)));
    }

    #[test]
    fn sendtoaddress_locktime_is_never_below_zero() {
        assert!(heights(&tip(3, 0), 1000).iter().all(|height| *height <= 3));
    }

    #[test]
    fn sendtoaddress_locktime_is_zero_when_the_tip_is_older_than_eight_hours() {
        assert!(heights(&tip(500, 28_800), 100).contains(&500));
        assert!(heights(&tip(500, 28_801), 100).iter().all(|height| *height == 0));
    }
}
