//! Replaces an unconfirmed wallet transaction (bumpfee and psbtbumpfee; `feebumper` of Bitcoin Core).

use std::collections::HashMap;

use bitcoin::secp256k1::rand::Rng;
use bitcoin::{Amount, OutPoint, Transaction, TxOut, Txid, consensus};
use outrigger_service::wallet::{TxState, WalletTransaction};
use outrigger_service::{ErrorKind, ServiceError};
use outrigger_values::amount::Saturating;
use outrigger_values::{FeeRate, RpcError, RpcErrorCode};

use crate::available::{Available, other_outputs, owned_outputs};
use crate::control::{ChangeChoice, CoinControl, PresetInput, Recipient};
use crate::error::SpendError;
use crate::fee_choice::FeeChoice;
use crate::feerate::feerate;
use crate::fund::{Funded, fund};
use crate::truc::TRUC;
use crate::weight::signed_weight;
use crate::{Services, SpendSettings, signed_input};

/// The least increase of the feerate of a replacement (`WALLET_INCREMENTAL_RELAY_FEE`).
const INCREMENTAL_FEERATE: FeeRate = FeeRate::from_sat_per_kvb(5_000);
/// The least number of decimals of amounts in Bitcoin Core's messages.
const LEAST_DECIMALS: usize = 2;
/// The metadata key for the transaction id of the replacement.
pub const REPLACED_BY: &str = "replaced_by_txid";
/// The metadata key for the transaction id of the replaced transaction.
pub const REPLACES: &str = "replaces_txid";

/// The options of a replacement.
#[derive(Debug, Default)]
pub struct Replacement {
    /// The feerate, whether the replacement is replaceable again, and whether watch-only coins may be added.
    pub control: CoinControl,
    /// The new outputs; if empty, the outputs of the replaced transaction.
    pub outputs: Vec<TxOut>,
    /// The position of the replaced transaction's change; `None`: the wallet identifies it.
    pub change_index: Option<u32>,
    /// Whether all inputs must be the wallet's.
    pub own_inputs_only: bool,
}

/// A funded replacement.
#[derive(Debug)]
pub struct Replaced {
    /// The unsigned replacement.
    pub funded: Funded,
    /// The fee of the replaced transaction, in satoshi.
    pub old_fee: Amount,
    /// The metadata of the replaced transaction.
    pub metadata: Vec<(String, String)>,
}

/// The errors of replacing a transaction, in Bitcoin Core 29's words.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ReplaceError {
    /// A service failed.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// The options contain both new outputs and a position of change.
    #[error(
        "The options 'outputs' and 'original_change_index' are incompatible. You can only either specify a new set of outputs, or designate a change output to be recycled."
    )]
    OutputsAndChange,
    /// The wallet does not have the transaction.
    #[error("Invalid or non-wallet transaction id")]
    Unknown,
    /// The position of change is beyond the outputs.
    #[error("Change position is out of range")]
    ChangeIndex,
    /// An input's coin is spent by a confirmed transaction.
    #[error("{}:{} is already spent", .0.txid, .0.vout)]
    InputSpent(OutPoint),
    /// A wallet transaction spends an output of it.
    #[error("Transaction has descendants in the wallet")]
    WalletDescendants,
    /// A mempool transaction spends an output of it.
    #[error("Transaction has descendants in the mempool")]
    MempoolDescendants,
    /// The transaction is confirmed, or conflicts with a confirmed one.
    #[error("Transaction has been mined, or is conflicted with a mined transaction")]
    Mined,
    /// The transaction does not signal BIP 125.
    #[error("Transaction is not BIP 125 replaceable")]
    NotSignalling,
    /// The wallet has replaced it before, by the transaction with this id.
    #[error("Cannot bump transaction {0} which was already bumped by transaction {1}")]
    Bumped(Txid, String),
    /// An input is not the wallet's.
    #[error("Transaction contains inputs that don't belong to this wallet")]
    ForeignInputs,
    /// The feerate is below the mempool's minimum: both.
    #[error("New fee rate ({}) is lower than the minimum fee rate ({}) to get into the mempool -- ", money(per_kvb(*.0)), money(per_kvb(*.1)))]
    BelowMempool(FeeRate, FeeRate),
    /// The fee increases too little: the new fee, the old one and the least increase.
    #[error("Insufficient total fee {}, must be at least {} (oldFee {} + incrementalFee {})", money(*.0), money(.1.saturating_add(*.2)), money(*.1), money(*.2))]
    TooLittleMore(Amount, Amount, Amount),
    /// The fee is below this minimum.
    #[error("Insufficient total fee (cannot be less than required fee {})", money(*.0))]
    BelowRequired(Amount),
    /// The fee is above the maximum: both.
    #[error("Specified or calculated fee {} is too high (cannot be higher than -maxtxfee {})", money(*.0), money(*.1))]
    TooHigh(Amount, Amount),
    /// The replacement would have no outputs.
    #[error("Unable to create transaction. Transaction must have at least one recipient")]
    NoRecipients,
    /// The replacement cannot be funded.
    #[error("Unable to create transaction. {0}")]
    Unfunded(SpendError),
}

impl From<ReplaceError> for RpcError {
    fn from(error: ReplaceError) -> Self {
        let message = error.to_string();
        let code = match error {
            ReplaceError::Service(error) | ReplaceError::Unfunded(SpendError::Service(error)) => return error.into(),
            ReplaceError::Unknown => RpcErrorCode::INVALID_ADDRESS_OR_KEY,
            ReplaceError::InputSpent(_) => return Self::misc(message),
            ReplaceError::OutputsAndChange
            | ReplaceError::ChangeIndex
            | ReplaceError::WalletDescendants
            | ReplaceError::MempoolDescendants
            | ReplaceError::TooLittleMore(..)
            | ReplaceError::BelowRequired(_)
            | ReplaceError::NoRecipients => RpcErrorCode::INVALID_PARAMETER,
            ReplaceError::Mined
            | ReplaceError::NotSignalling
            | ReplaceError::Bumped(..)
            | ReplaceError::ForeignInputs
            | ReplaceError::BelowMempool(..)
            | ReplaceError::TooHigh(..)
            | ReplaceError::Unfunded(_) => RpcErrorCode::WALLET,
        };
        Self::new(code, message)
    }
}

/// Makes the replacement of an unconfirmed wallet transaction. It has all inputs of the original, confirmed coins if
/// needed, and the original's change address. The error is the first broken rule in Bitcoin Core's order.
pub fn replace(
    services: Services<'_>,
    settings: &SpendSettings,
    txid: Txid,
    asked: Replacement,
    random: &mut impl Rng,
) -> Result<Replaced, ReplaceError> {
    let Replacement { mut control, outputs, change_index, own_inputs_only } = asked;
    if !outputs.is_empty() && change_index.is_some() {
        return Err(ReplaceError::OutputsAndChange);
    }
    let original = Original::read(services, txid)?;
    if change_index.is_some_and(|index| index as usize >= original.transaction.output.len()) {
        return Err(ReplaceError::ChangeIndex);
    }
    let spent = original.spent(services)?;
    let owned = original.check(services, own_inputs_only, settings.replaces_any)?;
    let paid: Amount = sum(&original.transaction.output);
    let old_fee = sum(&spent).saturating_sub(paid);

    let outputs = if outputs.is_empty() { original.transaction.output.clone() } else { outputs };
    let recipients = recipients(services, &outputs, change_index, &mut control)?;
    // Other parties sign their inputs again.
    let others_weight = |input: &bitcoin::TxIn| {
        let is_ours = owned.contains_key(&input.previous_output);
        (!is_ours).then(|| signed_input::max_weight(input))
    };
    let input = |input: &bitcoin::TxIn| PresetInput {
        outpoint: input.previous_output,
        sequence: None,
        script_sig: bitcoin::ScriptBuf::new(),
        witness: bitcoin::Witness::new(),
        weight: others_weight(input),
        by_weight: false,
    };
    control.inputs = original.transaction.input.iter().map(input).collect();
    control.fee = match control.fee {
        FeeChoice::Exact { feerate, .. } => {
            check_feerate(services, settings, feerate, &outputs, &control, old_fee)?;
            control.fee
        }
        FeeChoice::Within { .. } => {
            let feerate = estimate(services, settings, &original.transaction, old_fee, &control)?;
            FeeChoice::Exact { feerate, below_minimum: false }
        }
    };
    if original.transaction.version == TRUC {
        control.version = TRUC;
    }
    // BIP 125 allows no unconfirmed inputs that the original lacks.
    (control.add_inputs, control.min_depth) = (true, 1);
    let funded = fund(services, settings, &recipients, &control, random).map_err(ReplaceError::Unfunded)?;
    Ok(Replaced { funded, old_fee, metadata: original.row.metadata })
}

struct Original {
    transaction: Transaction,
    row: WalletTransaction,
}

impl Original {
    fn read(services: Services<'_>, txid: Txid) -> Result<Self, ReplaceError> {
        let wallet = &services.host.wallet;
        let batch = wallet.transactions(services.scope, vec![txid])?.read().map_err(ServiceError::from)?;
        let row = batch.rows.into_iter().next().ok_or(ReplaceError::Unknown)?.transaction.0;
        let raw = wallet.raw_transactions(services.scope, vec![txid])?.pop().flatten().ok_or(ReplaceError::Unknown)?;
        let damaged = |_| ServiceError::from(ErrorKind::Malformed);
        Ok(Self { transaction: consensus::deserialize(&raw).map_err(damaged)?, row })
    }

    fn outpoints(&self) -> Vec<OutPoint> {
        self.transaction.input.iter().map(|input| input.previous_output).collect()
    }

    /// The outputs that it spends, from the UTXO set or the mempool.
    fn spent(&self, services: Services<'_>) -> Result<Vec<TxOut>, ReplaceError> {
        let outpoints = self.outpoints();
        let found: HashMap<OutPoint, TxOut> = other_outputs(services, &outpoints)?;
        let output = |outpoint: &OutPoint| found.get(outpoint).cloned().ok_or(ReplaceError::InputSpent(*outpoint));
        outpoints.iter().map(output).collect()
    }

    /// Checks that the transaction may be replaced (`PreconditionChecks`). Returns the wallet's outputs that it spends.
    fn check(
        &self,
        services: Services<'_>,
        own_inputs_only: bool,
        replaces_any: bool,
    ) -> Result<HashMap<OutPoint, TxOut>, ReplaceError> {
        let txid = self.row.txid;
        let count = u32::try_from(self.transaction.output.len()).unwrap_or(u32::MAX);
        let outputs = (0..count).map(|vout| OutPoint { txid, vout }).collect();
        if services.host.wallet.spenders(services.scope, outputs)?.iter().any(|spenders| !spenders.is_empty()) {
            return Err(ReplaceError::WalletDescendants);
        }
        let entry = services.host.mempool.entries(services.scope, vec![txid])?.pop().flatten();
        if entry.is_some_and(|entry| entry.descendant_count > 1) {
            return Err(ReplaceError::MempoolDescendants);
        }
        if matches!(self.row.state, TxState::Confirmed { .. } | TxState::Conflicted { .. }) {
            return Err(ReplaceError::Mined);
        }
        if !replaces_any && !self.transaction.is_explicitly_rbf() {
            return Err(ReplaceError::NotSignalling);
        }
        if let Some((_, by)) = self.row.metadata.iter().find(|(key, _)| key == REPLACED_BY) {
            return Err(ReplaceError::Bumped(txid, by.clone()));
        }
        let outpoints = self.outpoints();
        let owned = owned_outputs(services, &outpoints)?;
        if own_inputs_only && !outpoints.iter().all(|outpoint| owned.contains_key(outpoint)) {
            return Err(ReplaceError::ForeignInputs);
        }
        Ok(owned)
    }
}

/// The recipients among the outputs. The change output sets the change address; if it is the only one, it pays the fee.
fn recipients(
    services: Services<'_>,
    outputs: &[TxOut],
    change_index: Option<u32>,
    control: &mut CoinControl,
) -> Result<Vec<Recipient>, ReplaceError> {
    let scripts = outputs.iter().map(|output| output.script_pubkey.clone()).collect();
    let known = services.host.wallet.scripts(services.scope, scripts)?;
    let mut recipients = Vec::new();
    for ((index, output), info) in (0..).zip(outputs).zip(known) {
        let is_change = change_index.map_or(info.is_some_and(|info| info.change), |change| change == index);
        if is_change {
            control.change = ChangeChoice::To(output.script_pubkey.clone());
        } else {
            let (script, amount) = (output.script_pubkey.clone(), output.value);
            recipients.push(Recipient { script, amount, subtract_fee: false });
        }
    }
    if recipients.is_empty() {
        let ChangeChoice::To(script) = std::mem::take(&mut control.change) else {
            return Err(ReplaceError::NoRecipients);
        };
        recipients.push(Recipient { script, amount: sum(outputs), subtract_fee: true });
    }
    Ok(recipients)
}

/// Checks the sender's feerate (`CheckFeeRate`).
fn check_feerate(
    services: Services<'_>,
    settings: &SpendSettings,
    feerate: FeeRate,
    outputs: &[TxOut],
    control: &CoinControl,
    old_fee: Amount,
) -> Result<(), ReplaceError> {
    let mempool = services.host.mempool.info(services.scope)?;
    // Without evictions the minimum is that of relay. Then the required fee below refuses a low feerate.
    if feerate < mempool.min_feerate && mempool.min_feerate > mempool.relay_feerate {
        return Err(ReplaceError::BelowMempool(feerate, mempool.min_feerate));
    }
    let control = CoinControl { add_inputs: false, ..control.clone() };
    let wallet = services.host.wallet.info(services.scope)?;
    let mut inputs = Available::read(services, &wallet, &control).map_err(ReplaceError::Unfunded)?;
    let bump_fees = inputs.set_feerates(feerate, settings.consolidate_feerate).map_err(ReplaceError::Unfunded)?;
    let parents = control.inputs.iter().map(|input| input.outpoint.txid);
    let bump_fee = bump_fees.combined(parents).unsigned_abs();
    let size = signed_weight(outputs, &inputs.preset_sizes).to_vbytes_ceil();
    let new_fee = feerate.fee(size).saturating_add(bump_fee);
    let more = mempool.incremental_feerate.fee(size);
    if new_fee < old_fee.saturating_add(more) {
        return Err(ReplaceError::TooLittleMore(new_fee, old_fee, more));
    }
    let required = mempool.relay_feerate.max(settings.min_feerate).fee(size);
    if new_fee < required {
        return Err(ReplaceError::BelowRequired(required));
    }
    if new_fee > settings.max_fee {
        return Err(ReplaceError::TooHigh(new_fee, settings.max_fee));
    }
    Ok(())
}

/// The feerate if the sender gives none (`EstimateFeeRate`).
fn estimate(
    services: Services<'_>,
    settings: &SpendSettings,
    original: &Transaction,
    old_fee: Amount,
    control: &CoinControl,
) -> Result<FeeRate, ReplaceError> {
    let mempool = services.host.mempool.info(services.scope)?;
    let old = FeeRate::paid(old_fee, original.vsize() as u64).saturating_add(FeeRate::from_sat_per_kvb(1));
    let more = old.saturating_add(mempool.incremental_feerate.max(INCREMENTAL_FEERATE));
    let least = match feerate(services, settings, control) {
        Ok(least) => least.feerate,
        Err(SpendError::NoFeerate) => mempool.relay_feerate.max(settings.min_feerate),
        Err(error) => return Err(ReplaceError::Unfunded(error)),
    };
    Ok(more.max(least))
}

fn sum(outputs: &[TxOut]) -> Amount {
    outputs.iter().map(|output| output.value).fold(Amount::ZERO, Amount::saturating_add)
}

fn per_kvb(feerate: FeeRate) -> Amount {
    Amount::from_sat(feerate.to_sat_per_kvb())
}

/// An amount in BTC without trailing zeros, with at least two decimals (`FormatMoney`).
fn money(amount: Amount) -> String {
    let text = outrigger_values::amount::to_text(amount);
    let least = text.find('.').map_or(text.len(), |point| point + 1 + LEAST_DECIMALS);
    let end = text.trim_end_matches('0').len().max(least);
    text.get(..end).unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_shown_as_bitcoin_core_does() {
        for (satoshi, text) in
            [(0, "0.00"), (1_000, "0.00001"), (10_000_000, "0.10"), (100_000_000, "1.00"), (141, "0.00000141")]
        {
            assert_eq!(money(Amount::from_sat(satoshi)), text);
        }
    }
}
