//! Random operations on two subjects at once.

mod cast;
mod observe;
mod steps;

use std::fmt::Debug;

use super::bench::{Bench, WALLET, holds};
use super::{Failure, Outcome, Subject};
use crate::service::chain::Tip;
use crate::service::{Result as ServiceResult, Wallet};
use crate::wire::Secret;
use cast::Cast;
use steps::Walk;

/// The passphrase of the wallets that have one.
pub(super) const PASSPHRASE: &str = "pass";

/// A source of numbers that are the same for the same seed (SplitMix64).
pub(super) struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; 0 where that is 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.roll() % (end as u64).max(1)) as usize
    }

    /// True once in `of` times.
    pub fn once_in(&mut self, of: usize) -> bool {
        self.below(of) == 0
    }

    /// One of these.
    pub fn pick<T: Clone>(&mut self, of: &[T]) -> Option<T> {
        of.get(self.below(of.len())).cloned()
    }
}

/// Two subjects, and what has been done to both.
pub(super) struct Pair<'s> {
    pub one: Bench<'s>,
    pub other: Bench<'s>,
    done: Vec<String>,
}

impl Pair<'_> {
    /// Notes what is done next.
    pub fn note(&mut self, step: String) {
        self.done.push(step);
    }

    /// Does the same to both, and asks whether both answer the same: values as they are, errors by their kinds.
    pub fn both<T: PartialEq + Debug>(&self, what: &str, ask: impl Fn(&Bench<'_>) -> ServiceResult<T>) -> Outcome {
        self.give(what, ask).map(|_| ())
    }

    /// As [`Pair::both`], giving the answer; none where both refused.
    pub fn give<T: PartialEq + Debug>(
        &self,
        what: &str,
        ask: impl Fn(&Bench<'_>) -> ServiceResult<T>,
    ) -> Result<Option<T>, Failure> {
        let [one, other] = [&self.one, &self.other].map(|bench| ask(bench).map_err(|error| error.kind));
        if one == other { Ok(one.ok()) } else { Err(self.differ(what, &one, &other)) }
    }

    /// As [`Pair::both`], of what a bench finds out in several calls, none of which may fail.
    pub fn agree<T: PartialEq + Debug>(&self, what: &str, ask: impl Fn(&Bench<'_>) -> Result<T, Failure>) -> Outcome {
        let [one, other] = [&self.one, &self.other].map(&ask);
        if one.is_ok() && one == other { Ok(()) } else { Err(self.differ(what, &one, &other)) }
    }

    fn differ(&self, what: &str, one: &dyn Debug, other: &dyn Debug) -> Failure {
        Failure(format!("{what}:\none gives   {one:?}\nother gives {other:?}\nafter:\n  {}", self.done.join("\n  ")))
    }

    /// Lets the same happen at both nodes.
    pub fn happen(&self, happen: impl Fn(&Bench<'_>)) {
        happen(&self.one);
        happen(&self.other);
    }
}

/// Plays `steps` random operations on two subjects at once, the same ones for the same seed, and compares after each all that
/// the contract determines: the answer to the operation, the errors by their kinds, and the whole wallet.
///
/// Left open by the contract, and so not compared, are the details of errors, the bytes of places in lists, the lengths of
/// batches, random keys, and how far a running rescan has come. Both subjects must keep equally many scripts derived ahead.
///
/// # Errors
/// The first difference, and the operations that led to it.
pub fn compare(seed: u64, steps: u32, one: &dyn Subject, other: &dyn Subject) -> Outcome {
    holds("both keep as many scripts ahead", one.keypool() == other.keypool())?;
    let mut pair = Pair { one: Bench::new(one), other: Bench::new(other), done: Vec::new() };
    let mut dice = Dice(seed);
    let sealed = dice.once_in(3);
    pair.note(format!("seed {seed}: a wallet, sealed: {sealed}"));
    pair.both("making the wallet", |bench| {
        bench.try_create(WALLET, |options| {
            options.passphrase = if sealed { Secret::new(PASSPHRASE.into()) } else { Secret::default() };
        })
    })?;
    let cast = Cast::new()?;
    if sealed {
        let unlock = |wallet: &dyn Wallet, scope| wallet.unlock(scope, Secret::new(PASSPHRASE.into()), 100_000_000);
        pair.both("unlocking the wallet", |bench| bench.ask(unlock))?;
    }
    pair.both("the first import", |bench| bench.import(vec![cast.first_import()]))?;
    let mut walk = Walk::new(pair, dice, cast);
    for _ in 0..steps {
        walk.step()?;
        observe::everything(&walk.pair, &walk.cast)?;
    }
    Ok(())
}

/// The tip of both nodes.
pub(super) fn tip(pair: &Pair<'_>) -> Result<Tip, Failure> {
    let (one, other) = (pair.one.tip()?, pair.other.tip()?);
    holds("both nodes have the same tip", one == other)?;
    Ok(one)
}
