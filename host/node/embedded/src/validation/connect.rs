//! Rules of the coins that a block spends and creates.

use std::collections::{HashMap, HashSet};

use bitcoin::{Amount, OutPoint, Transaction, Txid};
use outrigger_service::chain::{Coin, SpentOutputs, Tip};
use outrigger_values::amount::Saturating;

use super::scripts::{describe_input, verify_all};
use super::transaction::total_output;
use super::{ConnectError, ValidationContext, ValidationError, check_inputs, sequence_lock};
use crate::EmbeddedError;
use crate::decode::NamedBlock;
use crate::params::{MAX_BLOCK_SIGOPS_COST, subsidy};
use outrigger_script::parse::is_unspendable;
use outrigger_script::{Flags, TxContext, transaction_sigop_cost};

/// Checks a block against the coins. Its parent must be the tip of `context`. `scripts` is false if the scripts were
/// verified before. Returns the coins that each transaction spends; the coinbase's entry is empty.
///
/// # Errors
/// [`ConnectError::Refused`] with the first broken rule.
pub fn connect(
    context: &ValidationContext,
    block: &NamedBlock,
    parent: &Tip,
    scripts: bool,
) -> Result<Vec<SpentOutputs>, ConnectError> {
    let result = check_coins(context, block, parent, scripts);
    // The BIP 30 error precedes all others. If the other checks pass, only the coinbase can break BIP 30: any other
    // duplicate spends coins that the original has already spent.
    let suspects = if matches!(result, Err(ConnectError::Refused(_))) { block.txdata.len() } else { 1 };
    match overwriting(context, block.txids().take(suspects))? {
        Some(error) => Err(error.into()),
        None => result,
    }
}

fn check_coins(
    context: &ValidationContext,
    block: &NamedBlock,
    parent: &Tip,
    scripts: bool,
) -> Result<Vec<SpentOutputs>, ConnectError> {
    let mut session = Session::new(context, block, parent);
    let mut unverified = Vec::new();
    let mut found = Ok(());
    for (index, (tx, ids)) in block.transactions().enumerate() {
        found = session.apply(tx, ids.txid, index);
        if found.is_err() {
            break;
        }
        if scripts && index > 0 && !context.cache.contains(&ids.wtxid, Flags::CONSENSUS) {
            let coins = session.spent.last().map_or(&[][..], |spent| &spent.coins);
            let spent: Vec<_> = coins.iter().map(|coin| Some(coin.output.clone())).collect();
            unverified.push(TxContext::new(tx, spent));
        }
    }
    if let Err(ConnectError::Node(error)) = found {
        return Err(error.into());
    }
    // A script error precedes the errors of later transactions and of the coinbase's amount.
    verify_all(&unverified, Flags::CONSENSUS, context.threads).map_err(|(place, input, error)| {
        let detail = unverified.get(place).map(|failed| describe_input(failed.tx(), input)).unwrap_or_default();
        ValidationError::new(format!("{} ({error})", context.script_reason)).with_detail(detail)
    })?;
    found?;
    let allowed = subsidy(parent.height + 1).saturating_add(session.fees);
    if let Some(paid) = block.txdata.first().map(total_output).filter(|paid| *paid > allowed) {
        let (paid, allowed) = (paid.to_sat(), allowed.to_sat());
        let detail = format!("coinbase pays too much (actual={paid} vs limit={allowed})");
        return Err(ValidationError::new("bad-cb-amount").with_detail(detail).into());
    }
    Ok(session.spent)
}

fn missing(txid: Txid) -> ValidationError {
    let detail = format!("CheckTxInputs: inputs missing/spent in transaction {txid}");
    ValidationError::new("bad-txns-inputs-missingorspent").with_detail(detail)
}

/// The BIP 30 error, if one of these transactions exists with unspent outputs.
fn overwriting(
    context: &ValidationContext,
    mut txids: impl Iterator<Item = Txid>,
) -> Result<Option<ValidationError>, EmbeddedError> {
    let found = txids.find_map(|txid| match context.store.has_coin_of(context.txn, &txid) {
        Ok(false) => None,
        found => Some(found),
    });
    Ok(found
        .transpose()?
        .map(|_| ValidationError::new("bad-txns-BIP30").with_detail("tried to overwrite transaction".to_owned())))
}

/// The changes to the coins while a block's transactions are applied.
struct Session<'a> {
    context: &'a ValidationContext<'a>,
    block: &'a NamedBlock,
    parent: &'a Tip,
    /// The applied transactions, and their positions.
    done: HashMap<Txid, usize>,
    gone: HashSet<OutPoint>,
    spent: Vec<SpentOutputs>,
    fees: Amount,
    sigops: u64,
}

impl<'a> Session<'a> {
    fn new(context: &'a ValidationContext<'a>, block: &'a NamedBlock, parent: &'a Tip) -> Self {
        let count = block.txdata.len();
        Self {
            context,
            block,
            parent,
            done: HashMap::with_capacity(count),
            gone: HashSet::new(),
            spent: Vec::with_capacity(count),
            fees: Amount::ZERO,
            sigops: 0,
        }
    }

    /// Checks the next transaction, except for its scripts, and applies it.
    fn apply(&mut self, tx: &Transaction, txid: Txid, index: usize) -> Result<(), ConnectError> {
        let coins = if index == 0 { Vec::new() } else { self.spend(tx, txid)? };
        let mut outputs = coins.iter().map(|coin| &coin.output);
        let cost = transaction_sigop_cost(tx, |_| outputs.next(), Flags::CONSENSUS).ok_or_else(|| missing(txid))?;
        self.sigops += cost;
        if self.sigops > MAX_BLOCK_SIGOPS_COST {
            return Err(ValidationError::new("bad-blk-sigops").with_detail("too many sigops".to_owned()).into());
        }
        self.gone.extend(tx.input.iter().take(coins.len()).map(|input| input.previous_output));
        self.done.insert(txid, index);
        self.spent.push(SpentOutputs { coins });
        Ok(())
    }

    /// The coin, if it is unspent at this point of the block.
    fn coin(&self, outpoint: &OutPoint) -> Result<Option<Coin>, EmbeddedError> {
        if self.gone.contains(outpoint) {
            return Ok(None);
        }
        let Some(index) = self.done.get(&outpoint.txid) else {
            return self.context.store.coin(self.context.txn, outpoint);
        };
        let output = self.block.txdata.get(*index).and_then(|tx| tx.output.get(outpoint.vout as usize));
        let output = output.filter(|output| !is_unspendable(output.script_pubkey.as_bytes())).cloned();
        Ok(output.map(|output| Coin { output, height: self.parent.height + 1, coinbase: *index == 0 }))
    }

    /// Checks that a transaction's coins exist, are mature, cover its outputs and are not locked. Returns them.
    fn spend(&mut self, tx: &Transaction, txid: Txid) -> Result<Vec<Coin>, ConnectError> {
        let height = self.parent.height + 1;
        let mut coins = Vec::with_capacity(tx.input.len());
        for input in &tx.input {
            let coin = self.coin(&input.previous_output)?;
            coins.push(coin.ok_or_else(|| missing(txid))?);
        }
        let fee = check_inputs(tx, &coins, height).map_err(|error| {
            let detail = format!("{} in transaction {txid}", error.detail);
            error.with_detail(detail)
        })?;
        self.fees = self.fees.saturating_add(fee);
        if fee > Amount::MAX_MONEY {
            return Err(ValidationError::new("bad-txns-fee-outofrange").into());
        }
        if self.fees > Amount::MAX_MONEY {
            let detail = "accumulated fee in the block out of range".to_owned();
            return Err(ValidationError::new("bad-txns-accumulated-fee-outofrange").with_detail(detail).into());
        }
        let heights = coins.iter().map(|coin| coin.height);
        let lock = sequence_lock(tx, heights, |height| self.median_time_at(height))?;
        if !lock.allows(height, self.parent.median_time) {
            let detail = format!("contains a non-BIP68-final transaction {txid}");
            return Err(ValidationError::new("bad-txns-nonfinal").with_detail(detail).into());
        }
        Ok(coins)
    }

    fn median_time_at(&self, height: u32) -> Result<u32, EmbeddedError> {
        let ValidationContext { store, txn, .. } = self.context;
        let hash = store.hash_at(txn, height)?.ok_or_else(|| EmbeddedError::corrupt("best", height))?;
        Ok(store.known_entry(txn, &hash)?.median_time)
    }
}
