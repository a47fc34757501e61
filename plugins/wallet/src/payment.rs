//! Makes an unsigned payment from coins and a payment request: coin selection, the recipients' amounts, fee and change.
//!
//! The fee of a payment is its feerate times its virtual size, rounded up; a payment without change also pays what was too
//! little for change.

use bitcoin::absolute::LockTime;
use bitcoin::transaction::{Version, predict_weight};
use bitcoin::{Amount, OutPoint, Script, ScriptBuf, Sequence, Transaction, TxIn, TxOut, VarInt, Weight, Witness};
use outrigger_sdk::FeeRate;
use outrigger_sdk::amount::Saturating;
use outrigger_sdk::standard::policy::{DUST_FEERATE, MAX_STANDARD_WEIGHT, dust_threshold};

use crate::error::WalletError;
use crate::select::{Goal, select, select_lighter};
use crate::weight::{InputSize, output_weight};

/// The greatest fee of a payment: Bitcoin Core 29's `-maxtxfee`.
pub const MAX_FEE: Amount = Amount::from_sat(10_000_000);

/// The number of [`Rank`]s.
pub const RANKS: u8 = 4;

/// Spending priority of a coin, lower first.
pub type Rank = u8;

/// A coin that the wallet can spend.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Spendable {
    /// Its outpoint.
    pub outpoint: OutPoint,
    /// Its value.
    pub value: Amount,
    /// Its script.
    pub script: ScriptBuf,
    /// The size of the input that spends it.
    pub size: InputSize,
    /// Its spending priority.
    pub rank: Rank,
}

impl Spendable {
    /// Its output.
    pub fn output(&self) -> TxOut {
        TxOut { value: self.value, script_pubkey: self.script.clone() }
    }
}

/// Who is paid, and how much.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recipient {
    /// Its script.
    pub script: ScriptBuf,
    /// Its amount.
    pub amount: Amount,
    /// Whether a share of the fee is subtracted from the amount.
    pub subtract_fee: bool,
}

/// What is to be paid, and at which feerate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PaymentRequest {
    /// The recipients. If the fee is subtracted from the amounts of several, they pay equal shares, and the first of them
    /// also the remainder.
    pub recipients: Vec<Recipient>,
    /// The feerate.
    pub feerate: FeeRate,
}

/// What the fee and the least change depend on: the change script, and the size of spending it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChangeScript {
    /// Its length, in bytes.
    len: usize,
    /// The value below which it would be dust.
    dust: Amount,
    /// The size of the input that will spend it.
    spending: InputSize,
}

impl ChangeScript {
    /// That of a script, and the size of the input that will spend it: P2WPKH in P2SH if unknown, as in Bitcoin Core.
    pub fn new(script: &Script, spending: Option<InputSize>) -> Self {
        let spending = spending.unwrap_or_else(InputSize::nested_wpkh);
        Self { len: script.len(), dust: dust_threshold(script, DUST_FEERATE), spending }
    }

    /// That of no script: the wallet has no change address, and change matters only for the selection of coins.
    pub fn unknown() -> Self {
        Self::new(Script::new(), None)
    }

    fn output_weight(&self) -> Weight {
        output_weight(self.len)
    }

    /// The least change: no dust, and worth more than spending it costs.
    fn least(&self, feerate: FeeRate) -> Amount {
        let spending = fee(feerate, self.spending.weight(false));
        self.dust.max(spending.saturating_add(Amount::ONE_SAT))
    }
}

/// What the selected coins are split into: payments, change and fee.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FeeSplit {
    /// What the recipients get, in their order.
    pub paid: Vec<Amount>,
    /// The change, if it is worth an output.
    pub change: Option<Amount>,
    /// The fee.
    pub fee: Amount,
}

/// The fee of a transaction's weight.
pub fn fee(feerate: FeeRate, weight: Weight) -> Amount {
    feerate.fee(weight.to_vbytes_ceil())
}

/// The value of these coins.
fn total(coins: &[&Spendable]) -> Amount {
    coins.iter().map(|coin| coin.value).fold(Amount::ZERO, Amount::saturating_add)
}

/// The shares of a satoshi: a weight unit costs as many shares as the feerate has satoshi per
/// 1000 virtual bytes, so that the fees of the parts of a transaction are exact.
/// 21 million bitcoin in shares are less than half of what 64 bits hold.
const SHARES: u64 = 1000 * Weight::WITNESS_SCALE_FACTOR;

/// An amount in shares.
fn shares(amount: Amount) -> u64 {
    amount.to_sat().saturating_mul(SHARES)
}

/// The fee of a part of a transaction, in shares.
fn fee_share(feerate: FeeRate, weight: Weight) -> u64 {
    feerate.to_sat_per_kvb().saturating_mul(weight.to_wu())
}

/// Whether a value would be dust in an output with this script.
fn is_dust(value: Amount, script: &ScriptBuf) -> bool {
    value < dust_threshold(script, DUST_FEERATE)
}

/// Refuses an amount that would be dust.
pub fn check_dust(recipients: &[Recipient]) -> Result<(), WalletError> {
    let dust = recipients.iter().any(|recipient| is_dust(recipient.amount, &recipient.script));
    if dust { Err(WalletError::AmountTooSmall) } else { Ok(()) }
}

impl PaymentRequest {
    /// The sum of the recipients' amounts.
    fn amount(&self) -> Amount {
        self.recipients.iter().map(|recipient| recipient.amount).fold(Amount::ZERO, Amount::saturating_add)
    }

    /// Whether any recipient pays the fee.
    fn subtract_fee(&self) -> bool {
        self.recipients.iter().any(|recipient| recipient.subtract_fee)
    }

    /// Refuses to subtract the fee from a payment of nothing.
    pub fn check(&self) -> Result<(), WalletError> {
        if self.subtract_fee() && self.amount() == Amount::ZERO { Err(WalletError::NothingToPay) } else { Ok(()) }
    }

    /// The weight of a transaction without its inputs.
    fn weight_without_inputs(&self, inputs: usize, witness: bool, change: Option<&ChangeScript>) -> Weight {
        const MARKER_AND_FLAG: Weight = Weight::from_witness_data_size(2);
        let paid = self.recipients.iter().map(|recipient| recipient.script.len());
        let empty = predict_weight([], paid.chain(change.map(|change| change.len)));
        // The prediction counts no input, which takes a byte.
        let count = Weight::from_non_witness_data_size(VarInt::from(inputs).size() as u64 - 1);
        let marker = if witness { MARKER_AND_FLAG } else { Weight::ZERO };
        empty.saturating_add(count).saturating_add(marker)
    }

    /// The weight of the signed transaction that spends these coins.
    fn weight(&self, coins: &[&Spendable], change: Option<&ChangeScript>) -> Weight {
        let witness = coins.iter().any(|coin| coin.size.has_witness);
        let inputs = coins.iter().map(|coin| coin.size.weight(witness));
        inputs.fold(self.weight_without_inputs(coins.len(), witness, change), Weight::saturating_add)
    }

    /// Chooses coins, among those up to the lowest rank that suffices.
    ///
    /// # Errors
    /// When they do not suffice, or it takes more of them than a transaction can spend.
    pub fn choose<'a>(&self, coins: &'a [Spendable], change: ChangeScript) -> Result<Vec<&'a Spendable>, WalletError> {
        let mut failure = WalletError::InsufficientFunds;
        for rank in 0..RANKS {
            if !coins.iter().any(|coin| coin.rank == rank) {
                continue;
            }
            let eligible: Vec<&Spendable> = coins.iter().filter(|coin| coin.rank <= rank).collect();
            match self.choose_among(&eligible, change) {
                Err(error) => failure = error,
                chosen => return chosen,
            }
        }
        Err(failure)
    }

    /// Chooses coins by their exact shares of the fee. The fee of the whole is rounded up and can exceed the sum of the
    /// shares; then the coins are chosen again with room for that.
    fn choose_among<'a>(
        &self,
        coins: &[&'a Spendable],
        change: ChangeScript,
    ) -> Result<Vec<&'a Spendable>, WalletError> {
        let chosen = self.choose_with_room(coins, change, 0)?;
        if self.divide(&chosen, change) != Err(WalletError::InsufficientFunds) {
            return Ok(chosen);
        }
        // Rounding up to whole virtual bytes, then to whole satoshi.
        let rounding = Weight::from_wu(Weight::WITNESS_SCALE_FACTOR - 1);
        let room = fee_share(self.feerate, rounding).saturating_add(SHARES - 1);
        self.choose_with_room(coins, change, room)
    }

    fn choose_with_room<'a>(
        &self,
        coins: &[&'a Spendable],
        change: ChangeScript,
        room: u64,
    ) -> Result<Vec<&'a Spendable>, WalletError> {
        let witness = coins.iter().any(|coin| coin.size.has_witness);
        let subtract_fee = self.subtract_fee();
        let cost = |coin: &Spendable| match subtract_fee {
            true => 0,
            false => fee_share(self.feerate, coin.size.weight(witness)),
        };
        let worth = |coin: &Spendable| shares(coin.value).checked_sub(cost(coin)).filter(|worth| *worth > 0);
        // A coin that costs more to spend than it is worth is of no use.
        let useful: Vec<(&Spendable, u64)> = coins.iter().filter_map(|coin| Some((*coin, worth(coin)?))).collect();
        let values: Vec<u64> = useful.iter().map(|(_, value)| *value).collect();
        let goal = self.goal(useful.len(), witness, change, room);
        let pick = |positions: Vec<usize>| -> Vec<&'a Spendable> {
            positions.into_iter().filter_map(|position| useful.get(position).map(|(coin, _)| *coin)).collect()
        };
        let fits = |chosen: &Vec<&Spendable>| self.weight_as_divided(chosen, &change) <= MAX_STANDARD_WEIGHT;
        let chosen = select(&values, goal).map(pick).ok_or(WalletError::InsufficientFunds)?;
        if self.weight_without_inputs(0, witness, None) >= MAX_STANDARD_WEIGHT {
            return Err(WalletError::TooManyOutputs);
        }
        if fits(&chosen) {
            return Ok(chosen);
        }
        let weights: Vec<Weight> = useful.iter().map(|(coin, _)| coin.size.weight(witness)).collect();
        let lighter = select_lighter(&values, &weights, goal);
        lighter.into_iter().map(pick).find(fits).ok_or(WalletError::TooManyInputs)
    }

    /// The goal of the coin selection, in shares of a satoshi.
    fn goal(&self, coins: usize, witness: bool, change: ChangeScript, room: u64) -> Goal {
        let least_change = shares(change.least(self.feerate));
        let change_fee = fee_share(self.feerate, change.output_weight());
        let cost_of_change = change_fee.saturating_add(fee_share(self.feerate, change.spending.weight(witness)));
        let amount = shares(self.amount());
        if self.subtract_fee() {
            return Goal {
                target: amount,
                tolerance: cost_of_change.min(least_change - 1),
                with_change: amount.saturating_add(least_change),
            };
        }
        let fixed = self.weight_without_inputs(coins, witness, None);
        let target = amount.saturating_add(fee_share(self.feerate, fixed)).saturating_add(room);
        let with_change = target.saturating_add(change_fee).saturating_add(least_change);
        Goal { target, tolerance: cost_of_change, with_change }
    }

    /// The change that these coins leave, if it is worth an output.
    fn change(&self, coins: &[&Spendable], change: &ChangeScript) -> Option<Amount> {
        let surplus = total(coins).checked_sub(self.amount())?;
        let left = match self.subtract_fee() {
            true => surplus,
            false => surplus.checked_sub(fee(self.feerate, self.weight(coins, Some(change))))?,
        };
        (left >= change.least(self.feerate)).then_some(left)
    }

    /// The weight of the signed transaction that spends these coins, with change only if it is worth an output.
    fn weight_as_divided(&self, coins: &[&Spendable], change: &ChangeScript) -> Weight {
        self.weight(coins, self.change(coins, change).map(|_| change))
    }

    /// Splits the value of the chosen coins into payments, change and fee.
    ///
    /// # Errors
    /// When the amounts do not suffice for the fee, or the fee or the weight is beyond its limit.
    pub fn divide(&self, coins: &[&Spendable], change: ChangeScript) -> Result<FeeSplit, WalletError> {
        let surplus = total(coins).checked_sub(self.amount()).ok_or(WalletError::InsufficientFunds)?;
        let left = self.change(coins, &change);
        let weight = self.weight(coins, left.map(|_| &change));
        let fee = fee(self.feerate, weight);
        let split = match left {
            Some(_) => {
                let paid = self.paid(if self.subtract_fee() { fee } else { Amount::ZERO })?;
                FeeSplit { paid, change: left, fee }
            }
            None if self.subtract_fee() => {
                let missing = fee.saturating_sub(surplus);
                FeeSplit { paid: self.paid(missing)?, change: None, fee: surplus.saturating_add(missing) }
            }
            None if surplus < fee => return Err(WalletError::InsufficientFunds),
            None => FeeSplit { paid: self.paid(Amount::ZERO)?, change: None, fee: surplus },
        };
        if split.fee > MAX_FEE {
            return Err(WalletError::FeeTooHigh);
        }
        if weight > MAX_STANDARD_WEIGHT {
            return Err(WalletError::TooManyInputs);
        }
        Ok(split)
    }

    /// What the recipients get when `fee` is subtracted from their amounts: in equal shares, the first of those who pay
    /// also paying the remainder, as in bitcoind.
    fn paid(&self, fee: Amount) -> Result<Vec<Amount>, WalletError> {
        let payers = self.recipients.iter().filter(|recipient| recipient.subtract_fee).count() as u64;
        let share = fee.checked_div(payers).unwrap_or_default();
        let mut left_over = fee.checked_rem(payers).unwrap_or_default();
        let get = |recipient: &Recipient| {
            let cost = match recipient.subtract_fee {
                true => share.saturating_add(std::mem::take(&mut left_over)),
                false => Amount::ZERO,
            };
            let paid = recipient.amount.checked_sub(cost).ok_or(WalletError::AmountBelowFee)?;
            if is_dust(paid, &recipient.script) { Err(WalletError::DustAfterFee) } else { Ok(paid) }
        };
        self.recipients.iter().map(get).collect()
    }
}

/// The unsigned transaction with these outputs.
pub fn unsigned(coins: &[&Spendable], output: Vec<TxOut>, sequence: Sequence, lock_time: LockTime) -> Transaction {
    let input = |coin: &&Spendable| TxIn {
        previous_output: coin.outpoint,
        script_sig: ScriptBuf::new(),
        sequence,
        witness: Witness::new(),
    };
    Transaction { version: Version::TWO, lock_time, input: coins.iter().map(input).collect(), output }
}
