//! Replaces an unconfirmed wallet transaction (bumpfee and psbtbumpfee; `feebumper` of Bitcoin Core).

use std::collections::HashMap;

use bitcoin::secp256k1::rand::Rng;
use bitcoin::{Amount, OutPoint, Transaction, TxOut, Txid, consensus};
use outrigger_service::wallet::{TxState, WalletTransaction};
use outrigger_service::{ErrorKind, ServiceError};
use outrigger_values::amount::Saturating;
use outrigger_values::{FeeRate, RpcError};

use crate::available::{Available, other_outputs, owned_outputs};
use crate::coins::{self, REPLACED_BY};
use crate::control::{ChangeChoice, CoinControl, PresetInput, Recipient};
use crate::error::SpendError;
use crate::error::money;
use crate::fee_choice::FeeChoice;
use crate::feerate::feerate;
use crate::fund::{Funded, fund};
use crate::truc::TRUC;
use crate::weight::signed_weight;
use crate::{Services, SpendSettings, signed_input};

/// The least feerate increase of a replacement (`WALLET_INCREMENTAL_RELAY_FEE`).
const INCREMENTAL_FEERATE: FeeRate = FeeRate::from_sat_per_kvb(5_000);
const OUTPUTS_AND_CHANGE: &str = "The options 'outputs' and 'original_change_index' are incompatible. You can only either specify a new set of outputs, or designate a change output to be recycled.";

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

/// Makes a replacement of an unconfirmed wallet transaction. It has all inputs of the original, further confirmed coins if
/// needed, and the original's change address. The error is for the first broken rule in Bitcoin Core's order.
pub fn replace(
    services: Services<'_>,
    settings: &SpendSettings,
    txid: Txid,
    asked: Replacement,
    random: &mut impl Rng,
) -> Result<Replaced, RpcError> {
    let Replacement { mut control, outputs, change_index, own_inputs_only } = asked;
    if !outputs.is_empty() && change_index.is_some() {
        return Err(RpcError::invalid_parameter(OUTPUTS_AND_CHANGE));
    }
    let original = Original::read(services, txid)?;
    if change_index.is_some_and(|index| index as usize >= original.transaction.output.len()) {
        return Err(RpcError::invalid_parameter("Change position is out of range"));
    }
    let spent = original.spent(services)?;
    let owned = original.check(services, own_inputs_only, settings.replaces_any)?;
    let paid: Amount = sum(&original.transaction.output);
    let old_fee = sum(&spent).saturating_sub(paid);

    let outputs = if outputs.is_empty() { original.transaction.output.clone() } else { outputs };
    let recipients = recipients(services, &outputs, change_index, &mut control)?;
    // Other parties sign their inputs again, so these inputs need a declared weight.
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
    let funded = fund(services, settings, &recipients, &control, random).map_err(unfunded)?;
    Ok(Replaced { funded, old_fee, metadata: original.row.metadata })
}

struct Original {
    transaction: Transaction,
    row: WalletTransaction,
}

impl Original {
    fn read(services: Services<'_>, txid: Txid) -> Result<Self, RpcError> {
        let wallet = &services.host.wallet;
        let unknown = || RpcError::not_found("Invalid or non-wallet transaction id");
        let batch = wallet.transactions(services.scope, vec![txid])?.read().map_err(ServiceError::from)?;
        let row = batch.rows.into_iter().next().ok_or_else(unknown)?.transaction.0;
        let raw = wallet.raw_transactions(services.scope, vec![txid])?.pop().flatten().ok_or_else(unknown)?;
        let damaged = |_| ServiceError::from(ErrorKind::Malformed);
        Ok(Self { transaction: consensus::deserialize(&raw).map_err(damaged)?, row })
    }

    fn outpoints(&self) -> Vec<OutPoint> {
        self.transaction.input.iter().map(|input| input.previous_output).collect()
    }

    /// The outputs that it spends, from the UTXO set or the mempool.
    fn spent(&self, services: Services<'_>) -> Result<Vec<TxOut>, RpcError> {
        let outpoints = self.outpoints();
        let found: HashMap<OutPoint, TxOut> = other_outputs(services, &outpoints)?;
        let spent = |OutPoint { txid, vout }: &OutPoint| RpcError::misc(format!("{txid}:{vout} is already spent"));
        let output = |outpoint: &OutPoint| found.get(outpoint).cloned().ok_or_else(|| spent(outpoint));
        outpoints.iter().map(output).collect()
    }

    /// Checks that the transaction may be replaced (`PreconditionChecks`). Returns the wallet's outputs that it spends.
    fn check(
        &self,
        services: Services<'_>,
        own_inputs_only: bool,
        replaces_any: bool,
    ) -> Result<HashMap<OutPoint, TxOut>, RpcError> {
        let txid = self.row.txid;
        let count = u32::try_from(self.transaction.output.len()).unwrap_or(u32::MAX);
        let outputs: Vec<OutPoint> = (0..count).map(|vout| OutPoint { txid, vout }).collect();
        if !coins::spent(services, &outputs)?.is_empty() {
            return Err(RpcError::invalid_parameter("Transaction has descendants in the wallet"));
        }
        let entry = services.host.mempool.entries(services.scope, vec![txid])?.pop().flatten();
        if entry.is_some_and(|entry| entry.descendant_count > 1) {
            return Err(RpcError::invalid_parameter("Transaction has descendants in the mempool"));
        }
        if matches!(self.row.state, TxState::Confirmed { .. } | TxState::Conflicted { .. }) {
            return Err(RpcError::wallet("Transaction has been mined, or is conflicted with a mined transaction"));
        }
        if !replaces_any && !self.transaction.is_explicitly_rbf() {
            return Err(RpcError::wallet("Transaction is not BIP 125 replaceable"));
        }
        if let Some((_, by)) = self.row.metadata.iter().find(|(key, _)| key == REPLACED_BY) {
            let text = format!("Cannot bump transaction {txid} which was already bumped by transaction {by}");
            return Err(RpcError::wallet(text));
        }
        let outpoints = self.outpoints();
        let owned = owned_outputs(services, &outpoints)?;
        if own_inputs_only && !outpoints.iter().all(|outpoint| owned.contains_key(outpoint)) {
            return Err(RpcError::wallet("Transaction contains inputs that don't belong to this wallet"));
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
) -> Result<Vec<Recipient>, RpcError> {
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
            let text = "Unable to create transaction. Transaction must have at least one recipient";
            return Err(RpcError::invalid_parameter(text));
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
) -> Result<(), RpcError> {
    let mempool = services.host.mempool.info(services.scope)?;
    // Without evictions, the mempool minimum is the relay feerate, and the check of the required fee below refuses a low feerate.
    if feerate < mempool.min_feerate && mempool.min_feerate > mempool.relay_feerate {
        let (feerate, least) = (money(per_kvb(feerate)), money(per_kvb(mempool.min_feerate)));
        return Err(RpcError::wallet(format!(
            "New fee rate ({feerate}) is lower than the minimum fee rate ({least}) to get into the mempool -- "
        )));
    }
    let control = CoinControl { add_inputs: false, ..control.clone() };
    let wallet = services.host.wallet.info(services.scope)?;
    let mut inputs = Available::read(services, &wallet, &control).map_err(unfunded)?;
    let bump_fees = inputs.set_feerates(feerate, settings.consolidate_feerate).map_err(unfunded)?;
    let parents = control.inputs.iter().map(|input| input.outpoint.txid);
    let bump_fee = bump_fees.combined(parents).unsigned_abs();
    let size = signed_weight(outputs, &inputs.preset_sizes).to_vbytes_ceil();
    let new_fee = feerate.fee(size).saturating_add(bump_fee);
    let more = mempool.incremental_feerate.fee(size);
    let least = old_fee.saturating_add(more);
    if new_fee < least {
        let [new_fee, least, old_fee, more] = [new_fee, least, old_fee, more].map(money);
        return Err(RpcError::invalid_parameter(format!(
            "Insufficient total fee {new_fee}, must be at least {least} (oldFee {old_fee} + incrementalFee {more})"
        )));
    }
    let required = mempool.relay_feerate.max(settings.min_feerate).fee(size);
    if new_fee < required {
        let required = money(required);
        let text = format!("Insufficient total fee (cannot be less than required fee {required})");
        return Err(RpcError::invalid_parameter(text));
    }
    if new_fee > settings.max_fee {
        let (fee, most) = (money(new_fee), money(settings.max_fee));
        return Err(RpcError::wallet(format!(
            "Specified or calculated fee {fee} is too high (cannot be higher than -maxtxfee {most})"
        )));
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
) -> Result<FeeRate, RpcError> {
    let mempool = services.host.mempool.info(services.scope)?;
    let old = FeeRate::paid(old_fee, original.vsize() as u64).saturating_add(FeeRate::from_sat_per_kvb(1));
    let more = old.saturating_add(mempool.incremental_feerate.max(INCREMENTAL_FEERATE));
    let least = match feerate(services, settings, control) {
        Ok(least) => least.feerate,
        Err(SpendError::NoFeerate) => mempool.relay_feerate.max(settings.min_feerate),
        Err(error) => return Err(unfunded(error)),
    };
    Ok(more.max(least))
}

fn unfunded(error: SpendError) -> RpcError {
    match error {
        SpendError::Service(error) => error.into(),
        rule => RpcError::wallet(format!("Unable to create transaction. {rule}")),
    }
}

fn sum(outputs: &[TxOut]) -> Amount {
    outputs.iter().map(|output| output.value).fold(Amount::ZERO, Amount::saturating_add)
}

fn per_kvb(feerate: FeeRate) -> Amount {
    Amount::from_sat(feerate.to_sat_per_kvb())
}
