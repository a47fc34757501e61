//! What a block does to the coins.

use std::collections::HashMap;

use bitcoin::{Block, OutPoint, Transaction};
use outrigger_sdk::service::chain::{Coin, SpentOutputs};

use super::scripts::{Job, verify_all};
use super::{Court, InputError, JudgeError, Parent, Refusal, check_inputs, is_unspendable, sequence_lock};
use crate::node::NodeError;
use crate::node::params::{MAX_BLOCK_SIGOPS_COST, MAX_MONEY};
use outrigger_sdk::script::{Flags, transaction_sigop_cost};

/// What a valid block does.
#[derive(Debug)]
pub struct Effect {
    /// The coins that each transaction spends, the coinbase none.
    pub spent: Vec<SpentOutputs>,
}

/// Checks what a block does to the coins as its parent left them. The chain that `court` shows must end with the
/// parent. `scripts` is false for a block whose scripts were found good before.
///
/// # Errors
/// [`JudgeError::Refused`] with the first rule that the block breaks.
pub fn connect(court: &Court, block: &Block, parent: &Parent, scripts: bool) -> Result<Effect, JudgeError> {
    check_overwriting(court, block)?;
    let mut session = Session { court, parent, created: HashMap::new(), spent: Vec::new(), fees: 0, sigops: 0 };
    let mut jobs = Vec::new();
    let mut found = Ok(());
    for (index, tx) in block.txdata.iter().enumerate() {
        found = session.apply(tx, index == 0);
        if found.is_err() {
            break;
        }
        if scripts && index > 0 && !court.cache.contains(&tx.compute_wtxid(), Flags::CONSENSUS) {
            let coins = session.spent.last().map_or(&[][..], |spent| &spent.coins);
            jobs.push(Job { tx, spent: coins.iter().map(|coin| coin.output.clone()).collect() });
        }
    }
    if let Err(JudgeError::Node(error)) = found {
        return Err(error.into());
    }
    // A script that fails comes before whatever is wrong with a later transaction, and before the coinbase's amount.
    verify_all(&jobs, Flags::CONSENSUS, court.threads)
        .map_err(|(_, error)| Refusal::new(format!("mandatory-script-verify-flag-failed ({error})")))?;
    found?;
    let allowed = court.params.subsidy(parent.height + 1).saturating_add(session.fees);
    if block.txdata.first().is_some_and(|coinbase| total(coinbase) > allowed) {
        return Err(Refusal::new("bad-cb-amount").into());
    }
    Ok(Effect { spent: session.spent })
}

/// Whether a transaction of the block has the id of one whose outputs are not all spent (BIP 30).
fn check_overwriting(court: &Court, block: &Block) -> Result<(), JudgeError> {
    for tx in &block.txdata {
        let txid = tx.compute_txid();
        for (vout, _) in (0_u32..).zip(&tx.output) {
            if court.store.has_coin(court.txn, &OutPoint { txid, vout })? {
                return Err(Refusal::new("bad-txns-BIP30").into());
            }
        }
    }
    Ok(())
}

fn total(tx: &Transaction) -> u64 {
    tx.output.iter().fold(0, |sum, output| sum.saturating_add(output.value.to_sat()))
}

/// The coins in the middle of a block.
struct Session<'a> {
    court: &'a Court<'a>,
    parent: &'a Parent,
    /// What the block created so far; none where it spent it again, or spent it of the chain.
    created: HashMap<OutPoint, Option<Coin>>,
    spent: Vec<SpentOutputs>,
    fees: u64,
    sigops: u64,
}

impl Session<'_> {
    /// Checks the next transaction in all but its scripts, and moves its coins.
    fn apply(&mut self, tx: &Transaction, coinbase: bool) -> Result<(), JudgeError> {
        let height = self.parent.height + 1;
        let coins = if coinbase { Vec::new() } else { self.spend(tx, height)? };
        let outputs: HashMap<_, _> =
            tx.input.iter().map(|input| input.previous_output).zip(coins.iter().map(|coin| &coin.output)).collect();
        let cost = transaction_sigop_cost(tx, |outpoint| outputs.get(outpoint).copied(), Flags::CONSENSUS)
            .map_err(|_| Refusal::new("bad-txns-inputs-missingorspent"))?;
        self.sigops += cost;
        if self.sigops > MAX_BLOCK_SIGOPS_COST {
            return Err(Refusal::new("bad-blk-sigops").into());
        }
        let txid = tx.compute_txid();
        for input in tx.input.iter().take(coins.len()) {
            self.created.insert(input.previous_output, None);
        }
        for (vout, output) in (0_u32..).zip(&tx.output) {
            if !is_unspendable(&output.script_pubkey) {
                self.created.insert(OutPoint { txid, vout }, Some(Coin { output: output.clone(), height, coinbase }));
            }
        }
        self.spent.push(SpentOutputs { coins });
        Ok(())
    }

    /// The coins a transaction spends, once they are found to be there, mature, enough and not locked.
    fn spend(&mut self, tx: &Transaction, height: u32) -> Result<Vec<Coin>, JudgeError> {
        let mut coins = Vec::with_capacity(tx.input.len());
        for input in &tx.input {
            let coin = match self.created.get(&input.previous_output) {
                Some(coin) => coin.clone(),
                None => self.court.store.coin(self.court.txn, &input.previous_output)?,
            };
            coins.push(coin.ok_or_else(|| Refusal::new("bad-txns-inputs-missingorspent"))?);
        }
        let fee = check_inputs(tx, &coins, height).map_err(|error: InputError| Refusal::from(error))?;
        self.fees = self.fees.saturating_add(fee);
        if fee > MAX_MONEY {
            return Err(Refusal::new("bad-txns-fee-outofrange").into());
        }
        if self.fees > MAX_MONEY {
            return Err(Refusal::new("bad-txns-accumulated-fee-outofrange").into());
        }
        let heights = coins.iter().map(|coin| coin.height);
        let lock = sequence_lock(tx, heights, |height| self.median_time_at(height))?;
        if !lock.allows(height, self.parent.median_time) {
            return Err(Refusal::new("bad-txns-nonfinal").into());
        }
        Ok(coins)
    }

    fn median_time_at(&self, height: u32) -> Result<u32, NodeError> {
        let Court { store, txn, .. } = self.court;
        let hash = store.hash_at(txn, height)?.ok_or_else(|| NodeError::corrupt("best", height))?;
        Ok(store.known_entry(txn, &hash)?.median_time)
    }
}
