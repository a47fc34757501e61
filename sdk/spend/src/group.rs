//! Coins that are spent together or not at all, and which of them are eligible.

use std::collections::HashMap;

use bitcoin::{Script, SignedAmount};
use outrigger_values::amount::Saturating;

use crate::algorithm::Candidate;
use crate::coin::{Coin, OutputKind};

/// The most coins of a group (`OUTPUT_GROUP_MAX_ENTRIES`): a greater one would cost a surprising fee.
pub const MAX_GROUP: usize = 100;

/// Which groups may be spent: what is asked of them grows less from one attempt to the next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Filter {
    /// The least depth of coins that the wallet paid itself, in blocks.
    pub depth_of_ours: u32,
    /// The least depth of coins that others paid, in blocks.
    pub depth_of_others: u32,
    /// The most unconfirmed transactions that the coins build on, those that they are outputs of included.
    pub max_ancestors: u64,
    /// The most unconfirmed transactions that build on one of these, it included.
    pub max_descendants: u64,
    /// Whether the group with the rest of an address counts, beside full ones.
    pub partial_groups: bool,
    /// Whether coins of several types may be taken together.
    pub mixed_types: bool,
}

/// Coins that are spent together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Group {
    /// Where its coins begin in [`Groups::coins`], and how many there are.
    begin: usize,
    len: usize,
    /// The type of their outputs.
    pub kind: OutputKind,
    /// The sum of their values.
    pub value: SignedAmount,
    /// The fee for spending them, their ancestors paid for.
    pub fee: SignedAmount,
    long_term_fee: SignedAmount,
    weight: i64,
    depth: u32,
    from_us: bool,
    /// The sum of their numbers of ancestors.
    pub ancestors: u64,
    /// The greatest of their numbers of descendants.
    pub descendants: u64,
    /// Whether it has the rest of the coins of a script, beside full groups.
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

    /// What it counts for: its value, less the fee unless the recipients pay that.
    pub fn amount(&self, subtract_fee: bool) -> SignedAmount {
        if subtract_fee { self.value } else { self.value.saturating_sub(self.fee) }
    }

    /// Whether a filter lets it pass, but for the rule of partial groups.
    pub fn is_eligible(&self, filter: &Filter) -> bool {
        let depth = if self.from_us { filter.depth_of_ours } else { filter.depth_of_others };
        self.depth >= depth && self.ancestors <= filter.max_ancestors && self.descendants <= filter.max_descendants
    }

    /// Whether a filter lets it pass.
    pub fn passes(&self, filter: &Filter) -> bool {
        self.is_eligible(filter) && (filter.partial_groups || !self.is_partial)
    }

    /// It as the algorithms see it; `number` is its own.
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

/// The groups of some coins.
#[derive(Clone, Default, Debug)]
pub struct Groups {
    /// The positions of the coins, those of a group together.
    coins: Vec<usize>,
    /// The groups.
    pub groups: Vec<Group>,
}

impl Groups {
    /// Each of these coins alone.
    pub fn single(coins: &[Coin], positions: &[usize]) -> Self {
        let group = |(begin, position): (usize, &usize)| {
            let coin = coins.get(*position)?;
            let mut group = Group::new(begin, coin.kind);
            group.add(coin);
            Some(group)
        };
        Self { coins: positions.to_vec(), groups: positions.iter().enumerate().filter_map(group).collect() }
    }

    /// The coins of a script together, [`MAX_GROUP`] at most; the rest makes a partial group.
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
                // The last one is left out even where it happens to be full.
                rest.is_partial = true;
            }
        }
        all
    }

    /// The positions of the coins of a group.
    pub fn members(&self, group: usize) -> &[usize] {
        let group = self.groups.get(group);
        group.and_then(|group| self.coins.get(group.begin..group.begin + group.len)).unwrap_or_default()
    }
}
