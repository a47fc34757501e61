//! The amounts that a policy has let a wallet give away, so that it can enforce a limit.
//!
//! A signature cannot be taken back: its holder may send the transaction at any time, as long as its inputs are unspent. So the
//! policy reserves the amount of each signed transaction at the outpoints that it spends. Its signatures must commit to all inputs: one
//! with ANYONECANPAY stays valid after the other inputs are spent, so a policy must refuse it. Two transactions that spend the same
//! outpoint cannot both be confirmed, so the policy reserves only the larger amount. It releases a reservation after a transaction that
//! spends the outpoint is confirmed, and never because a payment was abandoned or replaced.

use std::collections::{BTreeMap, BTreeSet};

use bitcoin::{Amount, OutPoint};
use outrigger_service::wire::wire_struct;
use outrigger_values::amount::Saturating;

wire_struct! {
    /// The reservation at an outpoint.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct Reservation {
        /// The amount, in satoshi.
        pub amount: Amount,
        /// The time in seconds at which it stops counting. None while the outpoint may still be spent.
        pub until: Option<u32>,
    }
}

/// The reservations of wallets, by outpoint.
#[derive(Clone, Default, Debug)]
pub struct Reservations(pub BTreeMap<OutPoint, Reservation>);

impl Reservations {
    /// The amount that counts against a limit at the time `now`, in seconds.
    pub fn total(&self, now: u32) -> Amount {
        let counts = |reservation: &&Reservation| reservation.until.is_none_or(|until| until > now);
        let amounts = self.0.values().filter(counts).map(|reservation| reservation.amount);
        amounts.fold(Amount::ZERO, Amount::saturating_add)
    }

    /// The reservation to make before signing a transaction that spends these outpoints of the wallets and gives away the amount `gives`.
    /// None if enough is reserved at them.
    pub fn needed(&self, gives: Amount, outpoints: &[OutPoint]) -> Option<(OutPoint, Reservation)> {
        let outpoints: BTreeSet<&OutPoint> = outpoints.iter().collect();
        let first = *outpoints.first()?;
        let open = outpoints.iter().filter_map(|outpoint| self.0.get(outpoint)).filter(|known| known.until.is_none());
        let reserved = open.map(|known| known.amount).fold(Amount::ZERO, Amount::saturating_add);
        let more = gives.checked_sub(reserved).filter(|more| *more > Amount::ZERO)?;
        let before = self.0.get(first).map_or(Amount::ZERO, |known| known.amount);
        Some((*first, Reservation { amount: before.saturating_add(more), until: None }))
    }

    /// The stricter one of two reservations of an outpoint.
    pub fn stricter(&self, outpoint: &OutPoint, other: Reservation) -> Reservation {
        let Some(known) = self.0.get(outpoint) else { return other };
        let until = known.until.zip(other.until).map(|(one, other)| one.max(other));
        Reservation { amount: known.amount.max(other.amount), until }
    }
}

#[cfg(test)]
mod tests {
    use bitcoin::Txid;
    use bitcoin::hashes::Hash;

    use super::*;

    fn outpoint(number: u32) -> OutPoint {
        OutPoint::new(Txid::all_zeros(), number)
    }

    #[test]
    fn conflicting_transactions_are_reserved_for_once() {
        let mut reservations = Reservations::default();
        let mut sign = |gives, outpoints: &[u32]| {
            let outpoints: Vec<OutPoint> = outpoints.iter().copied().map(outpoint).collect();
            if let Some((outpoint, reservation)) = reservations.needed(Amount::from_sat(gives), &outpoints) {
                reservations.0.insert(outpoint, reservation);
            }
            reservations.total(0).to_sat()
        };
        assert_eq!(sign(0, &[1]), 0);
        assert_eq!(sign(100, &[1, 2]), 100);
        assert_eq!(sign(90, &[2, 1, 1]), 100);
        assert_eq!(sign(110, &[1]), 110);
        assert_eq!(sign(50, &[2, 3]), 160);
        assert_eq!(sign(7, &[]), 160);
    }

    #[test]
    fn the_stricter_of_two_reservations_holds() {
        let reservation = |amount, until| Reservation { amount: Amount::from_sat(amount), until };
        let mut reservations = Reservations::default();
        assert_eq!(reservations.stricter(&outpoint(1), reservation(5, Some(1))), reservation(5, Some(1)));
        reservations.0.insert(outpoint(1), reservation(7, Some(3)));
        assert_eq!(reservations.stricter(&outpoint(1), reservation(5, Some(4))), reservation(7, Some(4)));
        assert_eq!(reservations.stricter(&outpoint(1), reservation(9, None)), reservation(9, None));
        assert_eq!((reservations.total(2), reservations.total(3)), (Amount::from_sat(7), Amount::ZERO));
        reservations.0.remove(&outpoint(1));
        assert_eq!(reservations.0.len(), 0);
    }

    /// A random number below `bound` (xorshift).
    fn below(seed: &mut u64, bound: u64) -> u64 {
        *seed ^= *seed << 13;
        *seed ^= *seed >> 7;
        *seed ^= *seed << 17;
        *seed % bound
    }

    /// A signed transaction of the model.
    struct Signed {
        gives: u64,
        outpoints: Vec<u32>,
        confirmed: Option<u32>,
    }

    /// The most that can still be confirmed, by trying all sets of transactions.
    fn most(signed: &[&Signed], spent: &[u32]) -> u64 {
        let Some((first, rest)) = signed.split_first() else { return 0 };
        let without = most(rest, spent);
        if first.outpoints.iter().any(|outpoint| spent.contains(outpoint)) {
            return without;
        }
        without.max(first.gives + most(rest, &[spent, &first.outpoints[..]].concat()))
    }

    /// Signs, confirms and lets time pass at random. The amount confirmed within a period plus the most that could be confirmed now
    /// must never exceed the limit.
    #[test]
    fn no_sequence_gives_away_more_than_the_limit() {
        const LIMIT: u64 = 1_000;
        const PERIOD: u32 = 10;
        let mut refused = 0;
        for seed in 1..=1_000_u64 {
            let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let (mut reservations, mut signed, mut now) = (Reservations::default(), Vec::<Signed>::new(), 0_u32);
            for _ in 0..14 {
                match below(&mut random, 4) {
                    0 => now += below(&mut random, 8) as u32,
                    1 if !signed.is_empty() => {
                        let at = below(&mut random, signed.len() as u64) as usize;
                        let spent: Vec<u32> = confirmed_outpoints(&signed);
                        if signed[at].outpoints.iter().all(|outpoint| !spent.contains(outpoint)) {
                            signed[at].confirmed = Some(now);
                            for number in signed[at].outpoints.clone() {
                                let (outpoint, until) = (outpoint(number), Some(now + PERIOD));
                                if let Some(known) = reservations.0.get_mut(&outpoint) {
                                    known.until = until;
                                }
                            }
                        }
                    }
                    _ => {
                        let count = 1 + below(&mut random, 3);
                        let outpoints: Vec<u32> = (0..count).map(|_| below(&mut random, 6) as u32).collect();
                        let spent = confirmed_outpoints(&signed);
                        if outpoints.iter().any(|outpoint| spent.contains(outpoint)) {
                            continue;
                        }
                        let gives = below(&mut random, 600);
                        let asked: Vec<OutPoint> = outpoints.iter().copied().map(outpoint).collect();
                        let mut then = reservations.clone();
                        if let Some((outpoint, reservation)) = then.needed(Amount::from_sat(gives), &asked) {
                            then.0.insert(outpoint, reservation);
                        }
                        if then.total(now).to_sat() > LIMIT {
                            refused += 1;
                            continue;
                        }
                        reservations = then;
                        signed.push(Signed { gives, outpoints, confirmed: None });
                    }
                }
                let recent = signed.iter().filter(|one| one.confirmed.is_some_and(|at| at + PERIOD > now));
                let pending: Vec<&Signed> = signed.iter().filter(|one| one.confirmed.is_none()).collect();
                let given = recent.map(|one| one.gives).sum::<u64>() + most(&pending, &confirmed_outpoints(&signed));
                assert!(given <= LIMIT, "seed {seed}: {given}");
            }
        }
        assert!(refused > 500, "{refused}");
    }

    fn confirmed_outpoints(signed: &[Signed]) -> Vec<u32> {
        signed.iter().filter(|one| one.confirmed.is_some()).flat_map(|one| one.outpoints.clone()).collect()
    }
}
