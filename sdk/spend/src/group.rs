//! Groups of coins that are spent together, and the filters of eligible groups.

use std::collections::HashMap;

use bitcoin::{Script, SignedAmount};
use outrigger_values::amount::Saturating;

use crate::algorithm::Candidate;
use crate::coin::{Coin, OutputKind};

/// The most coins in a group (`OUTPUT_GROUP_MAX_ENTRIES`). More would make the fee surprisingly high.
pub const MAX_GROUP: usize = 100;

/// The filter of eligible groups (`CoinEligibilityFilter` of Bitcoin Core).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Filter {
    /// The least depth of coins from the wallet's own transactions, in blocks.
    pub depth_of_ours: u32,
    /// The least depth of other coins, in blocks.
    pub depth_of_others: u32,
    /// The most unconfirmed ancestors of a group, the coins' own transactions included.
    pub max_ancestors: u64,
    /// The most unconfirmed descendants of an ancestor, itself included.
    pub max_descendants: u64,
    /// Whether partial groups are eligible.
    pub partial_groups: bool,
    /// Whether a selection may mix output types.
    pub mixed_types: bool,
}

/// Coins that are spent together (`OutputGroup` of Bitcoin Core).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Group {
    /// The position of its first coin in [`Groups::coins`].
    begin: usize,
    len: usize,
    pub kind: OutputKind,
    /// The total value.
    pub value: SignedAmount,
    /// The fee for spending the coins, bump fees included.
    pub fee: SignedAmount,
    long_term_fee: SignedAmount,
    weight: i64,
    depth: u32,
    from_us: bool,
    /// The sum over the coins.
    pub ancestors: u64,
    /// The greatest number of any coin.
    pub descendants: u64,
    /// Whether this is the last group of a script that also has full groups.
    is_partial: bool,
}

impl Group {
    fn new(begin: usize, kind: OutputKind) -> Self {
        Self {
            begin,
            len: 0,
            kind,
            value: SignedAmount::ZERO,
            fee: SignedAmount::ZERO,
            long_term_fee: SignedAmount::ZERO,
            weight: 0,
            depth: u32::MAX,
            from_us: true,
            ancestors: 0,
            descendants: 0,
            is_partial: false,
        }
    }

    fn add(&mut self, coin: &Coin) {
        self.len += 1;
        self.value = self.value.saturating_add(coin.value());
        self.fee = self.fee.saturating_add(coin.fee());
        self.long_term_fee = self.long_term_fee.saturating_add(coin.long_term_fee);
        self.weight = self.weight.saturating_add(coin.selection_weight());
        self.depth = self.depth.min(coin.depth);
        self.from_us &= coin.from_us;
        self.ancestors = self.ancestors.saturating_add(coin.ancestors);
        self.descendants = self.descendants.max(coin.descendants);
    }

    /// The amount that selection counts: the value, less the fee unless the recipients pay it.
    pub fn amount(&self, subtract_fee: bool) -> SignedAmount {
        if subtract_fee { self.value } else { self.value.saturating_sub(self.fee) }
    }

    /// Whether the group is eligible: its depth and ancestry, and whether it is partial.
    pub fn passes(&self, filter: &Filter) -> bool {
        let depth = if self.from_us { filter.depth_of_ours } else { filter.depth_of_others };
        let deep = self.depth >= depth;
        let ancestry = self.ancestors <= filter.max_ancestors && self.descendants <= filter.max_descendants;
        deep && ancestry && (filter.partial_groups || !self.is_partial)
    }

    /// The group as a candidate; `number` is its position in [`Groups::groups`].
    pub fn candidate(&self, number: usize, subtract_fee: bool) -> Candidate {
        Candidate {
            amount: self.amount(subtract_fee),
            fee: self.fee,
            long_term_fee: self.long_term_fee,
            weight: self.weight,
            group: number,
        }
    }
}

#[derive(Clone, Default, Debug)]
pub struct Groups {
    /// The positions of the coins, sorted by group.
    coins: Vec<usize>,
    pub groups: Vec<Group>,
}

impl Groups {
    /// One group for each of these coins.
    pub fn single(coins: &[Coin], positions: &[usize]) -> Self {
        let group = |(begin, position): (usize, &usize)| {
            let coin = coins.get(*position)?;
            let mut group = Group::new(begin, coin.kind);
            group.add(coin);
            Some(group)
        };
        Self { coins: positions.to_vec(), groups: positions.iter().enumerate().filter_map(group).collect() }
    }

    /// Groups of up to [`MAX_GROUP`] coins of a script. The last group of a script with more coins is partial.
    pub fn by_script(coins: &[Coin], positions: &[usize]) -> Self {
        let mut members: Vec<(OutputKind, Vec<usize>)> = Vec::new();
        let mut known: HashMap<(&Script, OutputKind), usize> = HashMap::new();
        for position in positions {
            let Some(coin) = coins.get(*position) else { continue };
            let next = members.len();
            let number = *known.entry((&coin.output.script_pubkey, coin.kind)).or_insert(next);
            match members.get_mut(number) {
                Some((_, members)) => members.push(*position),
                None => members.push((coin.kind, vec![*position])),
            }
        }
        let mut all = Self::default();
        for (kind, members) in members {
            for part in members.chunks(MAX_GROUP) {
                let mut group = Group::new(all.coins.len(), kind);
                part.iter().filter_map(|position| coins.get(*position)).for_each(|coin| group.add(coin));
                all.coins.extend_from_slice(part);
                all.groups.push(group);
            }
            if members.len() > MAX_GROUP
                && let Some(rest) = all.groups.last_mut()
            {
                // Bitcoin Core treats it as partial even if it is full.
                rest.is_partial = true;
            }
        }
        all
    }

    /// The positions of a group's coins.
    pub fn members(&self, group: usize) -> &[usize] {
        let group = self.groups.get(group);
        group.and_then(|group| self.coins.get(group.begin..group.begin + group.len)).unwrap_or_default()
    }
}
