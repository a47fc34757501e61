//! Spends whole coins, all or the given ones, and shares their value among recipients (sendall).

use std::collections::{HashMap, HashSet};

use bitcoin::{OutPoint, Sequence, SignedAmount, Transaction, TxIn};
use outrigger_standard::address;
use outrigger_standard::policy::{DUST_FEERATE, MAX_STANDARD_WEIGHT, dust_threshold};
use outrigger_values::amount::Saturating;
use outrigger_values::{RpcError, RpcErrorCode};

use crate::Services;
use crate::SpendSettings;
use crate::available::{Available, owned_outputs};
use crate::coin::{Coin, fee, signed, sum, unsigned};
use crate::coins;
use crate::control::{CoinControl, PresetInput};
use crate::error::{FEE_TOO_HIGH, SpendError};
use crate::feerate::ReasonedFeeRate;
use crate::truc::{self, TRUC};
use crate::weight::{InputSize, signed_weight};

/// The parameters of sendall.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// The transaction so far: its outputs are the recipients. With `named`, its inputs are the coins to spend.
    pub transaction: Transaction,
    /// The positions of the recipients without an amount, who share the remainder.
    pub sharers: HashSet<usize>,
    /// Whether exactly the transaction's inputs are spent, even if there are none.
    pub named: bool,
    /// Whether to leave out coins that cost more to spend than they are worth.
    pub send_max: bool,
    /// Whether the transaction signals replaceability (BIP 125).
    pub replaceable: bool,
}

const UNSOLVABLE: &str = "Unable to determine the size of the transaction, the wallet contains unsolvable descriptors";

/// Makes the unsigned transaction. `control` selects coins. The error is for the first broken rule, with bitcoind's code.
pub fn sweep(
    services: Services<'_>,
    settings: &SpendSettings,
    sweep: Sweep,
    mut control: CoinControl,
    feerate: ReasonedFeeRate,
) -> Result<Transaction, RpcError> {
    let Sweep { mut transaction, sharers, named, send_max, replaceable } = sweep;
    let as_wallet_error = |error: SpendError| error.with_code(RpcErrorCode::WALLET);
    if named {
        check_named(services, &transaction)?;
        control.inputs = PresetInput::of(&transaction);
        control.add_inputs = false;
    }
    control.version = transaction.version;
    let wallet = services.host.wallet.info(services.scope)?;
    let mut available = Available::read(services, &wallet, &control).map_err(|error| match error {
        SpendError::PresetVersion(_) => error.with_code(RpcErrorCode::INVALID_PARAMETER),
        SpendError::UnsolvableInput(_) => RpcError::wallet(UNSOLVABLE),
        error => as_wallet_error(error),
    })?;
    if available.unsolvable > SignedAmount::ZERO && !send_max {
        return Err(RpcError::wallet(UNSOLVABLE));
    }
    let bump_fees = available.set_feerates(feerate.feerate, settings.consolidate_feerate).map_err(as_wallet_error)?;
    let worth = |position: &usize| {
        let coin = available.coins.get(*position);
        coin.is_some_and(|coin| !send_max || fee(feerate.feerate, coin.virtual_size()) <= coin.value())
    };
    // A repeated input counts twice, as in bitcoind.
    let places: HashMap<OutPoint, usize> = control.inputs.iter().map(|input| input.outpoint).zip(0..).collect();
    let chosen: Vec<usize> = match named {
        true => transaction.input.iter().filter_map(|input| places.get(&input.previous_output).copied()).collect(),
        false => (0..available.coins.len()).filter(worth).collect(),
    };
    let coins = || chosen.iter().filter_map(|position| available.coins.get(*position));
    if !named {
        let sequence = if replaceable { Sequence::ENABLE_RBF_NO_LOCKTIME } else { Sequence::MAX };
        let input = |previous_output| TxIn { previous_output, sequence, ..TxIn::default() };
        transaction.input = coins().map(|coin| input(coin.outpoint)).collect();
    }
    let total = sum(coins().map(Coin::value));
    let sizes: Vec<InputSize> = chosen.iter().filter_map(|position| available.size(*position)).collect();
    let weight = signed_weight(&transaction.output, &sizes);
    let cost = fee(feerate.feerate, weight.to_vbytes_ceil());
    let unconfirmed = coins().filter(|coin| coin.depth == 0).map(|coin| coin.outpoint.txid);
    let left = total.saturating_sub(cost).saturating_sub(bump_fees.combined(unconfirmed));
    if unsigned(cost) > settings.max_fee {
        return Err(as_wallet_error(FEE_TOO_HIGH));
    }
    if left <= SignedAmount::ZERO {
        return Err(insufficient(if send_max {
            "Total value of UTXO pool too low to pay for transaction, try using lower feerate."
        } else {
            "Total value of UTXO pool too low to pay for transaction. Try using lower feerate or excluding uneconomic UTXOs with 'send_max' option."
        }));
    }
    let limit = match coins().any(|coin| coin.ancestors > 0) {
        _ if transaction.version != TRUC => MAX_STANDARD_WEIGHT,
        true => truc::MAX_CHILD_WEIGHT,
        false => truc::MAX_WEIGHT,
    };
    if weight > limit {
        return Err(RpcError::wallet("Transaction too large."));
    }
    let claimed = sum(transaction.output.iter().map(|output| signed(output.value)));
    if claimed > total {
        return Err(insufficient("Assigned more value to outputs than available funds."));
    }
    if claimed > left {
        return Err(insufficient("Insufficient funds for fees after creating specified outputs."));
    }
    share(services, &mut transaction, &sharers, left - claimed)?;
    Ok(transaction)
}

fn insufficient(message: &str) -> RpcError {
    RpcError::new(RpcErrorCode::WALLET_INSUFFICIENT_FUNDS, message)
}

/// Fails if an input is spent or not the wallet's.
fn check_named(services: Services<'_>, transaction: &Transaction) -> Result<(), RpcError> {
    let outpoints: Vec<OutPoint> = transaction.input.iter().map(|input| input.previous_output).collect();
    let owned = owned_outputs(services, &outpoints)?;
    let spent = coins::spent(services, &outpoints)?;
    for outpoint in &outpoints {
        let OutPoint { txid, vout } = outpoint;
        let refused = if spent.contains(outpoint) {
            format!("Input not available. UTXO ({txid}:{vout}) was already spent.")
        } else if !owned.contains_key(outpoint) {
            format!("Input not found. UTXO ({txid}:{vout}) is not part of wallet.")
        } else {
            continue;
        };
        return Err(RpcError::invalid_parameter(refused));
    }
    Ok(())
}

/// Shares `left` among the sharers in equal parts; the first also gets the rest of the division. Fails for dust outputs.
fn share(
    services: Services<'_>,
    transaction: &mut Transaction,
    sharers: &HashSet<usize>,
    left: SignedAmount,
) -> Result<(), RpcError> {
    let count = i64::try_from(sharers.len()).unwrap_or(i64::MAX).max(1);
    let mut rest = left % count;
    for (position, output) in transaction.output.iter_mut().enumerate() {
        let shares = sharers.contains(&position);
        if shares {
            output.value = unsigned(left / count + std::mem::take(&mut rest));
        }
        if output.value >= dust_threshold(&output.script_pubkey, DUST_FEERATE) {
            continue;
        }
        if shares {
            return Err(insufficient("Dynamically assigned remainder results in dust output."));
        }
        let network = services.host.chain.network(services.scope)?;
        let to = address::from_script(&output.script_pubkey, network).unwrap_or_default();
        let message = format!("Specified output amount to {to} is below dust threshold.");
        return Err(RpcError::invalid_parameter(message));
    }
    Ok(())
}
