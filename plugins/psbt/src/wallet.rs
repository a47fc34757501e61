//! `walletprocesspsbt`: what the call's wallet knows of a PSBT, and the signatures of its keys.
//!
//! [`fill`] does the same for what a wallet has just funded.

use std::collections::{BTreeSet, HashMap};

use bitcoin::key::UntweakedPublicKey;
use bitcoin::secp256k1::{Parity, Secp256k1, VerifyOnly};
use bitcoin::{PublicKey, ScriptBuf, Txid};
use outrigger_sdk::service::ErrorKind;
use outrigger_sdk::sign::{KeySource, LocalKeys, Sighash, SolvingSet, WalletKeys};
use outrigger_sdk::standard::transaction_from_bytes;

use crate::error::PsbtError;
use crate::sign::{Origins, Signing, remove_unnecessary_transactions, sign_inputs, update_outputs, verified};
use crate::update::{processed, sighash};
use crate::{Context, Outcome, psbt_argument};
use outrigger_sdk::psbt::{Input, PreviousTransaction, Psbt};

pub fn wallet_process_psbt(context: &Context<'_>) -> Outcome {
    let wallet = context.wallet()?;
    let mut psbt = psbt_argument(&context.params)?;
    let signs = context.params.flag_or(1, true)?;
    let sighash = sighash(context.params.given(2))?;
    let tells_origins = context.params.flag_or(3, true)?;
    let finalize = context.params.flag_or(4, true)?;
    if signs && wallet.locked {
        return Err(PsbtError::Service(ErrorKind::WalletLocked.into()));
    }
    let complete = fill(context, &mut psbt, Filling { signs, sighash, tells_origins, finalize })?;
    processed(psbt, complete)
}

/// What a wallet adds to a PSBT.
#[derive(Clone, Copy)]
pub struct Filling {
    /// Whether it signs.
    pub signs: bool,
    /// By which hash type.
    pub sighash: Sighash,
    /// Whether it tells where keys come from.
    pub tells_origins: bool,
    /// Whether it finalises the inputs that are complete.
    pub finalize: bool,
}

/// Adds what the wallet knows, and its signatures. Whether all inputs are complete.
pub fn fill(context: &Context<'_>, psbt: &mut Psbt, filling: Filling) -> Result<bool, PsbtError> {
    let Filling { signs, sighash, tells_origins, finalize } = filling;
    add_transactions(context, psbt)?;
    let open = psbt.inputs.iter().filter(|input| !input.is_final());
    if signs && open.filter_map(|input| input.sighash_type).any(|asked| asked != sighash.to_i32()) {
        return Err(PsbtError::SighashMismatch);
    }
    let known = Known::of(context, psbt)?;
    let none = Origins::default();
    let origins = if tells_origins { &known.origins } else { &none };
    let (wallet_keys, no_keys);
    let keys: &dyn KeySource = if signs {
        wallet_keys = WalletKeys::new(&*context.host.signer, context.scope, known.scripts);
        &wallet_keys
    } else {
        no_keys = LocalKeys::default();
        &no_keys
    };
    let wanted = context.plugin.wanted;
    let signing = Signing { known: &known.solving, origins, keys, sighash, finalize, wanted };
    sign_inputs(psbt, &signing, false)?;
    update_outputs(psbt, &known.solving, origins);
    remove_unnecessary_transactions(psbt, sighash);
    let spent = psbt.spent();
    Ok(verified(psbt, &spent).into_iter().all(|verified| verified))
}

/// Adds the wallet's transactions that the inputs spend.
fn add_transactions(context: &Context<'_>, psbt: &mut Psbt) -> Result<(), PsbtError> {
    let lacks = |input: &Input| !input.is_final() && input.non_witness_utxo.is_none();
    let spends = psbt.each_input().filter(|(_, known)| lacks(known)).map(|(input, _)| input.previous_output.txid);
    let txids: Vec<Txid> = spends.collect::<BTreeSet<_>>().into_iter().collect();
    let found = context.host.wallet.raw_transactions(context.scope, txids.clone())?;
    let found = txids
        .into_iter()
        .zip(found)
        .filter_map(|(txid, raw)| Some((txid, PreviousTransaction::new(transaction_from_bytes(&raw?)?))));
    let found: HashMap<_, _> = found.collect();
    for (input, known) in psbt.tx.input.iter().zip(&mut psbt.inputs).filter(|(_, known)| lacks(known)) {
        let outpoint = input.previous_output;
        let transaction = found.get(&outpoint.txid);
        known.non_witness_utxo =
            transaction.filter(|transaction| transaction.output.len() as u64 > u64::from(outpoint.vout)).cloned();
    }
    Ok(())
}

/// What a wallet knows of the scripts and keys of a PSBT.
struct Known {
    solving: SolvingSet,
    origins: Origins,
    /// The scripts whose keys may sign.
    scripts: Vec<ScriptBuf>,
}

impl Known {
    fn of(context: &Context<'_>, psbt: &Psbt) -> Result<Self, PsbtError> {
        let mut scripts: BTreeSet<ScriptBuf> =
            psbt.tx.output.iter().map(|output| output.script_pubkey.clone()).collect();
        let curve = Secp256k1::verification_only();
        for (input, known) in psbt.each_input() {
            if let Some(spent) = known.spent(input.previous_output) {
                scripts.insert(spent.script_pubkey.clone());
                scripts.extend(scripts_of_keys(known, &curve));
            }
        }
        let scripts: Vec<ScriptBuf> = scripts.into_iter().collect();
        let infos = context.host.wallet.scripts(context.scope, scripts.clone())?;
        let mut known = Self { solving: SolvingSet::default(), origins: Origins::default(), scripts: Vec::new() };
        for (script, info) in scripts.into_iter().zip(infos) {
            if let Some(info) = info {
                known.solving.add(&script, info.solving);
                info.origins.iter().for_each(|origin| known.origins.add(origin));
                known.scripts.push(script);
            }
        }
        Ok(known)
    }
}

/// The scripts by which a wallet may know the keys that an input names: its own, not that of the input.
fn scripts_of_keys(input: &Input, curve: &Secp256k1<VerifyOnly>) -> impl Iterator<Item = ScriptBuf> {
    let ecdsa = input.origins.keys().filter_map(|key| PublicKey::from_slice(key).ok());
    let x_only = input.tap_origins.keys().filter_map(|key| UntweakedPublicKey::from_slice(key).ok());
    let both = x_only.flat_map(|key| [Parity::Even, Parity::Odd].map(|parity| PublicKey::new(key.public_key(parity))));
    ecdsa.chain(both).flat_map(|key| {
        let program = key.wpubkey_hash().ok().map(|hash| ScriptBuf::new_p2wpkh(&hash));
        let nested = program.as_ref().map(|program| ScriptBuf::new_p2sh(&program.script_hash()));
        let taproot = key.compressed.then(|| ScriptBuf::new_p2tr(curve, key.inner.x_only_public_key().0, None));
        let plain = [ScriptBuf::new_p2pk(&key), ScriptBuf::new_p2pkh(&key.pubkey_hash())];
        plain.into_iter().chain(program).chain(nested).chain(taproot)
    })
}
