//! Admits transactions to the mempool. The checks and their order are bitcoind's.

use std::collections::BTreeSet;

use bitcoin::{Amount, SignedAmount, Transaction, Txid};
use outrigger_service::chain::Coin;
use outrigger_service::mempool::PackageMember;
use outrigger_values::FeeRate;

use super::entry::{Entry, EntryTime, Offer, Totals, modified_fee, pays, virtual_size};
use super::policy::{check_dust, check_size, check_spends, check_standard};
use super::replace::{CandidateTransaction, INSUFFICIENT_FEE, check_replacement};
use super::truc::{Violation, is_truc};
use super::{Pool, View};
use crate::EmbeddedError;
use crate::params::MempoolLimits;
use crate::validation::{
    ValidationError, check_inputs, check_transaction, describe_input, is_final, sequence_lock, verify_transaction,
};
use outrigger_script::{Flags, transaction_sigop_cost};

/// The maximum signature operation cost of a transaction.
const MAX_SIGOPS_COST: u64 = 16_000;
/// The CPFP carve-out admits one descendant beyond the limit. It has at most this virtual size and one ancestor, so
/// that each party to a contract can bump its fee.
const CARVE_OUT_SIZE: u64 = 10_000;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Terms {
    New,
    /// A transaction returns after a reorganisation: minimum feerates and chain limits do not apply. A former entry of the
    /// mempool keeps its entry time.
    Again(Option<EntryTime>),
    /// A transaction from the mempool's file, with its entry time. All rules apply.
    Kept(EntryTime),
}

impl Terms {
    /// Whether minimum feerates and chain limits apply.
    fn is_held_to_limits(self) -> bool {
        matches!(self, Self::New | Self::Kept(_))
    }
}

/// The kind of submission, on which some rules depend.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rules {
    Alone(Terms),
    /// Alone, before the rest of its package.
    First,
    /// With the others of its package, which pay together.
    Together,
    /// With others, as a test: each must pay for itself, and none may replace an entry.
    Tried,
}

impl Rules {
    fn terms(self) -> Terms {
        match self {
            Self::Alone(terms) => terms,
            Self::First | Self::Together | Self::Tried => Terms::New,
        }
    }

    /// Whether the feerate of the package counts, instead of each transaction's.
    pub(super) fn pays_together(self) -> bool {
        self == Self::Together
    }

    /// Whether the transaction may replace its TRUC sibling.
    fn may_evict_sibling(self) -> bool {
        matches!(self, Self::Alone(_) | Self::First)
    }
}

#[derive(Debug)]
pub enum Rejection {
    Refused(ValidationError),
    /// The transaction is in the mempool.
    Known,
    /// The transaction is confirmed, with unspent outputs.
    InChain,
    /// An input is unknown or spent.
    MissingInputs,
    Node(EmbeddedError),
}

impl From<ValidationError> for Rejection {
    fn from(error: ValidationError) -> Self {
        Self::Refused(error)
    }
}

impl From<EmbeddedError> for Rejection {
    fn from(error: EmbeddedError) -> Self {
        Self::Node(error)
    }
}

/// bitcoind's reasons for a feerate below the relay minimum, and below the minimum after evictions.
const MIN_RELAY_FEE: &str = "min relay fee not met";
const MEMPOOL_MIN_FEE: &str = "mempool min fee not met";

impl Rejection {
    /// Whether the transaction might be admitted as part of a package (bitcoind's `TX_RECONSIDERABLE` and `TX_MISSING_INPUTS`).
    pub fn may_be_helped(&self, tx: &Transaction) -> bool {
        match self {
            Self::MissingInputs => true,
            Self::Refused(error) => match &*error.reason {
                MIN_RELAY_FEE => is_truc(tx),
                MEMPOOL_MIN_FEE => true,
                reason => reason.starts_with(INSUFFICIENT_FEE),
            },
            Self::Known | Self::InChain | Self::Node(_) => false,
        }
    }
}

/// An admissible transaction, and the entries that it replaces.
pub struct Admissible {
    pub entry: Entry,
    pub replaced: BTreeSet<Txid>,
}

impl Admissible {
    /// The result if the transaction is accepted alone.
    pub fn member(&self) -> PackageMember {
        self.entry.accepted(self.entry.own().feerate(), vec![self.entry.wtxid])
    }
}

/// A transaction that passed all checks except scripts and replacement.
pub(super) struct CheckedTransaction {
    pub entry: Entry,
    pub measured: CandidateTransaction,
    coins: Vec<Coin>,
}

impl CheckedTransaction {
    /// Checks the feerate against the sender's maximum; zero means no maximum.
    pub fn check_max_feerate(&self, most: FeeRate) -> Result<(), Rejection> {
        if most > FeeRate::ZERO && self.measured.feerate() > most {
            return Err(ValidationError::new("max feerate exceeded").into());
        }
        Ok(())
    }

    /// Verifies the scripts, unless they are cached.
    pub fn check_scripts(&self, view: &View, offer: &Offer) -> Result<(), ValidationError> {
        let cache = &view.node.cache;
        if cache.contains(&offer.wtxid, Flags::STANDARD) {
            return Ok(());
        }
        let spent = || self.coins.iter().map(|coin| Some(coin.output.clone())).collect();
        let verified = match offer.failed_script.get() {
            // An outpoint always names the same coin, so the script would fail again.
            Some(failed) => Err(*failed),
            None => verify_transaction(&offer.tx, spent(), Flags::STANDARD),
        };
        if let Err((index, error)) = verified {
            return Err(ValidationError::new(format!("mempool-script-verify-flag-failed ({error})"))
                .with_detail(describe_input(&offer.tx, index)));
        }
        cache.insert(offer.wtxid, Flags::STANDARD);
        Ok(())
    }
}

impl Pool {
    /// Checks a transaction against chain and mempool, and changes nothing. `max_feerate` is the sender's maximum; zero
    /// means no maximum.
    pub fn examine(
        &self,
        view: &View,
        offer: &Offer,
        rules: Rules,
        max_feerate: FeeRate,
    ) -> Result<Admissible, Rejection> {
        let examined = self.examine_alone(view, offer, rules, &[])?;
        examined.check_max_feerate(max_feerate)?;
        self.check_dust_spends(std::slice::from_ref(offer)).map_err(|(_, error)| error)?;
        let replaced = check_replacement(&self.graph, &self.limits, &offer.tx, &examined.measured)?;
        examined.check_scripts(view, offer)?;
        Ok(Admissible { entry: examined.entry, replaced })
    }

    /// The checks before those of replacement and scripts (bitcoind's `PreChecks`). `before` are the earlier
    /// transactions of its package.
    pub(super) fn examine_alone(
        &self,
        view: &View,
        offer: &Offer,
        rules: Rules,
        before: &[Offer],
    ) -> Result<CheckedTransaction, Rejection> {
        let tx = &*offer.tx;
        self.check_alone(view, tx)?;
        if let Some(entry) = self.graph.get(&offer.txid) {
            return Err(if entry.wtxid == offer.wtxid {
                Rejection::Known
            } else {
                ValidationError::new("txn-same-nonwitness-data-in-mempool").into()
            });
        }
        let conflicts: BTreeSet<_> =
            tx.input.iter().filter_map(|input| self.graph.spender(&input.previous_output)).copied().collect();
        if rules == Rules::Tried && !conflicts.is_empty() {
            return Err(ValidationError::new("bip125-replacement-disallowed").into());
        }
        let Some(coins) = self.find_coins(view, tx, before)? else {
            return Err(if view.has_coin_of(&offer.txid)? { Rejection::InChain } else { Rejection::MissingInputs });
        };
        let lock = sequence_lock(tx, coins.iter().map(|coin| coin.height), |height| view.median_time_at(height))?;
        if !lock.allows(view.next_height(), view.tip.median_time) {
            return Err(ValidationError::new("non-BIP68-final").into());
        }
        let fee = check_inputs(tx, &coins, view.next_height())?;
        check_spends(tx, &coins, &self.limits)?;
        let entry = self.measure(view, offer, rules, &coins, fee)?;
        let measured = self.check_place(&entry, rules, conflicts)?;
        Ok(CheckedTransaction { entry, measured, coins })
    }

    /// The checks that need no coins.
    pub fn check_alone(&self, view: &View, tx: &Transaction) -> Result<(), ValidationError> {
        check_transaction(tx)?;
        if tx.is_coinbase() {
            return Err(ValidationError::new("coinbase"));
        }
        check_standard(tx, &self.limits)?;
        check_size(tx)?;
        if !is_final(tx, view.next_height(), view.tip.median_time) {
            return Err(ValidationError::new("non-final"));
        }
        Ok(())
    }

    /// The coins that a transaction spends, from the chain, the mempool or `before`; `None` if one is missing.
    /// Unconfirmed outputs count as coins of the next block.
    pub fn find_coins(
        &self,
        view: &View,
        tx: &Transaction,
        before: &[Offer],
    ) -> Result<Option<Vec<Coin>>, EmbeddedError> {
        let mut coins = Vec::with_capacity(tx.input.len());
        for input in &tx.input {
            let outpoint = &input.previous_output;
            let beside = before.iter().find(|other| other.txid == outpoint.txid);
            let beside = beside.and_then(|other| other.tx.output.get(outpoint.vout as usize)).cloned();
            let coin = match beside.or_else(|| self.output(outpoint)) {
                Some(output) => Some(Coin { output, height: view.next_height(), coinbase: false }),
                None => view.coin(outpoint)?,
            };
            let Some(coin) = coin else { return Ok(None) };
            coins.push(coin);
        }
        Ok(Some(coins))
    }

    fn measure(
        &self,
        view: &View,
        offer: &Offer,
        rules: Rules,
        coins: &[Coin],
        fee: Amount,
    ) -> Result<Entry, Rejection> {
        let tx = &*offer.tx;
        let mut outputs = coins.iter().map(|coin| &coin.output);
        let sigops = transaction_sigop_cost(tx, |_| outputs.next(), Flags::STANDARD).ok_or(Rejection::MissingInputs)?;
        let weight = tx.weight();
        let size = virtual_size(weight, sigops);
        let delta = self.deltas.get(&offer.txid).copied().unwrap_or_default();
        let modified = modified_fee(fee, delta);
        let now = view.node.clock.now();
        check_dust(tx, fee, delta)?;
        if sigops > MAX_SIGOPS_COST {
            return Err(ValidationError::new("bad-txns-too-many-sigops").with_detail(sigops.to_string()).into());
        }
        if rules.terms().is_held_to_limits() {
            // Only a TRUC transaction may rely on its package here: the child of another transaction could be replaced, and
            // its fee would be lost.
            if !is_truc(tx) {
                check_pays(self.limits.relay_feerate, size, modified, MIN_RELAY_FEE)?;
            }
            if !rules.pays_together() {
                self.check_feerate(size, modified, now)?;
            }
        }
        let entered = match rules.terms() {
            Terms::Again(Some(entry_time)) | Terms::Kept(entry_time) => entry_time,
            Terms::Again(None) => EntryTime { time: now, height: view.tip.height, unbroadcast: false },
            // As in Bitcoin Core, submitpackage does not mark transactions: it finds them in the mempool already when it
            // broadcasts them.
            Terms::New => {
                EntryTime { time: now, height: view.tip.height, unbroadcast: matches!(rules, Rules::Alone(_)) }
            }
        };
        Ok(Entry {
            tx: offer.tx.clone(),
            raw: offer.raw.clone(),
            txid: offer.txid,
            wtxid: offer.wtxid,
            locked: offer.tx.lock_time.to_consensus_u32() != 0,
            weight,
            sigops,
            fee,
            delta,
            entered,
            order: 0,
            parents: BTreeSet::new(),
            children: BTreeSet::new(),
            ancestors: Totals::default(),
            descendants: Totals::default(),
        })
    }

    /// Checks a fee against both minimum feerates.
    pub(super) fn check_feerate(&self, size: u64, modified_fee: SignedAmount, now: u64) -> Result<(), ValidationError> {
        check_pays(self.demanded_feerate(now), size, modified_fee, MEMPOOL_MIN_FEE)?;
        check_pays(self.limits.relay_feerate, size, modified_fee, MIN_RELAY_FEE)
    }

    /// Checks chain limits, TRUC rules, and conflicts with ancestors.
    fn check_place(
        &self,
        entry: &Entry,
        rules: Rules,
        conflicts: BTreeSet<Txid>,
    ) -> Result<CandidateTransaction, ValidationError> {
        let inputs = entry.tx.input.iter().map(|input| input.previous_output.txid);
        let parents: BTreeSet<_> = inputs.filter(|parent| self.graph.get(parent).is_some()).collect();
        let ancestors = self.graph.ancestors(parents.iter().copied());
        let mut measured = CandidateTransaction {
            txid: entry.txid,
            size: entry.virtual_size(),
            modified_fee: entry.modified_fee(),
            parents,
            ancestors,
            conflicts,
            evicts_sibling: false,
        };
        if rules.terms().is_held_to_limits() {
            self.check_chain_limits(&measured, matches!(rules, Rules::Alone(_)) && !is_truc(&entry.tx))?;
        }
        match self.check_truc(entry, &measured) {
            Err(Violation { sibling: Some(sibling), .. }) if rules.may_evict_sibling() => {
                measured.conflicts.insert(sibling);
                measured.evicts_sibling = true;
            }
            outcome => outcome.map_err(|violation| violation.error)?,
        }
        if let Some(conflict) = measured.ancestors.intersection(&measured.conflicts).next() {
            return Err(ValidationError::new("bad-txns-spends-conflicting-tx")
                .with_detail(format!("{} spends conflicting transaction {conflict}", entry.txid)));
        }
        Ok(measured)
    }

    /// Checks the limits of ancestors and descendants. `may_carve_out` allows the CPFP carve-out.
    fn check_chain_limits(&self, measured: &CandidateTransaction, may_carve_out: bool) -> Result<(), ValidationError> {
        let mut limits = self.limits.clone();
        let check = |limits: &MempoolLimits| self.check_chain(measured.parents.clone(), 1, measured.size, limits);
        // The replaced entry no longer counts.
        if let (1, Some(replaced)) = (measured.conflicts.len(), measured.conflicts.first()) {
            limits.max_descendants += 1;
            limits.max_descendant_size += self.graph.get(replaced).map_or(0, |entry| entry.descendants.size);
        }
        let Err(error) = check(&limits) else { return Ok(()) };
        let carved_out = MempoolLimits {
            max_ancestors: 2,
            max_descendants: limits.max_descendants + 1,
            max_descendant_size: limits.max_descendant_size + CARVE_OUT_SIZE,
            ..limits
        };
        let carved = may_carve_out && measured.size <= CARVE_OUT_SIZE && check(&carved_out).is_ok();
        if carved { Ok(()) } else { Err(error) }
    }

    /// Checks the limits for `count` new transactions of `added` virtual bytes, in a walk from the parents to all ancestors.
    /// The walk always continues with the lowest txid, as in bitcoind, since the order decides which limit the error
    /// reports.
    pub(super) fn check_chain(
        &self,
        parents: BTreeSet<Txid>,
        count: u64,
        added: u64,
        limits: &MempoolLimits,
    ) -> Result<(), ValidationError> {
        let refuse = |detail: String| Err(ValidationError::new("too-long-mempool-chain").with_detail(detail));
        let MempoolLimits { max_ancestors, max_ancestor_size, max_descendants, max_descendant_size, .. } = limits;
        if parents.len() as u64 + count > *max_ancestors {
            return refuse(format!("too many unconfirmed parents [limit: {max_ancestors}]"));
        }
        let mut waiting = parents;
        let mut seen = BTreeSet::new();
        let mut size = added;
        while let Some(txid) = waiting.pop_first() {
            seen.insert(txid);
            let Some(ancestor) = self.graph.get(&txid) else { continue };
            size += ancestor.virtual_size();
            if ancestor.descendants.size + added > *max_descendant_size {
                return refuse(format!("exceeds descendant size limit for tx {txid} [limit: {max_descendant_size}]"));
            }
            if ancestor.descendants.count + count > *max_descendants {
                return refuse(format!("too many descendants for tx {txid} [limit: {max_descendants}]"));
            }
            if size > *max_ancestor_size {
                return refuse(format!("exceeds ancestor size limit [limit: {max_ancestor_size}]"));
            }
            for parent in &ancestor.parents {
                if !seen.contains(parent) {
                    waiting.insert(*parent);
                }
                if (waiting.len() + seen.len()) as u64 + count > *max_ancestors {
                    return refuse(format!("too many unconfirmed ancestors [limit: {max_ancestors}]"));
                }
            }
        }
        Ok(())
    }

    /// Adds a transaction, removes the entries that it replaces, and evicts. Returns whether the transaction stays.
    pub fn admit(&mut self, admissible: Admissible, now: u64) -> bool {
        let Admissible { entry, replaced } = admissible;
        let txid = entry.txid;
        self.enter(replaced, [entry], now);
        self.trim(now);
        self.has(&txid)
    }

    /// Adds transactions, and removes the entries that they replace. The caller evicts.
    pub fn enter(
        &mut self,
        replaced: impl IntoIterator<Item = Txid>,
        entries: impl IntoIterator<Item = Entry>,
        now: u64,
    ) {
        self.remove_all(replaced);
        entries.into_iter().for_each(|entry| self.add(entry, now));
    }
}

fn check_pays(rate: FeeRate, size: u64, fee: SignedAmount, reason: &'static str) -> Result<(), ValidationError> {
    let needed = rate.fee(size);
    if pays(fee, needed) {
        return Ok(());
    }
    Err(ValidationError::new(reason).with_detail(format!("{} < {}", fee.to_sat(), needed.to_sat())))
}
