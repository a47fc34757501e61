//! `sendtoaddress` and `sendmany`.

use std::collections::{HashMap, HashSet};
use std::sync::PoisonError;

use bitcoin::secp256k1::rand::seq::SliceRandom;
use bitcoin::secp256k1::rand::{Rng, thread_rng};
use bitcoin::{OutPoint, ScriptBuf, Sequence, Transaction, TxOut, Txid, consensus};
use outrigger_sdk::RpcError;
use outrigger_sdk::amount;
use outrigger_sdk::params::{flag, int32, text};
use outrigger_sdk::service::ErrorKind;
use outrigger_sdk::service::log::Level;
use outrigger_sdk::service::mempool::{Admission, MempoolEntry};
use outrigger_sdk::service::wallet::{MAX_TEXT_LEN, Ownership, ScriptInfo, TxState, WalletCoin, WalletInfo};
use outrigger_sdk::sign::{Sighash, SolvingSet, WalletKeys, sign_transaction};
use outrigger_sdk::standard::address;
use outrigger_sdk::wire::Blob;
use serde_json::{Value, json};

use crate::arguments::{self, avoid_reuse};
use crate::change::Change;
use crate::error::WalletError;
use crate::payment::{Rank, Recipient, Spendable, Terms, check_dust, output, unsigned};
use crate::weight::{input_size, keys_for};
use crate::{Question, WalletPlugin, coins, locktime, recipients, reuse};

/// The sequence of a payment that can be replaced (BIP 125).
const REPLACEABLE: Sequence = Sequence(0xffff_fffd);
/// The sequence of one that cannot; its lock time still counts.
const FINAL: Sequence = Sequence(0xffff_fffe);

/// The greatest confirmation target, in blocks.
const MAX_TARGET: i64 = 1008;
/// The names of estimate modes, in any case.
const ESTIMATE_MODES: [&str; 3] = ["unset", "economical", "conservative"];

/// The depth from which a coin that others paid us is spent gladly, in blocks.
const SETTLED_DEPTH: u32 = 6;
/// The length up to which chains of our own unconfirmed transactions are continued without need.
const SHORT_CHAIN: u64 = 2;
/// The most unconfirmed transactions that may build on one another, the payment included.
const MAX_CHAIN: u64 = 25;

/// What a payment pays per virtual byte, and why.
struct Feerate {
    /// In satoshi per 1000 virtual bytes.
    feerate: u64,
    /// bitcoind's name of the reason.
    reason: &'static str,
}

/// A checked request.
struct Request {
    terms: Terms,
    sequence: Sequence,
    fee_reason: &'static str,
    verbose: bool,
    /// Whether coins of scripts that the wallet has spent from are left alone.
    avoid_reuse: bool,
    /// The keys and texts to store with the payment.
    metadata: Vec<(&'static str, String)>,
}

/// `sendtoaddress`: pays one recipient.
pub fn send_to_address(question: &mut Question<'_>, plugin: &WalletPlugin) -> Result<Value, WalletError> {
    send(question, plugin, Request::to_address)
}

/// `sendmany`: pays several recipients in one transaction.
pub fn send_many(question: &mut Question<'_>, plugin: &WalletPlugin) -> Result<Value, WalletError> {
    send(question, plugin, Request::to_many)
}

/// Makes a payment, signs it, gives it to the mempool.
///
/// Payments are made one after the other, from before the wallet is looked at until the mempool has the payment, and coins
/// that the mempool's transactions spend are not chosen: two payments at once would else replace one another.
fn send(
    question: &Question<'_>,
    plugin: &WalletPlugin,
    read: fn(&Question<'_>, Option<u64>, &WalletInfo) -> Result<Request, WalletError>,
) -> Result<Value, WalletError> {
    let _paying = plugin.paying.lock().unwrap_or_else(PoisonError::into_inner);
    let request = read(question, plugin.fallback_feerate, &question.wallet()?)?;
    let change = Change::reserve(question, &question.wallet()?, &request.terms.recipients)?;
    // Reserving wrote to the wallet: what is read from here on is of one moment after that.
    let wallet = question.wallet()?;
    let paid = pay(question, &wallet, &request, &change).and_then(|signed| submit(question, &signed));
    // The change address of a payment that the mempool has refused is as free as that of one that was not made, unless the
    // wallet has met it, which `return_address` finds out.
    let txid = paid.inspect_err(|_| change.give_back(question))?;
    for (key, text) in &request.metadata {
        store(question, txid, key, text);
    }
    Ok(if request.verbose { json!({"txid": txid, "fee_reason": request.fee_reason}) } else { json!(txid) })
}

/// The texts at these positions that are not empty, under the keys that they are stored with.
fn metadata(
    question: &Question<'_>,
    texts: &[(usize, &'static str)],
) -> Result<Vec<(&'static str, String)>, WalletError> {
    let mut metadata = Vec::new();
    for (index, key) in texts {
        let text = question.params.given(*index).map(text).transpose()?.unwrap_or_default();
        if text.len() > MAX_TEXT_LEN {
            return Err(WalletError::TextTooLong(key, text.len()));
        }
        if !text.is_empty() {
            metadata.push((*key, text.to_owned()));
        }
    }
    Ok(metadata)
}

impl Request {
    fn new(
        question: &Question<'_>,
        explicit: Option<u64>,
        fallback: Option<u64>,
        recipients: Vec<Recipient>,
        replaceable: Option<bool>,
    ) -> Result<Self, WalletError> {
        check_dust(&recipients)?;
        let Feerate { feerate, reason } = feerate(question, explicit, fallback)?;
        let terms = Terms { recipients, feerate };
        terms.check()?;
        let sequence = if replaceable.unwrap_or(true) { REPLACEABLE } else { FINAL };
        Ok(Self { terms, sequence, fee_reason: reason, verbose: false, avoid_reuse: false, metadata: Vec::new() })
    }

    /// Reads the arguments of `sendtoaddress` in release 29's order of checks.
    fn to_address(question: &Question<'_>, fallback: Option<u64>, wallet: &WalletInfo) -> Result<Self, WalletError> {
        let params = &question.params;
        let metadata = metadata(question, &[(2, "comment"), (3, "to")])?;
        let replaceable = params.given(5).map(flag).transpose()?;
        let avoid_reuse = avoid_reuse(params.given(8), wallet)?;
        let explicit = fee_options(params.given(6), params.given(7), params.given(9))?;
        if wallet.locked {
            return Err(ErrorKind::WalletLocked.into());
        }
        let text = params.text(0)?;
        let script =
            address::to_script(text, question.network()?).map_err(|_| WalletError::AddressAmong(text.to_owned()))?;
        let amount = amount::from_json(params.get(1))?;
        let subtract_fee = params.flag_or(4, false)?;
        let verbose = params.flag_or(10, false)?;
        if !wallet.private_keys_enabled {
            return Err(WalletError::PrivateKeysDisabled);
        }
        let recipients = vec![Recipient { script, amount, subtract_fee }];
        let request = Self::new(question, explicit, fallback, recipients, replaceable)?;
        Ok(Self { verbose, avoid_reuse, metadata, ..request })
    }

    /// Reads the arguments of `sendmany`, whose recipients are looked at before the wallet is. It spends coins of used
    /// addresses also from a wallet that avoids reuse, as bitcoind's does.
    fn to_many(question: &Question<'_>, fallback: Option<u64>, wallet: &WalletInfo) -> Result<Self, WalletError> {
        let params = &question.params;
        recipients::check_dummy(params.given(0))?;
        let metadata = metadata(question, &[(3, "comment")])?;
        let replaceable = params.given(5).map(flag).transpose()?;
        let explicit = fee_options(params.given(6), params.given(7), params.given(8))?;
        let mut recipients = recipients::read(params.get(1), params.given(4), question.network()?)?;
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
        let request = Self::new(question, explicit, fallback, recipients, replaceable)?;
        Ok(Self { verbose, metadata, ..request })
    }
}

/// The explicit feerate of a call, in satoshi per 1000 virtual bytes; it excludes a target and a mode.
fn fee_options(
    target: Option<&Value>,
    mode: Option<&Value>,
    feerate: Option<&Value>,
) -> Result<Option<u64>, WalletError> {
    let mode = mode.map(text).transpose()?;
    if let Some(feerate) = feerate {
        if target.is_some() {
            return Err(WalletError::FeerateAndTarget);
        }
        if mode.is_some_and(|mode| mode != "unset") {
            return Err(WalletError::FeerateAndMode);
        }
        return arguments::feerate(feerate).map(Some);
    }
    if mode.is_some_and(|mode| !ESTIMATE_MODES.iter().any(|known| known.eq_ignore_ascii_case(mode))) {
        return Err(WalletError::EstimateMode);
    }
    if let Some(target) = target
        && !(1..=MAX_TARGET).contains(&i64::from(int32(target)?))
    {
        return Err(WalletError::ConfirmationTarget(MAX_TARGET));
    }
    Ok(None)
}

/// The feerate to pay: the explicit one, or the fallback, which rises to what the mempool takes now.
fn feerate(question: &Question<'_>, explicit: Option<u64>, fallback: Option<u64>) -> Result<Feerate, WalletError> {
    let mempool = question.host.mempool.info(question.scope)?;
    let minimum = mempool.relay_feerate;
    match (explicit, fallback) {
        (Some(feerate), _) if feerate < minimum => Err(WalletError::FeerateTooLow { feerate, minimum }),
        (Some(feerate), _) => Ok(Feerate { feerate, reason: "PayTxFee set" }),
        (None, None) => Err(WalletError::NoFeerate),
        (None, Some(fallback)) if fallback < mempool.min_feerate && mempool.min_feerate > minimum => {
            Ok(Feerate { feerate: mempool.min_feerate, reason: "Mempool Min Fee" })
        }
        (None, Some(fallback)) if fallback < minimum => {
            Ok(Feerate { feerate: minimum, reason: "Minimum Required Fee" })
        }
        (None, Some(fallback)) => Ok(Feerate { feerate: fallback, reason: "Fallback fee" }),
    }
}

/// The coins to choose from.
struct Purse {
    coins: Vec<Spendable>,
    scripts: HashMap<ScriptBuf, ScriptInfo>,
    /// Whether coins were left out because their chain of unconfirmed transactions is too long.
    chains_too_long: bool,
}

/// Makes and signs the payment.
fn pay(
    question: &Question<'_>,
    wallet: &WalletInfo,
    request: &Request,
    change: &Change,
) -> Result<Transaction, WalletError> {
    let purse = open_purse(question, wallet, request.avoid_reuse)?;
    let terms = &request.terms;
    let sized = change.size(question)?;
    let chosen = terms.choose(&purse.coins, sized).map_err(|error| match error {
        WalletError::InsufficientFunds if purse.chains_too_long => WalletError::UnconfirmedChain,
        other => other,
    })?;
    let division = terms.divide(&chosen, sized)?;
    let paid = division.paid.iter().zip(&terms.recipients);
    let mut outputs: Vec<TxOut> = paid.map(|(value, recipient)| output(*value, recipient.script.clone())).collect();
    if let Some(value) = division.change {
        // Where the change stands must not tell it from the rest.
        outputs.insert(thread_rng().gen_range(0..=outputs.len()), output(value, change.script()?.clone()));
    }
    let now = question.host.chain.time(question.scope)?;
    let lock_time = locktime::against_fee_sniping(&wallet.synced, now, &mut thread_rng());
    let transaction = unsigned(&chosen, outputs, request.sequence, lock_time);
    sign(question, transaction, &chosen, &purse.scripts)
}

/// Gathers the coins that can be spent now: ours, mature, confirmed or our own trusted change, not spent by the mempool, and
/// of a form whose keys we hold; those of scripts that were spent from are left out where that is asked for.
fn open_purse(question: &Question<'_>, wallet: &WalletInfo, avoid_reuse: bool) -> Result<Purse, WalletError> {
    let spent_from = if avoid_reuse { reuse::spent_from(question)? } else { HashSet::new() };
    let mut candidates = coins::all(question)?;
    candidates.retain(|coin| {
        let confirmed = matches!(coin.state, TxState::Confirmed { .. });
        let own_change = coin.state == TxState::InMempool && coin.trusted && coin.from_us;
        coin.ownership == Ownership::Spendable
            && (confirmed || own_change)
            && !coins::is_immature(coin, &wallet.synced)
            && !spent_from.contains(&coin.script)
    });
    let outpoints: Vec<OutPoint> = candidates.iter().map(|coin| coin.outpoint).collect();
    let mut spenders = question.host.mempool.spenders(question.scope, outpoints)?.into_iter();
    candidates.retain(|_| spenders.next().flatten().is_none());
    let parents = coins::mempool_entries(question, &candidates)?;
    let scripts = coins::scripts_of(question, &candidates)?;
    let signable = signable_keys(question, &scripts)?;
    let mut purse = Purse { coins: Vec::new(), scripts: HashMap::new(), chains_too_long: false };
    for coin in candidates {
        let depth = coins::depth(&coin, &wallet.synced);
        let info = scripts.get(&coin.script);
        let size = info.and_then(|info| input_size(&coin.script, &info.solving, &|key| signable.contains(key)));
        match (size, rank(&coin, depth, parents.get(&coin.outpoint.txid))) {
            (None, _) => {}
            (Some(_), None) => purse.chains_too_long = true,
            (Some(size), Some(rank)) => {
                let (outpoint, value, script) = (coin.outpoint, coin.value, coin.script);
                purse.coins.push(Spendable { outpoint, value, script, size, rank });
            }
        }
    }
    purse.scripts = scripts;
    Ok(purse)
}

/// How gladly a coin is spent; none where the mempool would not take what spends it. Settled ones first, then all that are
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

/// The public keys behind these scripts that the wallet signs with.
pub fn signable_keys(
    question: &Question<'_>,
    scripts: &HashMap<ScriptBuf, ScriptInfo>,
) -> Result<HashSet<Vec<u8>>, WalletError> {
    let keys: HashSet<Vec<u8>> = scripts.iter().flat_map(|(script, info)| keys_for(script, &info.solving)).collect();
    if keys.is_empty() {
        return Ok(keys);
    }
    let asked: Vec<Blob> = keys.iter().cloned().map(Blob).collect();
    let available = question.host.signer.available(question.scope, scripts.keys().cloned().collect(), asked)?;
    Ok(keys.into_iter().zip(available).filter(|(_, available)| *available).map(|(key, _)| key).collect())
}

fn sign(
    question: &Question<'_>,
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
    let spent: Vec<Option<TxOut>> = chosen.iter().map(|coin| Some(output(coin.value, coin.script.clone()))).collect();
    let owned: HashSet<&ScriptBuf> = chosen.iter().map(|coin| &coin.script).collect();
    let keys = WalletKeys::new(&*question.host.signer, question.scope, owned.into_iter().cloned().collect());
    let errors = sign_transaction(&mut transaction, &spent, &known, &keys, Sighash::DEFAULT)?;
    if errors.iter().any(Option::is_some) { Err(WalletError::SigningFailed) } else { Ok(transaction) }
}

/// Gives the payment to the mempool. A refused one is stored nowhere.
fn submit(question: &Question<'_>, signed: &Transaction) -> Result<Txid, WalletError> {
    /// The limit of the fee has been checked.
    const NO_LIMIT: u64 = 0;
    let raw = Blob(consensus::serialize(signed));
    match question.host.mempool.submit(question.scope, raw, NO_LIMIT)? {
        Admission::Accepted { txid, .. } | Admission::Known { txid } => Ok(txid),
        Admission::Rejected { reason, detail } if detail.is_empty() => Err(WalletError::Rejected(reason)),
        Admission::Rejected { reason, detail } => Err(WalletError::Rejected(format!("{reason}, {detail}"))),
        Admission::MissingInputs => Err(WalletError::Rejected("bad-txns-inputs-missingorspent".into())),
        Admission::FeeTooHigh { .. } => Err(WalletError::FeeTooHigh),
        Admission::AlreadyInChain | Admission::Undecodable => {
            Err(RpcError::internal("the mempool did not understand the payment").into())
        }
    }
}

/// Stores a text with the payment. The payment is made, so that a failure goes to the log and not to the client, who would
/// pay again.
///
/// A call's snapshot may be older than the payment. Writing lets go of it, and what comes next waits until the wallet has
/// seen what the mempool has: so where the wallet does not know the payment yet, a second attempt finds it.
fn store(question: &Question<'_>, txid: Txid, key: &str, text: &str) {
    let attempt = || question.host.wallet.set_metadata(question.scope, txid, key.to_owned(), text.to_owned());
    let stored = attempt().or_else(|error| match error.kind {
        ErrorKind::NotFound => attempt(),
        _ => Err(error),
    });
    if let Err(error) = stored {
        let message = format!("the {key} of payment {txid} could not be stored: {error}");
        question.host.log(Level::Warn, message);
    }
}
