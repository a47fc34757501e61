//! `sendtoaddress` and `sendmany`.

use std::collections::{HashMap, HashSet};
use std::sync::PoisonError;

use bitcoin::secp256k1::rand::seq::SliceRandom;
use bitcoin::secp256k1::rand::{Rng, thread_rng};
use bitcoin::{OutPoint, ScriptBuf, Sequence, Transaction, TxOut, Txid, consensus};
use outrigger_sdk::amount;
use outrigger_sdk::params::{flag, int32, text};
use outrigger_sdk::service::ErrorKind;
use outrigger_sdk::service::mempool::{Admission, MempoolEntry};
use outrigger_sdk::service::wallet::{MAX_TEXT_LEN, Ownership, ScriptInfo, TxState, WalletCoin, WalletInfo};
use outrigger_sdk::sign::{Sighash, SolvingSet, WalletKeys, sign_transaction};
use outrigger_sdk::standard::address;
use outrigger_sdk::wire::Blob;
use outrigger_sdk::{FeeRate, RpcError};
use serde_json::{Value, json};

use crate::arguments::avoid_reuse;
use crate::change::Change;
use crate::error::WalletError;
use crate::payment::{PaymentRequest, Rank, Recipient, Spendable, check_dust, unsigned};
use crate::signable::signable_keys;
use crate::weight::input_size;
use crate::{CallContext, WalletPlugin, coins, locktime, recipients, reuse};

/// The sequence of a payment that can be replaced (BIP 125).
const REPLACEABLE: Sequence = Sequence(0xffff_fffd);
/// The sequence of one that cannot; its lock time still counts.
const FINAL: Sequence = Sequence(0xffff_fffe);

/// The blocks within which a payment is to be confirmed that names no target (`-txconfirmtarget`).
const DEFAULT_TARGET: u32 = 6;

/// The greatest confirmation target, in blocks.
const MAX_TARGET: i64 = 1008;
/// The names of estimate modes, in any case.
const ESTIMATE_MODES: [&str; 3] = ["unset", "economical", "conservative"];

/// The depth from which a coin that others paid us is spent without restraint, in blocks.
const SETTLED_DEPTH: u32 = 6;
/// The length up to which chains of our own unconfirmed transactions are continued without need.
const SHORT_CHAIN: u64 = 2;
/// The most unconfirmed transactions that may build on one another, the payment included.
const MAX_CHAIN: u64 = 25;

/// The feerate of a payment, and why it is that.
struct ReasonedFeeRate {
    feerate: FeeRate,
    /// bitcoind's name of the reason.
    reason: &'static str,
}

/// A checked request.
struct Request {
    payment: PaymentRequest,
    sequence: Sequence,
    fee_reason: &'static str,
    verbose: bool,
    /// Whether coins of scripts that the wallet has spent from are left alone.
    avoid_reuse: bool,
    /// The keys and texts to store with the payment.
    metadata: Vec<(String, String)>,
}

/// `sendtoaddress`: pays one recipient.
pub fn send_to_address(context: &mut CallContext<'_>, plugin: &WalletPlugin) -> Result<Value, WalletError> {
    send(context, plugin, Request::to_address)
}

/// `sendmany`: pays several recipients in one transaction.
pub fn send_many(context: &mut CallContext<'_>, plugin: &WalletPlugin) -> Result<Value, WalletError> {
    send(context, plugin, Request::to_many)
}

/// Makes a payment, signs it, sends it.
///
/// Payments are made one after the other, from before the wallet is looked at until the mempool has the payment, and coins
/// that the mempool's transactions spend are not chosen: two payments at once would else replace one another.
fn send(
    context: &CallContext<'_>,
    plugin: &WalletPlugin,
    read: fn(&CallContext<'_>, Option<FeeRate>, &WalletInfo) -> Result<Request, WalletError>,
) -> Result<Value, WalletError> {
    let _paying = plugin.paying.lock().unwrap_or_else(PoisonError::into_inner);
    let request = read(context, plugin.fallback_feerate, &context.wallet()?)?;
    let change = Change::reserve(context, &context.wallet()?, &request.payment.recipients)?;
    // Reserving wrote to the wallet: what is read from here on is of one moment after that.
    let wallet = context.wallet()?;
    let paid = pay(context, &wallet, &request, &change).and_then(|signed| submit(context, &signed, request.metadata));
    // The change address of a payment that the mempool has refused is as free as that of one that was not made, unless the
    // wallet has met it, which `return_address` finds out.
    let txid = paid.inspect_err(|_| change.give_back(context))?;
    Ok(if request.verbose { json!({"txid": txid, "fee_reason": request.fee_reason}) } else { json!(txid) })
}

/// The texts at these positions that are not empty, under the keys that they are stored with.
fn metadata(context: &CallContext<'_>, texts: &[(usize, &'static str)]) -> Result<Vec<(String, String)>, WalletError> {
    let mut metadata = Vec::new();
    for (index, key) in texts {
        let text = context.params.given(*index).map(text).transpose()?.unwrap_or_default();
        if text.len() > MAX_TEXT_LEN {
            return Err(WalletError::TextTooLong(key, text.len()));
        }
        if !text.is_empty() {
            metadata.push(((*key).to_owned(), text.to_owned()));
        }
    }
    Ok(metadata)
}

impl Request {
    fn new(
        context: &CallContext<'_>,
        fee: Fee,
        fallback: Option<FeeRate>,
        recipients: Vec<Recipient>,
        replaceable: Option<bool>,
    ) -> Result<Self, WalletError> {
        check_dust(&recipients)?;
        let ReasonedFeeRate { feerate, reason } = feerate(context, fee, fallback)?;
        let payment = PaymentRequest { recipients, feerate };
        payment.check()?;
        let sequence = if replaceable.unwrap_or(true) { REPLACEABLE } else { FINAL };
        Ok(Self { payment, sequence, fee_reason: reason, verbose: false, avoid_reuse: false, metadata: Vec::new() })
    }

    /// Reads the arguments of `sendtoaddress` in Bitcoin Core 29's order of checks.
    fn to_address(
        context: &CallContext<'_>,
        fallback: Option<FeeRate>,
        wallet: &WalletInfo,
    ) -> Result<Self, WalletError> {
        let params = &context.params;
        let metadata = metadata(context, &[(2, "comment"), (3, "to")])?;
        let replaceable = params.given(5).map(flag).transpose()?;
        let avoid_reuse = avoid_reuse(params.given(8), wallet)?;
        let fee = fee_options(params.given(6), params.given(7), params.given(9))?;
        if wallet.locked {
            return Err(ErrorKind::WalletLocked.into());
        }
        let text = params.text(0)?;
        let script =
            address::to_script(text, context.network()?).map_err(|_| WalletError::AddressAmong(text.to_owned()))?;
        let amount = amount::from_json(params.get(1))?;
        let subtract_fee = params.flag_or(4, false)?;
        let verbose = params.flag_or(10, false)?;
        if !wallet.private_keys_enabled {
            return Err(WalletError::PrivateKeysDisabled);
        }
        let recipients = vec![Recipient { script, amount, subtract_fee }];
        let request = Self::new(context, fee, fallback, recipients, replaceable)?;
        Ok(Self { verbose, avoid_reuse, metadata, ..request })
    }

    /// Reads the arguments of `sendmany`, whose recipients are looked at before the wallet is. It spends coins of used
    /// addresses also from a wallet that avoids reuse, as bitcoind's does.
    fn to_many(context: &CallContext<'_>, fallback: Option<FeeRate>, wallet: &WalletInfo) -> Result<Self, WalletError> {
        let params = &context.params;
        recipients::check_dummy(params.given(0))?;
        let metadata = metadata(context, &[(3, "comment")])?;
        let replaceable = params.given(5).map(flag).transpose()?;
        let fee = fee_options(params.given(6), params.given(7), params.given(8))?;
        let mut recipients = recipients::read(params.get(1), params.given(4), context.network()?)?;
        let verbose = params.flag_or(9, false)?;
        if wallet.locked {
            return Err(ErrorKind::WalletLocked.into());
        }
        if !wallet.private_keys_enabled {
            return Err(WalletError::PrivateKeysDisabled);
        }
        if recipients.is_empty() {
            return Err(WalletError::NoRecipients);
        }
        // The order of the outputs, and who bears the odd satoshi of a shared fee, tell nothing of the request.
        recipients.shuffle(&mut thread_rng());
        let request = Self::new(context, fee, fallback, recipients, replaceable)?;
        Ok(Self { verbose, metadata, ..request })
    }
}

/// What a call says of the feerate.
#[derive(Clone, Copy)]
enum Fee {
    /// This feerate.
    Exact(FeeRate),
    /// The node's estimate for so many blocks (`conf_target`).
    Within(u32),
}

/// What a call says of the feerate: an explicit one excludes a target and a mode.
fn fee_options(target: Option<&Value>, mode: Option<&Value>, feerate: Option<&Value>) -> Result<Fee, WalletError> {
    let mode = mode.map(text).transpose()?;
    if let Some(feerate) = feerate {
        if target.is_some() {
            return Err(WalletError::FeerateAndTarget);
        }
        if mode.is_some_and(|mode| mode != "unset") {
            return Err(WalletError::FeerateAndMode);
        }
        return Ok(Fee::Exact(FeeRate::from_sat_per_vb(feerate)?));
    }
    if mode.is_some_and(|mode| !ESTIMATE_MODES.iter().any(|known| known.eq_ignore_ascii_case(mode))) {
        return Err(WalletError::EstimateMode);
    }
    let target = target.map(int32).transpose()?.map_or(Ok(DEFAULT_TARGET), u32::try_from);
    let target = target.ok().filter(|target| (1..=MAX_TARGET).contains(&i64::from(*target)));
    target.map(Fee::Within).ok_or(WalletError::ConfirmationTarget(MAX_TARGET))
}

/// The feerate to pay: the explicit one; else the node's estimate or, without one, the fallback, either of which rises to what the
/// mempool takes now.
fn feerate(context: &CallContext<'_>, fee: Fee, fallback: Option<FeeRate>) -> Result<ReasonedFeeRate, WalletError> {
    let mempool = context.host.mempool.info(context.scope)?;
    let minimum = mempool.relay_feerate;
    let target = match fee {
        Fee::Exact(feerate) if feerate < minimum => return Err(WalletError::FeerateTooLow { feerate, minimum }),
        Fee::Exact(feerate) => return Ok(ReasonedFeeRate { feerate, reason: "PayTxFee set" }),
        Fee::Within(target) => target,
    };
    let found = match estimate(context, target)? {
        Some(feerate) => ReasonedFeeRate { feerate, reason: "Target 85% Threshold" },
        None => ReasonedFeeRate { feerate: fallback.ok_or(WalletError::NoFeerate)?, reason: "Fallback fee" },
    };
    Ok(match found.feerate {
        low if low < mempool.min_feerate && mempool.min_feerate > minimum => {
            ReasonedFeeRate { feerate: mempool.min_feerate, reason: "Mempool Min Fee" }
        }
        low if low < minimum => ReasonedFeeRate { feerate: minimum, reason: "Minimum Required Fee" },
        _ => found,
    })
}

/// The node's estimate, if it makes one.
fn estimate(context: &CallContext<'_>, target: u32) -> Result<Option<FeeRate>, WalletError> {
    match context.host.mempool.fee_estimate(context.scope, target) {
        Err(error) if error.kind == ErrorKind::Unsupported => Ok(None),
        estimate => Ok(estimate?),
    }
}

/// The coins that may be selected.
struct AvailableCoins {
    coins: Vec<Spendable>,
    scripts: HashMap<ScriptBuf, ScriptInfo>,
    /// Whether coins were left out because their chain of unconfirmed transactions is too long.
    chains_too_long: bool,
}

/// Makes and signs the payment.
fn pay(
    context: &CallContext<'_>,
    wallet: &WalletInfo,
    request: &Request,
    change: &Change,
) -> Result<Transaction, WalletError> {
    let available = available_coins(context, wallet, request.avoid_reuse)?;
    let payment = &request.payment;
    let sized = change.size(context)?;
    let chosen = payment.choose(&available.coins, sized).map_err(|error| match error {
        WalletError::InsufficientFunds if available.chains_too_long => WalletError::UnconfirmedChain,
        other => other,
    })?;
    let split = payment.divide(&chosen, sized)?;
    let paid = split.paid.iter().zip(&payment.recipients);
    let mut outputs: Vec<TxOut> =
        paid.map(|(value, recipient)| TxOut { value: *value, script_pubkey: recipient.script.clone() }).collect();
    if let Some(value) = split.change {
        // Where the change stands must not tell it from the rest.
        outputs.insert(
            thread_rng().gen_range(0..=outputs.len()),
            TxOut { value, script_pubkey: change.script()?.clone() },
        );
    }
    let now = context.host.chain.time(context.scope)?;
    let lock_time = locktime::against_fee_sniping(&wallet.synced, now, &mut thread_rng());
    let transaction = unsigned(&chosen, outputs, request.sequence, lock_time);
    sign(context, transaction, &chosen, &available.scripts)
}

/// Gathers the coins that can be spent now: ours, mature, confirmed or our own trusted change, not spent by the mempool, and
/// of a form whose keys we hold, and not locked; those of scripts that were spent from are left out where that is asked for.
fn available_coins(
    context: &CallContext<'_>,
    wallet: &WalletInfo,
    avoid_reuse: bool,
) -> Result<AvailableCoins, WalletError> {
    let spent_from = if avoid_reuse { reuse::spent_from(context)? } else { HashSet::new() };
    let locked = coins::locked(context)?;
    let mut candidates = coins::all(context)?;
    candidates.retain(|coin| {
        let confirmed = matches!(coin.state, TxState::Confirmed { .. });
        let own_change = coin.state == TxState::InMempool && coin.trusted && coin.from_us;
        coin.ownership == Ownership::Spendable
            && (confirmed || own_change)
            && !coins::is_immature(coin, &wallet.synced)
            && !spent_from.contains(&coin.script)
            && !locked.contains(&coin.outpoint)
    });
    let outpoints: Vec<OutPoint> = candidates.iter().map(|coin| coin.outpoint).collect();
    let mut spenders = context.host.mempool.spenders(context.scope, outpoints)?.into_iter();
    candidates.retain(|_| spenders.next().flatten().is_none());
    let parents = coins::mempool_entries(context, &candidates)?;
    let scripts = coins::scripts_of(context, &candidates)?;
    let signable = signable_keys(context, &scripts)?;
    let mut available = AvailableCoins { coins: Vec::new(), scripts: HashMap::new(), chains_too_long: false };
    for coin in candidates {
        let depth = coins::depth(&coin, &wallet.synced);
        let info = scripts.get(&coin.script);
        let size = info.and_then(|info| input_size(&coin.script, &info.solving, &|key| signable.contains(key)));
        match (size, rank(&coin, depth, parents.get(&coin.outpoint.txid))) {
            (None, _) => {}
            (Some(_), None) => available.chains_too_long = true,
            (Some(size), Some(rank)) => {
                let (outpoint, value, script) = (coin.outpoint, coin.value, coin.script);
                available.coins.push(Spendable { outpoint, value, script, size, rank });
            }
        }
    }
    available.scripts = scripts;
    Ok(available)
}

/// The spending priority of a coin; none where the mempool would not take what spends it. Settled ones first, then all that are
/// confirmed, then our own change in short chains, then in longer ones.
fn rank(coin: &WalletCoin, depth: u32, parent: Option<&MempoolEntry>) -> Option<Rank> {
    let chain = parent.map_or(1, |entry| entry.ancestor_count.max(entry.descendant_count));
    match depth {
        0 if chain <= SHORT_CHAIN => Some(2),
        0 if chain < MAX_CHAIN => Some(3),
        0 => None,
        1.. if coin.from_us || depth >= SETTLED_DEPTH => Some(0),
        _ => Some(1),
    }
}

fn sign(
    context: &CallContext<'_>,
    mut transaction: Transaction,
    chosen: &[&Spendable],
    scripts: &HashMap<ScriptBuf, ScriptInfo>,
) -> Result<Transaction, WalletError> {
    let mut known = SolvingSet::default();
    for coin in chosen {
        if let Some(info) = scripts.get(&coin.script) {
            known.add(&coin.script, info.solving.clone());
        }
    }
    let spent: Vec<Option<TxOut>> = chosen.iter().map(|coin| Some(coin.output())).collect();
    let owned: HashSet<&ScriptBuf> = chosen.iter().map(|coin| &coin.script).collect();
    let keys = WalletKeys::new(&*context.host.signer, context.scope, owned.into_iter().cloned().collect());
    let errors = sign_transaction(&mut transaction, &spent, &known, &keys, Sighash::DEFAULT)?;
    if errors.iter().any(Option::is_some) { Err(WalletError::SigningFailed) } else { Ok(transaction) }
}

/// Sends the payment. A refused one is stored nowhere. One of which the node did not say whether it took it is kept by the wallet
/// and offered again: to its sender it is made, since an error would have it paid twice.
fn submit(
    context: &CallContext<'_>,
    signed: &Transaction,
    metadata: Vec<(String, String)>,
) -> Result<Txid, WalletError> {
    let raw = Blob(consensus::serialize(signed));
    match context.host.wallet.send(context.scope, raw, metadata)? {
        None | Some(Admission::Accepted { .. } | Admission::Known { .. } | Admission::AlreadyInChain) => {
            Ok(signed.compute_txid())
        }
        Some(Admission::Rejected { reason, detail }) if detail.is_empty() => Err(WalletError::Rejected(reason)),
        Some(Admission::Rejected { reason, detail }) => Err(WalletError::Rejected(format!("{reason}, {detail}"))),
        Some(Admission::MissingInputs) => Err(WalletError::Rejected("bad-txns-inputs-missingorspent".into())),
        Some(Admission::FeeTooHigh { .. }) => Err(WalletError::FeeTooHigh),
        Some(Admission::Undecodable) => Err(RpcError::internal("the mempool did not understand the payment").into()),
    }
}
