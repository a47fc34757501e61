//! Whether a transaction may come into the mempool. The checks and their order are those of bitcoind.

use std::collections::BTreeSet;

use bitcoin::{Amount, SignedAmount, Transaction, Txid};
use outrigger_service::chain::Coin;
use outrigger_values::FeeRate;

use super::entry::{Entry, EntryTime, Offer, Totals, modified_fee, pays, virtual_size};
use super::policy::{check_dust, check_size, check_spends, check_standard};
use super::replace::{Measured, check_replacement};
use super::{Pool, View};
use crate::EmbeddedError;
use crate::validation::{
    ValidationError, check_inputs, check_transaction, describe_input, is_final, sequence_lock, verify_transaction,
};
use outrigger_node::events::{NodeEvent, Removal};
use outrigger_script::{Flags, transaction_sigop_cost};

/// The cost of signature operations that a transaction may have.
const MAX_SIGOPS_COST: u64 = 16_000;
/// One more transaction than allowed may build on another if it is at most this large (virtual bytes) and builds on
/// nothing else, so that each party to a contract can bump its fee.
const CARVE_OUT_SIZE: u64 = 10_000;

/// On what terms a transaction is offered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Terms {
    /// Anew, by someone who wants it relayed.
    New,
    /// Again, after a reorganisation: it need not pay, nor keep within the limits of what builds on what. What it had
    /// when it first came is kept, if it did.
    Again(Option<EntryTime>),
    /// Anew, after a start: it keeps what it had before, and must satisfy every rule.
    Kept(EntryTime),
}

impl Terms {
    /// Whether it must pay, and keep within the limits of what builds on what.
    fn is_held_to_limits(self) -> bool {
        matches!(self, Self::New | Self::Kept(_))
    }
}

/// Why a transaction may not come in.
#[derive(Debug)]
pub enum Rejection {
    /// It breaks a rule.
    Refused(ValidationError),
    /// It is here already.
    Known,
    /// It is confirmed already, with unspent outputs.
    InChain,
    /// An input is unknown or spent.
    MissingInputs,
    /// The node failed.
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

/// A transaction that may come in, and what must go for it.
pub struct Admissible {
    pub entry: Entry,
    replaced: BTreeSet<Txid>,
}

/// How many transactions may build on each other, and how large they may be together, in virtual bytes.
struct ChainLimits {
    ancestors: u64,
    ancestor_size: u64,
    descendants: u64,
    descendant_size: u64,
}

impl Pool {
    /// Checks a transaction against the chain and the mempool, and changes nothing.
    ///
    /// # Errors
    /// The first reason against it.
    pub fn examine(&self, view: &View, offer: &Offer, terms: Terms) -> Result<Admissible, Rejection> {
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
        let Some(coins) = self.find_coins(view, tx)? else {
            return Err(if view.has_coin_of(&offer.txid)? { Rejection::InChain } else { Rejection::MissingInputs });
        };
        let lock = sequence_lock(tx, coins.iter().map(|coin| coin.height), |height| view.median_time_at(height))?;
        if !lock.allows(view.next_height(), view.tip.median_time) {
            return Err(ValidationError::new("non-BIP68-final").into());
        }
        let fee = check_inputs(tx, &coins, view.next_height()).map_err(ValidationError::from)?;
        if self.limits.require_standard {
            check_spends(tx, &coins)?;
        }
        let entry = self.measure(view, offer, terms, &coins, fee)?;
        let replaced = self.check_place(&entry, terms, conflicts)?;
        check_scripts(view, offer, &coins)?;
        Ok(Admissible { entry, replaced })
    }

    /// The checks that need no coins.
    fn check_alone(&self, view: &View, tx: &Transaction) -> Result<(), ValidationError> {
        check_transaction(tx)?;
        if tx.is_coinbase() {
            return Err(ValidationError::new("coinbase"));
        }
        if self.limits.require_standard {
            check_standard(tx, &self.limits)?;
        }
        check_size(tx)?;
        if !is_final(tx, view.next_height(), view.tip.median_time) {
            return Err(ValidationError::new("non-final"));
        }
        Ok(())
    }

    /// The coins that a transaction spends, of the chain or of the mempool; none when one is not there. Those of the
    /// mempool count as coins of the next block.
    pub fn find_coins(&self, view: &View, tx: &Transaction) -> Result<Option<Vec<Coin>>, EmbeddedError> {
        let mut coins = Vec::with_capacity(tx.input.len());
        for input in &tx.input {
            let coin = match self.output(&input.previous_output) {
                Some(output) => Some(Coin { output, height: view.next_height(), coinbase: false }),
                None => view.coin(&input.previous_output)?,
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
        terms: Terms,
        coins: &[Coin],
        fee: Amount,
    ) -> Result<Entry, Rejection> {
        let tx = &*offer.tx;
        let mut outputs = coins.iter().map(|coin| &coin.output);
        let sigops =
            transaction_sigop_cost(tx, |_| outputs.next(), Flags::STANDARD).map_err(|_| Rejection::MissingInputs)?;
        let weight = tx.weight();
        let size = virtual_size(weight, sigops);
        let delta = self.deltas.get(&offer.txid).copied().unwrap_or_default();
        let modified = modified_fee(fee, delta);
        let now = view.node.time();
        if self.limits.require_standard {
            check_dust(tx, fee, delta, &self.limits)?;
        }
        if sigops > MAX_SIGOPS_COST {
            return Err(ValidationError::new("bad-txns-too-many-sigops").with_detail(sigops.to_string()).into());
        }
        if terms.is_held_to_limits() {
            self.check_feerate(size, modified, now)?;
        }
        let EntryTime { time, height, unbroadcast } = match terms {
            Terms::Again(Some(entry_time)) | Terms::Kept(entry_time) => entry_time,
            Terms::Again(None) => EntryTime { time: now, height: view.tip.height, unbroadcast: false },
            Terms::New => EntryTime { time: now, height: view.tip.height, unbroadcast: true },
        };
        Ok(Entry {
            tx: offer.tx.clone(),
            raw: offer.raw.clone(),
            txid: offer.txid,
            wtxid: offer.wtxid,
            weight,
            sigops,
            fee,
            delta,
            time,
            height,
            unbroadcast,
            order: 0,
            parents: BTreeSet::new(),
            children: BTreeSet::new(),
            ancestors: Totals::default(),
            descendants: Totals::default(),
        })
    }

    fn check_feerate(&self, size: u64, modified_fee: SignedAmount, now: u64) -> Result<(), ValidationError> {
        let check = |rate: FeeRate, reason: &'static str| {
            let needed = rate.fee(size);
            if pays(modified_fee, needed) {
                Ok(())
            } else {
                let detail = format!("{} < {}", modified_fee.to_sat(), needed.to_sat());
                Err(ValidationError::new(reason).with_detail(detail))
            }
        };
        check(self.demanded_feerate(now), "mempool min fee not met")?;
        check(self.limits.relay_feerate, "min relay fee not met")
    }

    /// Checks a transaction's place among the others. Gives those that it would replace.
    fn check_place(
        &self,
        entry: &Entry,
        terms: Terms,
        conflicts: BTreeSet<Txid>,
    ) -> Result<BTreeSet<Txid>, ValidationError> {
        let inputs = entry.tx.input.iter().map(|input| input.previous_output.txid);
        let parents: BTreeSet<_> = inputs.filter(|parent| self.graph.get(parent).is_some()).collect();
        let ancestors = self.graph.ancestors(parents.iter().copied());
        let measured = Measured {
            txid: entry.txid,
            size: entry.virtual_size(),
            modified_fee: entry.modified_fee(),
            parents,
            ancestors,
            conflicts,
        };
        if terms.is_held_to_limits() {
            self.check_chain_limits(&measured)?;
        }
        if let Some(conflict) = measured.ancestors.intersection(&measured.conflicts).next() {
            return Err(ValidationError::new("bad-txns-spends-conflicting-tx")
                .with_detail(format!("{} spends conflicting transaction {conflict}", entry.txid)));
        }
        check_replacement(&self.graph, &self.limits, &entry.tx, &measured)
    }

    /// Checks how many transactions build on each other, and how large they are together.
    fn check_chain_limits(&self, measured: &Measured) -> Result<(), ValidationError> {
        let mut limits = ChainLimits {
            ancestors: self.limits.max_ancestors,
            ancestor_size: self.limits.max_ancestor_size,
            descendants: self.limits.max_descendants,
            descendant_size: self.limits.max_descendant_size,
        };
        // The one that it replaces makes room for it.
        if let (1, Some(replaced)) = (measured.conflicts.len(), measured.conflicts.first()) {
            limits.descendants += 1;
            limits.descendant_size += self.graph.get(replaced).map_or(0, |entry| entry.descendants.size);
        }
        let Err(error) = self.check_chain(measured, &limits) else { return Ok(()) };
        let carved_out = ChainLimits {
            ancestors: 2,
            descendants: limits.descendants + 1,
            descendant_size: limits.descendant_size + CARVE_OUT_SIZE,
            ..limits
        };
        let carved = measured.size <= CARVE_OUT_SIZE && self.check_chain(measured, &carved_out).is_ok();
        if carved { Ok(()) } else { Err(error) }
    }

    /// Goes from the parents to all they build on, the least id of those found so far being the next, as bitcoind does:
    /// what is told of several limits depends on the order.
    fn check_chain(&self, measured: &Measured, limits: &ChainLimits) -> Result<(), ValidationError> {
        let refuse = |detail: String| Err(ValidationError::new("too-long-mempool-chain").with_detail(detail));
        let ChainLimits { ancestors, ancestor_size, descendants, descendant_size } = limits;
        if measured.parents.len() as u64 + 1 > *ancestors {
            return refuse(format!("too many unconfirmed parents [limit: {ancestors}]"));
        }
        let mut waiting = measured.parents.clone();
        let mut seen = BTreeSet::new();
        let mut size = measured.size;
        while let Some(txid) = waiting.pop_first() {
            seen.insert(txid);
            let Some(ancestor) = self.graph.get(&txid) else { continue };
            size += ancestor.virtual_size();
            if ancestor.descendants.size + measured.size > *descendant_size {
                return refuse(format!("exceeds descendant size limit for tx {txid} [limit: {descendant_size}]"));
            }
            if ancestor.descendants.count + 1 > *descendants {
                return refuse(format!("too many descendants for tx {txid} [limit: {descendants}]"));
            }
            if size > *ancestor_size {
                return refuse(format!("exceeds ancestor size limit [limit: {ancestor_size}]"));
            }
            for parent in &ancestor.parents {
                if !seen.contains(parent) {
                    waiting.insert(*parent);
                }
                if (waiting.len() + seen.len()) as u64 + 1 > *ancestors {
                    return refuse(format!("too many unconfirmed ancestors [limit: {ancestors}]"));
                }
            }
        }
        Ok(())
    }

    /// Takes a transaction in, and those that it replaces out.
    pub fn admit(&mut self, admissible: Admissible, now: u64, events: &mut Vec<NodeEvent>) -> bool {
        let Admissible { entry, replaced } = admissible;
        self.remove_all(replaced, Removal::Replaced, events);
        let (txid, tx) = (entry.txid, entry.tx.clone());
        self.add(entry);
        events.push(NodeEvent::TransactionAdded { transaction: tx, time: now, sequence: self.sequence });
        self.trim(now, events);
        self.graph.get(&txid).is_some()
    }
}

/// Verifies a transaction's scripts by the rules of relay, unless that was done before.
fn check_scripts(view: &View, offer: &Offer, coins: &[Coin]) -> Result<(), ValidationError> {
    let cache = &view.node.cache;
    if cache.contains(&offer.wtxid, Flags::STANDARD) {
        return Ok(());
    }
    let flags = if view.node.settings.mempool.require_standard { Flags::STANDARD } else { Flags::CONSENSUS };
    let spent = coins.iter().map(|coin| coin.output.clone()).collect();
    if let Err((index, error)) = verify_transaction(&offer.tx, spent, flags) {
        return Err(ValidationError::new(format!("mempool-script-verify-flag-failed ({error})"))
            .with_detail(describe_input(&offer.tx, index)));
    }
    cache.insert(offer.wtxid, flags);
    Ok(())
}
