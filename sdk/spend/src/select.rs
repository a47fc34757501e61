//! Coin selection by the rules of Bitcoin Core 29's wallet.
//!
//! The filters of groups go from strict to loose. Under each filter the algorithms run on each output type by itself,
//! and on mixed types only if no single type suffices. The result with the least waste wins. Waste is the cost of
//! spending the coins now instead of later, plus the cost of change or, without change, the excess.

use std::collections::BTreeMap;

use bitcoin::secp256k1::rand::Rng;
use bitcoin::secp256k1::rand::seq::SliceRandom;
use bitcoin::{SignedAmount, Weight};
use outrigger_values::FeeRate;
use outrigger_values::amount::Saturating;

use crate::algorithm::{
    Candidate, SelectionFailure, SelectionResult, branch_and_bound, coin_grinder, knapsack, single_random_draw,
};
use crate::bump::BumpFees;
use crate::chain_limits::MAX_CHAIN;
use crate::coin::{Coin, OutputKind, sum};
use crate::error::SpendError;
use crate::group::{Filter, Groups, MAX_GROUP};

pub(crate) const INPUTS_TOO_SMALL: SpendError = SpendError::rule(
    "The preselected coins total amount does not cover the transaction target. Please allow other inputs to be automatically selected or include more coins manually",
);
/// The coins would suffice, but some are in unconfirmed chains that the mempool does not accept.
pub(crate) const UNCONFIRMED_CHAIN: SpendError = SpendError::rule(
    "Unconfirmed UTXOs are available, but spending them creates a chain of transactions that will be rejected by the mempool",
);
pub(crate) const TOO_MANY_INPUTS: SpendError = SpendError::rule(
    "The inputs size exceeds the maximum weight. Please try sending a smaller amount or manually consolidating your wallet's UTXOs",
);
pub(crate) const COMBINATION_TOO_HEAVY: SpendError = SpendError::rule(
    "The combination of the pre-selected inputs and the wallet automatic inputs selection exceeds the transaction maximum weight. Please try sending a smaller amount or manually consolidating your wallet's UTXOs",
);
pub(crate) const TOO_MANY_OUTPUTS: SpendError =
    SpendError::rule("Maximum transaction weight is less than transaction weight without inputs");
pub(crate) const NO_ROOM_FOR_CHANGE: SpendError =
    SpendError::rule("Maximum transaction weight is too low, can not accommodate change output");

/// The least change target, without fee (`CHANGE_LOWER`), in satoshi.
const CHANGE_LOWER: SignedAmount = SignedAmount::from_sat(50_000);
/// The greatest change target, without fee (`CHANGE_UPPER`), in satoshi.
const CHANGE_UPPER: SignedAmount = SignedAmount::from_sat(1_000_000);
/// CoinGrinder runs above this multiple of the long-term feerate.
const HIGH_FEERATE: u64 = 3;

/// The most candidates that a selection tries under all filters together. After that, it skips to the loosest filter.
const MAX_WORK: usize = 100_000;

/// The parameters of a selection (`CoinSelectionParams` of Bitcoin Core).
#[derive(Clone, Debug)]
pub struct Params {
    /// The feerate of the payment.
    pub feerate: FeeRate,
    /// The expected feerate of spending coins later (`-consolidatefeerate`).
    pub long_term_feerate: FeeRate,
    /// The size of the transaction without inputs and change, in virtual bytes.
    pub size_without_inputs: u64,
    /// The size of the change output, in virtual bytes.
    pub change_size: u64,
    /// The fee for the change output.
    pub change_fee: SignedAmount,
    /// The fee for the change output, and for spending it later.
    pub cost_of_change: SignedAmount,
    /// The least change worth an output.
    pub least_change: SignedAmount,
    /// The target for change in algorithms that make change, its fee included.
    pub change_target: SignedAmount,
    /// Whether the recipients pay the fee.
    pub subtract_fee: bool,
    /// Whether the coins of a script are spent together.
    pub group_by_script: bool,
    /// Whether unsafe coins may be spent.
    pub include_unsafe: bool,
    /// Whether the wallet's own unconfirmed change may be spent.
    pub spend_unconfirmed_change: bool,
    /// Whether coins in unconfirmed chains beyond the mempool's limits are left out (`-walletrejectlongchains`).
    pub reject_long_chains: bool,
    /// The greatest weight of the transaction.
    pub max_weight: Weight,
}

impl Params {
    /// A random change target for this average payment. It is similar to the payment, so that an observer cannot identify
    /// the change, and random, so that it does not identify the wallet software.
    pub fn random_change_target(
        payment: SignedAmount,
        change_fee: SignedAmount,
        random: &mut impl Rng,
    ) -> SignedAmount {
        let beyond = if payment <= CHANGE_LOWER / 2 {
            SignedAmount::ZERO
        } else {
            let most = payment.saturating_add(payment).min(CHANGE_UPPER) - CHANGE_LOWER;
            SignedAmount::from_sat(random.gen_range(0..most.to_sat()))
        };
        change_fee + CHANGE_LOWER + beyond
    }

    /// The weight available for inputs, in weight units.
    fn weight_for_inputs(&self) -> i64 {
        let without = self.size_without_inputs.saturating_mul(Weight::WITNESS_SCALE_FACTOR);
        self.max_weight.to_wu().cast_signed().saturating_sub_unsigned(without)
    }

    fn filters(&self) -> Vec<Filter> {
        let filter = |depth_of_ours, depth_of_others, chain, partial_groups| Filter {
            depth_of_ours,
            depth_of_others,
            max_ancestors: chain,
            max_descendants: chain,
            partial_groups,
            mixed_types: true,
        };
        let mut filters = vec![Filter { mixed_types: false, ..filter(1, 6, 0, false) }, filter(1, 1, 0, false)];
        if self.spend_unconfirmed_change {
            filters.push(filter(0, 1, 2, false));
            filters.push(filter(0, 1, (MAX_CHAIN / 3).min(4), false));
            filters.push(filter(0, 1, MAX_CHAIN / 2, false));
            filters.push(filter(0, 1, MAX_CHAIN - 1, true));
            if self.include_unsafe {
                filters.push(filter(0, 0, MAX_CHAIN - 1, true));
            }
            if !self.reject_long_chains {
                filters.push(filter(0, 1, u64::MAX, true));
            }
        }
        filters
    }
}

/// The selected coins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Selection {
    /// The positions of the coins.
    pub coins: Vec<usize>,
    /// The recipients' amounts and the fee for the outputs.
    pub target: SignedAmount,
    /// The weight of the inputs, in weight units.
    weight: i64,
    /// The saving on the coins' separate bump fees, since common ancestors count once.
    bump_discount: SignedAmount,
    waste: SignedAmount,
}

impl Selection {
    fn new(positions: Vec<usize>, target: SignedAmount, coins: &[Coin]) -> Self {
        let weight = each(coins, &positions).map(Coin::selection_weight).sum();
        Self { coins: positions, target, weight, bump_discount: SignedAmount::ZERO, waste: SignedAmount::ZERO }
    }

    /// The total value.
    pub fn value(&self, coins: &[Coin]) -> SignedAmount {
        sum(each(coins, &self.coins).map(Coin::value))
    }

    /// The bump fee of all selected coins together.
    pub fn bump_fees(&self, coins: &[Coin]) -> SignedAmount {
        each(coins, &self.coins).map(|coin| coin.bump_fee).sum::<SignedAmount>() - self.bump_discount
    }

    fn excess(&self, coins: &[Coin], params: &Params) -> SignedAmount {
        let amount = match params.subtract_fee {
            true => self.value(coins),
            false => sum(each(coins, &self.coins).map(Coin::effective_value)).saturating_add(self.bump_discount),
        };
        amount.saturating_sub(self.target)
    }

    /// The change; `None` if it is not worth an output.
    pub fn change(&self, coins: &[Coin], params: &Params) -> Option<SignedAmount> {
        let fee = if params.subtract_fee { SignedAmount::ZERO } else { params.change_fee };
        Some(self.excess(coins, params) - fee).filter(|change| *change >= params.least_change)
    }

    fn weigh_waste(&mut self, coins: &[Coin], params: &Params) {
        let timing = sum(each(coins, &self.coins).map(|coin| coin.fee().saturating_sub(coin.long_term_fee)));
        let beyond = match self.change(coins, params) {
            Some(_) => params.cost_of_change,
            None => self.excess(coins, params),
        };
        self.waste = timing.saturating_sub(self.bump_discount).saturating_add(beyond);
    }
}

fn each<'a>(coins: &'a [Coin], positions: &'a [usize]) -> impl Iterator<Item = &'a Coin> {
    positions.iter().filter_map(|position| coins.get(*position))
}

/// The selection with the least waste; if equal, with the most inputs.
fn best(selections: Vec<Selection>) -> Option<Selection> {
    selections.into_iter().min_by_key(|selection| (selection.waste, std::cmp::Reverse(selection.coins.len())))
}

/// Selects coins for `target`: the recipients' amounts and the fee for the outputs. The first `preset` coins are always
/// selected; the others only if `add_inputs` is set and the preset ones do not suffice. Fails if the coins do not
/// suffice, or every selection is too heavy.
pub fn select(
    coins: &[Coin],
    preset: usize,
    target: SignedAmount,
    add_inputs: bool,
    params: &Params,
    bump_fees: &BumpFees,
    random: &mut impl Rng,
) -> Result<Selection, SpendError> {
    let counted = |coin: &Coin| if params.subtract_fee { coin.value() } else { coin.effective_value() };
    let named: Vec<usize> = (0..preset).collect();
    let covered = sum(each(coins, &named).map(counted));
    let missing = target.saturating_sub(covered);
    if missing > SignedAmount::ZERO && !add_inputs {
        return Err(INPUTS_TOO_SMALL);
    }
    if missing <= SignedAmount::ZERO {
        let mut selection = Selection::new(named, target, coins);
        selection.weigh_waste(coins, params);
        return Ok(selection);
    }
    let mut others: Vec<usize> = (preset..coins.len()).collect();
    let available = sum(each(coins, &others).map(counted));
    if missing > available {
        return Err(SpendError::InsufficientFunds);
    }
    if params.group_by_script && others.len() > MAX_GROUP {
        // The members of the partial group must not depend on the order of coins.
        others.shuffle(random);
    }
    let (all, positive) = if params.group_by_script {
        let worth =
            |position: &usize| coins.get(*position).is_some_and(|coin| coin.effective_value() > SignedAmount::ZERO);
        let positive: Vec<usize> = others.iter().copied().filter(worth).collect();
        (Groups::by_script(coins, &others), Some(Groups::by_script(coins, &positive)))
    } else {
        (Groups::single(coins, &others), None)
    };
    let search = Search { coins, target: missing, params, bump_fees, all, positive };
    let mut selection = search.run(&others, random)?;
    if preset > 0 {
        let named = Selection::new(named, covered, coins);
        selection.coins.splice(0..0, named.coins);
        selection.target = target;
        selection.weight += named.weight;
        if selection.weight > params.weight_for_inputs() {
            return Err(COMBINATION_TOO_HEAVY);
        }
    }
    Ok(selection)
}

/// A selection among the coins that no one preset.
struct Search<'a> {
    coins: &'a [Coin],
    target: SignedAmount,
    params: &'a Params,
    bump_fees: &'a BumpFees,
    all: Groups,
    /// The groups of only coins with a positive effective value, if coins are grouped by script.
    positive: Option<Groups>,
}

impl Search<'_> {
    fn run(&self, positions: &[usize], random: &mut impl Rng) -> Result<Selection, SpendError> {
        let filters = self.params.filters();
        self.check_discarded(positions, &filters)?;
        let mut failure = None;
        let mut work = 0_usize;
        for (number, filter) in filters.iter().enumerate() {
            if work > MAX_WORK && number + 1 < filters.len() {
                continue;
            }
            work += self.all.groups.iter().filter(|group| group.passes(filter)).count();
            match self.attempt(filter, random) {
                Ok(Some(selection)) => return Ok(selection),
                Ok(None) => {}
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        Err(failure.unwrap_or(SpendError::InsufficientFunds))
    }

    /// Fails if the groups that pass at least one filter do not suffice.
    fn check_discarded(&self, positions: &[usize], filters: &[Filter]) -> Result<(), SpendError> {
        let (mut discarded, mut in_long_chains) = (SignedAmount::ZERO, SignedAmount::ZERO);
        for group in self.all.groups.iter().chain(self.positive.iter().flat_map(|positive| &positive.groups)) {
            if filters.iter().any(|filter| group.passes(filter)) {
                continue;
            }
            discarded = discarded.saturating_add(group.amount(self.params.subtract_fee));
            if group.ancestors >= MAX_CHAIN || group.descendants >= MAX_CHAIN {
                in_long_chains = in_long_chains.saturating_add(group.amount(self.params.subtract_fee));
            }
        }
        let total = sum(each(self.coins, positions).map(Coin::value));
        if total.saturating_sub(discarded) >= self.target {
            return Ok(());
        }
        // Bitcoin Core 29 compares only the coins in long chains with the target.
        Err(if in_long_chains >= self.target { UNCONFIRMED_CHAIN } else { SpendError::InsufficientFunds })
    }

    /// The groups of only coins with a positive effective value if coins are grouped by script, else all groups.
    fn positive(&self) -> &Groups {
        self.positive.as_ref().unwrap_or(&self.all)
    }

    /// The groups that pass a filter.
    fn candidates(&self, groups: &Groups, filter: &Filter) -> impl Iterator<Item = (OutputKind, Candidate)> {
        let groups = groups.groups.iter().enumerate().filter(|(_, group)| group.passes(filter));
        groups.map(|(number, group)| (group.kind, group.candidate(number, self.params.subtract_fee)))
    }

    /// The groups that pass a filter, by output type.
    fn pools(&self, filter: &Filter) -> BTreeMap<OutputKind, Pools> {
        let mut pools: BTreeMap<_, Pools> = BTreeMap::new();
        for (kind, candidate) in self.candidates(&self.all, filter) {
            pools.entry(kind).or_default().all.push(candidate);
        }
        for (kind, candidate) in self.candidates(self.positive(), filter) {
            if candidate.amount > SignedAmount::ZERO {
                pools.entry(kind).or_default().positive.push(candidate);
            }
        }
        pools
    }

    /// Runs the algorithms on each output type by itself, then on all together.
    fn attempt(&self, filter: &Filter, random: &mut impl Rng) -> Result<Option<Selection>, SpendError> {
        let mut pools = self.pools(filter);
        let mut chosen = Vec::new();
        for pool in pools.values_mut() {
            chosen.extend(self.choose(pool, random)?);
        }
        if chosen.is_empty() && filter.mixed_types && pools.len() > 1 {
            let mut together = Pools::default();
            for pool in pools.into_values() {
                together.all.extend(pool.all);
                together.positive.extend(pool.positive);
            }
            return self.choose(&mut together, random);
        }
        Ok(best(chosen))
    }

    /// The best result of the algorithms; `None` if they find nothing. Fails if all results are too heavy.
    fn choose(&self, pool: &mut Pools, random: &mut impl Rng) -> Result<Option<Selection>, SpendError> {
        let Self { coins, target, params, .. } = *self;
        let max_weight = params.weight_for_inputs();
        if max_weight <= 0 {
            return Err(TOO_MANY_OUTPUTS);
        }
        let (mut chosen, mut too_heavy) = (Vec::new(), false);
        let mut keep = |taken: SelectionResult, groups: &Groups, chosen: &mut Vec<Selection>| match taken {
            Ok(taken) => {
                let positions = taken.into_iter().flat_map(|group| groups.members(group)).copied().collect();
                chosen.push(Selection::new(positions, target, coins));
            }
            Err(missed) => too_heavy |= missed == SelectionFailure::TooHeavy,
        };
        let positive = self.positive();
        // If the recipients pay the fee, users often expect change, and branch and bound makes none.
        if !params.subtract_fee {
            keep(
                branch_and_bound(&mut pool.positive, target, params.cost_of_change, max_weight),
                positive,
                &mut chosen,
            );
        }
        let with_change = max_weight - (params.change_size * Weight::WITNESS_SCALE_FACTOR).cast_signed();
        if with_change < 0 && chosen.is_empty() {
            return Err(NO_ROOM_FOR_CHANGE);
        }
        // If no set can be light enough, fail now: the searches would run to their step limits.
        let amount_of_all = sum(pool.all.iter().map(|candidate| candidate.amount));
        if amount_of_all >= target
            && most_within(&pool.all, max_weight).max(most_within(&pool.positive, max_weight)) < target
        {
            return Err(TOO_MANY_INPUTS);
        }
        let max_weight = with_change;
        keep(knapsack(&mut pool.all, target, params.change_target, max_weight, random), &self.all, &mut chosen);
        let high = params.long_term_feerate.to_sat_per_kvb().saturating_mul(HIGH_FEERATE);
        if params.feerate.to_sat_per_kvb() > high {
            keep(coin_grinder(&mut pool.positive, target, params.change_target, max_weight), positive, &mut chosen);
        }
        let drawn = target.saturating_add(CHANGE_LOWER).saturating_add(params.change_fee);
        keep(single_random_draw(&mut pool.positive, drawn, max_weight, random), positive, &mut chosen);
        if chosen.is_empty() {
            return if too_heavy { Err(TOO_MANY_INPUTS) } else { Ok(None) };
        }
        for selection in &mut chosen {
            let unconfirmed: Vec<&Coin> = each(coins, &selection.coins).filter(|coin| coin.depth == 0).collect();
            let one_by_one: SignedAmount = unconfirmed.iter().map(|coin| coin.bump_fee).sum();
            let together = self.bump_fees.combined(unconfirmed.iter().map(|coin| coin.outpoint.txid));
            selection.bump_discount = (one_by_one - together).max(SignedAmount::ZERO);
            selection.weigh_waste(coins, params);
        }
        Ok(best(chosen))
    }
}

#[derive(Default)]
struct Pools {
    all: Vec<Candidate>,
    positive: Vec<Candidate>,
}

/// An upper bound for the total amount of candidates within a weight. It assumes the least weight for all of them.
fn most_within(candidates: &[Candidate], max_weight: i64) -> SignedAmount {
    let lightest = candidates.iter().map(|candidate| candidate.weight).min().unwrap_or(1).max(1);
    let most = usize::try_from(max_weight / lightest).unwrap_or(0);
    let mut amounts: Vec<_> = candidates.iter().map(|candidate| candidate.amount.max(SignedAmount::ZERO)).collect();
    if most < amounts.len() {
        amounts.select_nth_unstable_by_key(most, |amount| std::cmp::Reverse(*amount));
        amounts.truncate(most);
    }
    sum(amounts.into_iter())
}
