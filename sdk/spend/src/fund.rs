//! Funds a transaction: selects coins and makes change for its recipients (`CreateTransaction` of Bitcoin Core).

use std::collections::{HashMap, HashSet};

use bitcoin::absolute::LockTime;
use bitcoin::secp256k1::rand::seq::SliceRandom;
use bitcoin::secp256k1::rand::{Rng, thread_rng};
use bitcoin::{Amount, ScriptBuf, Sequence, SignedAmount, Transaction, TxIn, TxOut, VarInt, Weight};
use outrigger_service::wallet::{ScriptInfo, WalletInfo};
use outrigger_standard::policy::{DUST_FEERATE, MAX_STANDARD_WEIGHT, dust_threshold};
use outrigger_values::amount::Saturating;
use outrigger_values::{FeeRate, RpcError, RpcErrorCode};
use serde_json::{Map, Value};

use crate::Services;
use crate::SpendSettings;
use crate::available::Available;
use crate::bump::BumpFees;
use crate::change::Change;
use crate::coin::{Coin, fee, signed, sum, unsigned};
use crate::control::{CoinControl, PresetInput, Recipient};
use crate::error::{FEE_TOO_HIGH, SpendError, money};
use crate::feerate::{ReasonedFeeRate, discard_feerate, feerate};
use crate::funding_options::FundingCall;
use crate::locktime;
use crate::select::{Params, Selection, select};
use crate::truc::{self, TRUC};
use crate::weight::{Signatures, output_weight, signed_weight};

/// The least `max_tx_weight`: that of the smallest standard transaction.
const MIN_TX_WEIGHT: Weight = Weight::from_wu(65 * Weight::WITNESS_SCALE_FACTOR);

/// The sequence of inputs that signal replaceability (BIP 125).
const REPLACEABLE: Sequence = Sequence::ENABLE_RBF_NO_LOCKTIME;
/// The sequence of inputs that do not signal replaceability. It still enables the locktime.
const FINAL: Sequence = Sequence::ENABLE_LOCKTIME_NO_RBF;
/// The size of a transaction without inputs and outputs, in virtual bytes: version, locktime, the number of inputs, and
/// one byte for the witness. The number of outputs is not counted.
const OVERHEAD: u64 = 10;

/// A funded, unsigned transaction.
#[derive(Debug)]
pub struct Funded {
    /// The transaction.
    pub transaction: Transaction,
    /// The fee.
    pub fee: Amount,
    /// The position of change; `None` without change.
    pub change_position: Option<usize>,
    /// The source of the feerate, as Bitcoin Core names it.
    pub fee_reason: &'static str,
    /// The outputs that its inputs spend, in the order of the inputs.
    pub spent: Vec<TxOut>,
    /// The wallet's solving data for the coins' scripts, for signing.
    pub scripts: HashMap<ScriptBuf, ScriptInfo>,
    /// The positions of its coins in [`Available::coins`].
    coins: Vec<usize>,
    /// The weight of the signed transaction.
    weight: Weight,
    change: Change,
}

impl Funded {
    /// Returns the change address to the wallet. For a transaction that is not used.
    pub fn give_back(self, services: Services<'_>) {
        self.change.give_back(services);
    }
}

/// Makes a transaction that pays these recipients.
///
/// It reserves a change address even if the transaction turns out to need none. On failure it returns the address. The
/// error is for the first broken rule in Bitcoin Core's order.
pub fn fund(
    services: Services<'_>,
    settings: &SpendSettings,
    recipients: &[Recipient],
    control: &CoinControl,
    random: &mut impl Rng,
) -> Result<Funded, SpendError> {
    if recipients.is_empty() {
        return Err(SpendError::rule("Transaction must have at least one recipient"));
    }
    // As bitcoind reads the amounts of a raw transaction.
    if recipients.iter().any(|to| to.amount.to_sat().cast_signed() < 0) {
        return Err(SpendError::rule("Transaction amounts must not be negative"));
    }
    let max_weight = match control.max_tx_weight.map(u64::try_from) {
        None => MAX_STANDARD_WEIGHT,
        Some(Ok(weight)) if (MIN_TX_WEIGHT.to_wu()..=MAX_STANDARD_WEIGHT.to_wu()).contains(&weight) => {
            Weight::from_wu(weight)
        }
        Some(_) => {
            let (least, most) = (MIN_TX_WEIGHT.to_wu(), MAX_STANDARD_WEIGHT.to_wu());
            let text = format!("Maximum transaction weight must be between {least} and {most}");
            return Err(SpendError::Rule(text.into()));
        }
    };
    let is_dust = |to: &Recipient| to.amount < dust_threshold(&to.script, DUST_FEERATE);
    if recipients.iter().any(is_dust) {
        return Err(SpendError::rule("Transaction amount too small"));
    }
    let feerate = feerate(services, settings, control)?;
    let discard = discard_feerate(services, settings)?;
    let wallet = services.host.wallet.info(services.scope)?;
    let change = Change::reserve(services, settings, &wallet, &control.change, recipients)?;
    let funding = Funding { services, settings, recipients, control, feerate, discard, max_weight, change: &change };
    let funded = funding.run(random);
    if funded.is_err() {
        change.give_back(services);
    }
    funded
}

/// Funds a transaction for fundrawtransaction, walletcreatefundedpsbt and send. The inputs, version and locktime are
/// kept, and the outputs are the recipients. `control` holds the method's defaults, which `options` change. The error
/// is for the first broken rule, with bitcoind's code.
pub fn fund_transaction(
    services: Services<'_>,
    settings: &SpendSettings,
    transaction: &Transaction,
    payers: &HashSet<usize>,
    options: Option<&Map<String, Value>>,
    below_minimum: bool,
    mut control: CoinControl,
) -> Result<Funded, RpcError> {
    let call = FundingCall {
        network: services.host.chain.network(services.scope)?,
        private_keys_enabled: services.host.wallet.info(services.scope)?.signs(),
        outputs: transaction.output.len(),
        below_minimum,
    };
    control.inputs = PresetInput::of(transaction);
    (control.lock_time, control.version) = (Some(transaction.lock_time), transaction.version);
    let lock = match options {
        Some(options) => call.read(options, &mut control)?,
        None => call.read_watching(None, &mut control).map(|()| false)?,
    };
    if transaction.output.is_empty() {
        return Err(RpcError::invalid_parameter("TX must have at least one output"));
    }
    let recipients = Recipient::of(&transaction.output, payers);
    if lock {
        services.host.pay.begin_payment(services.scope)?;
    }
    let funded = fund(services, settings, &recipients, &control, &mut thread_rng())
        .map_err(|error| error.with_code(RpcErrorCode::WALLET))?;
    if lock {
        let coins = funded.transaction.input.iter().map(|input| input.previous_output).collect();
        services.host.book.lock_coins(services.scope, coins, false)?;
    }
    Ok(funded)
}

struct Funding<'a> {
    services: Services<'a>,
    settings: &'a SpendSettings,
    recipients: &'a [Recipient],
    control: &'a CoinControl,
    feerate: ReasonedFeeRate,
    discard: FeeRate,
    max_weight: Weight,
    change: &'a Change,
}

impl Funding<'_> {
    fn run(&self, random: &mut impl Rng) -> Result<Funded, SpendError> {
        let Self { services, settings, control, .. } = *self;
        // Reserving the change address wrote to the wallet. All reads from here on see one state after that write.
        let wallet = services.host.wallet.info(services.scope)?;
        let mut params = self.params(&wallet)?;
        let subtract = params.subtract_fee;
        let outputs = if subtract { SignedAmount::ZERO } else { fee(self.feerate.feerate, params.size_without_inputs) };
        let target = self.paid().saturating_add(outputs);
        if target == SignedAmount::ZERO && control.inputs.is_empty() {
            return Err(SpendError::rule(if services.rules.non_zero_in_words {
                "Transaction requires one destination of non-zero value, a non-zero feerate, or a pre-selected input"
            } else {
                "Transaction requires one destination of non-0 value, a non-0 feerate, or a pre-selected input"
            }));
        }
        let mut available = Available::read(services, &wallet, control)?;
        let bump_fees = available.set_feerates(self.feerate.feerate, settings.consolidate_feerate)?;
        let is_truc = control.version == TRUC;
        if is_truc {
            let is_child = available.coins.iter().take(control.inputs.len()).any(|coin| coin.ancestors > 0);
            let limit = if is_child { truc::MAX_CHILD_WEIGHT } else { truc::MAX_WEIGHT };
            params.max_weight = params.max_weight.min(limit);
        }
        loop {
            let mut made = self.attempt(&available, &bump_fees, &mut params, target, &wallet, random)?;
            if !params.group_by_script
                && made.fee > Amount::ZERO
                && let Some(more) = settings.max_grouping_fee
            {
                params.group_by_script = true;
                let grouped = self.attempt(&available, &bump_fees, &mut params, target, &wallet, random);
                params.group_by_script = false;
                let limit = made.fee.saturating_add(more);
                made = grouped.ok().filter(|grouped| grouped.fee <= limit).unwrap_or(made);
            }
            if (is_truc && available.keep_light(&made.coins, made.weight))
                || available.drop_spent(services, &made.coins)?
                || (control.signable_only && available.drop_unsignable(services, &made.coins)?)
            {
                continue;
            }
            made.scripts = available.scripts;
            return Ok(made);
        }
    }

    fn paid(&self) -> SignedAmount {
        sum(self.recipients.iter().map(|to| signed(to.amount)))
    }

    fn average(&self) -> SignedAmount {
        self.paid() / i64::try_from(self.recipients.len()).unwrap_or(i64::MAX).max(1)
    }

    fn params(&self, wallet: &WalletInfo) -> Result<Params, SpendError> {
        let count = VarInt::from(self.recipients.len()).size() as u64;
        let outputs = self.recipients.iter().map(|to| output_weight(to.script.len()).to_vbytes_ceil()).sum::<u64>();
        let none = ScriptBuf::new();
        let script = self.change.script().unwrap_or(&none);
        let change_size = output_weight(script.len()).to_vbytes_ceil();
        let change_fee = fee(self.feerate.feerate, change_size);
        let spending = fee(
            self.discard,
            self.change.spending(self.services, Signatures::of(wallet))?.weight(true).to_vbytes_ceil(),
        );
        Ok(Params {
            feerate: self.feerate.feerate,
            long_term_feerate: self.settings.consolidate_feerate,
            size_without_inputs: OVERHEAD + count + outputs,
            change_size,
            change_fee,
            cost_of_change: change_fee.saturating_add(spending),
            least_change: spending
                .saturating_add(SignedAmount::ONE_SAT)
                .max(signed(dust_threshold(script, self.discard))),
            change_target: SignedAmount::ZERO,
            subtract_fee: self.recipients.iter().any(|to| to.subtract_fee),
            group_by_script: self.control.avoid_partial_spends || self.settings.avoid_partial_spends,
            include_unsafe: self.control.include_unsafe,
            spend_unconfirmed_change: self.settings.spend_unconfirmed_change,
            reject_long_chains: self.settings.reject_long_chains,
            max_weight: self.max_weight,
        })
    }

    /// Selects coins and makes the transaction (`CreateTransactionInternal` of Bitcoin Core).
    fn attempt(
        &self,
        available: &Available,
        bump_fees: &BumpFees,
        params: &mut Params,
        target: SignedAmount,
        wallet: &WalletInfo,
        random: &mut impl Rng,
    ) -> Result<Funded, SpendError> {
        params.change_target = Params::random_change_target(self.average(), params.change_fee, random);
        let coins = &available.coins;
        let preset = self.control.inputs.len();
        let selection = select(coins, preset, target, self.control.add_inputs, params, bump_fees, random);
        let selection = selection.map_err(|error| self.why_insufficient(error, available, params, target))?;
        let mut output: Vec<TxOut> =
            self.recipients.iter().map(|to| TxOut { value: to.amount, script_pubkey: to.script.clone() }).collect();
        let change = selection.change(coins, params);
        let change_position = match change {
            None => None,
            Some(change) => {
                // A fixed default would reveal the change output.
                let position = self.control.change_position.unwrap_or_else(|| random.gen_range(0..=output.len()));
                if position > output.len() {
                    return Err(SpendError::rule("Transaction change output index out of range"));
                }
                let script_pubkey = self.change.script().cloned().unwrap_or_default();
                output.insert(position, TxOut { value: unsigned(change), script_pubkey });
                Some(position)
            }
        };
        let mut order = selection.coins.clone();
        // Preset inputs keep their order; the others are shuffled, so that their order reveals nothing.
        let named = order.iter().filter(|position| **position < preset).count();
        order.sort_unstable();
        order.get_mut(named..).unwrap_or_default().shuffle(random);
        let chosen: Vec<&Coin> = order.iter().filter_map(|position| coins.get(*position)).collect();
        let transaction = self.transaction(&chosen, output, wallet, random)?;
        let weight = self.weight(&transaction, &order, available);
        let needed = fee(params.feerate, weight.to_vbytes_ceil()).saturating_add(selection.bump_fees(coins));
        let mut made = Funded {
            transaction,
            fee: Amount::ZERO,
            change_position,
            fee_reason: self.feerate.reason,
            spent: chosen.iter().map(|coin| coin.output.clone()).collect(),
            scripts: HashMap::new(),
            coins: order,
            weight,
            change: self.change.clone(),
        };
        self.settle(&mut made, &selection, coins, needed)?;
        self.check(made, available)
    }

    /// The error for insufficient funds. bitcoind selects unsolvable coins, which are left out here; if they would have
    /// sufficed, the error is for missing solving data. Not with `signable_only`, which leaves out other coins, too.
    fn why_insufficient(
        &self,
        error: SpendError,
        available: &Available,
        params: &Params,
        target: SignedAmount,
    ) -> SpendError {
        let counted = |coin: &Coin| if params.subtract_fee { coin.value() } else { coin.effective_value() };
        let solvable = sum(available.coins.iter().map(counted));
        let suffices = solvable.saturating_add(available.unsolvable) >= target;
        match error {
            SpendError::InsufficientFunds
                if suffices && available.unsolvable > SignedAmount::ZERO && !self.control.signable_only =>
            {
                SpendError::rule("Missing solving data for estimating transaction size")
            }
            SpendError::InsufficientFunds if self.services.rules.names_missing_fee && !params.subtract_fee => {
                let balance = sum(available.coins.iter().map(Coin::value)).saturating_add(available.unsolvable);
                self.missing_fee(balance, !suffices, target).unwrap_or(SpendError::InsufficientFunds)
            }
            error => error,
        }
    }

    /// The error if this balance suffices for the recipients, but not for the fee. Its text has the fee without inputs.
    fn missing_fee(&self, balance: SignedAmount, lacks_fee: bool, target: SignedAmount) -> Option<SpendError> {
        let paid = self.paid();
        let fee = money(unsigned(target.saturating_sub(paid)));
        let text = format!("The total exceeds your balance when the {fee} transaction fee is included.");
        (balance >= paid && lacks_fee).then_some(SpendError::Rule(text.into()))
    }

    /// Adjusts the fee to the signed size. Change gets an excess; recipients who pay the fee cover a shortfall.
    fn settle(
        &self,
        made: &mut Funded,
        selection: &Selection,
        coins: &[Coin],
        needed: SignedAmount,
    ) -> Result<(), SpendError> {
        let value = selection.value(coins);
        let output = &mut made.transaction.output;
        let paid = sum(output.iter().map(|output| signed(output.value)));
        let mut current = value.saturating_sub(paid);
        if let Some(change) = made.change_position.and_then(|position| output.get_mut(position))
            && needed < current
        {
            change.value = unsigned(signed(change.value).saturating_add(current - needed));
            current = needed;
        }
        if self.recipients.iter().any(|to| to.subtract_fee) {
            self.subtract(output, made.change_position, needed - current)?;
            current = needed;
        }
        if current < needed {
            return Err(SpendError::InsufficientFunds);
        }
        made.fee = unsigned(current);
        Ok(())
    }

    /// Subtracts the missing fee from the paying recipients in equal shares, or adds it if negative. The first one also
    /// pays the remainder.
    fn subtract(&self, output: &mut [TxOut], change: Option<usize>, missing: SignedAmount) -> Result<(), SpendError> {
        let payers = i64::try_from(self.recipients.iter().filter(|to| to.subtract_fee).count()).unwrap_or(1).max(1);
        let mut rest = missing % payers;
        let outputs =
            output.iter_mut().enumerate().filter(|(position, _)| Some(*position) != change).map(|(_, output)| output);
        for (output, _) in outputs.zip(self.recipients).filter(|(_, to)| to.subtract_fee) {
            let left = signed(output.value) - missing / payers - std::mem::take(&mut rest);
            output.value = left
                .to_unsigned()
                .map_err(|_| SpendError::rule("The transaction amount is too small to pay the fee"))?;
            if output.value < dust_threshold(&output.script_pubkey, DUST_FEERATE) {
                let text = "The transaction amount is too small to send after the fee has been deducted";
                return Err(SpendError::rule(text));
            }
        }
        Ok(())
    }

    fn check(&self, made: Funded, available: &Available) -> Result<Funded, SpendError> {
        if made.change_position.is_some() {
            self.change.script()?;
        }
        if made.weight > MAX_STANDARD_WEIGHT {
            return Err(SpendError::rule("Transaction too large"));
        }
        if made.fee > self.settings.max_fee {
            return Err(FEE_TOO_HIGH);
        }
        if self.settings.reject_long_chains {
            let spent = made.transaction.input.iter().map(|input| input.previous_output.txid);
            let limits = available.unconfirmed.check_limits(spent, made.weight.to_vbytes_ceil());
            limits.map_err(|limit| SpendError::Rule(limit.into()))?;
        }
        Ok(made)
    }

    fn transaction(
        &self,
        chosen: &[&Coin],
        output: Vec<TxOut>,
        wallet: &WalletInfo,
        random: &mut impl Rng,
    ) -> Result<Transaction, SpendError> {
        let replaceable = self.control.replaceable.unwrap_or(self.settings.replaceable);
        let sequence = if replaceable { REPLACEABLE } else { FINAL };
        let plain = |coin: &&Coin| TxIn { previous_output: coin.outpoint, sequence, ..TxIn::default() };
        let mut input: Vec<TxIn> = chosen.iter().map(plain).collect();
        // The preset inputs come first.
        for (input, named) in input.iter_mut().zip(&self.control.inputs) {
            input.sequence = named.sequence.unwrap_or(sequence);
            (input.script_sig, input.witness) = (named.script_sig.clone(), named.witness.clone());
        }
        let sequences = self.control.inputs.iter().any(|input| input.sequence.is_some());
        let lock_time = match self.control.lock_time {
            Some(lock_time) => lock_time,
            None if sequences => LockTime::ZERO,
            None => locktime::for_payment(self.services, wallet, random)?,
        };
        Ok(Transaction { version: self.control.version, lock_time, input, output })
    }

    /// The weight of the signed transaction.
    fn weight(&self, transaction: &Transaction, order: &[usize], available: &Available) -> Weight {
        let size = |position: &usize| available.size(*position);
        signed_weight(&transaction.output, &order.iter().filter_map(size).collect::<Vec<_>>())
    }
}
