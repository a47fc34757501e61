//! `walletprocesspsbt`: what the call's wallet knows of a PSBT, and the signatures of its keys.
//!
//! [`fill`] does the same for what a wallet has just funded.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use bitcoin::key::UntweakedPublicKey;
use bitcoin::secp256k1::{Parity, Secp256k1, VerifyOnly};
use bitcoin::{PublicKey, Script, ScriptBuf, TxIn, Txid};
use outrigger_sdk::service::ErrorKind;
use outrigger_sdk::service::wallet::{Ownership, ScriptInfo, SolvingData};
use outrigger_sdk::sign::{KeySource, LocalKeys, Sighash, WalletKeys};
use outrigger_sdk::standard::transaction_from_bytes;

use crate::error::PsbtError;
use crate::known::{Knowledge, Known};
use crate::sign::{Signing, is_complete, remove_unnecessary_transactions, sign_inputs, update_outputs};
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
    let differs = open.filter_map(|input| input.sighash_type).any(|asked| asked != sighash.to_i32());
    // Without a birth time a wallet has no key and no script, and bitcoind's looks at no input then.
    if signs && differs && context.wallet()?.birth_time > 0 {
        return Err(PsbtError::SighashMismatch);
    }
    let (known, scripts) = known(context, psbt)?;
    let (wallet_keys, no_keys);
    let keys: &dyn KeySource = if signs {
        wallet_keys = WalletKeys::new(&*context.host.signer, context.scope, scripts);
        &wallet_keys
    } else {
        no_keys = LocalKeys::default();
        &no_keys
    };
    let wanted = context.plugin.wanted;
    let signing = Signing { known: &known, tells_origins, keys, sighash, finalize, wanted };
    sign_inputs(psbt, &signing, false)?;
    update_outputs(psbt, &known, tells_origins);
    remove_unnecessary_transactions(psbt, sighash);
    Ok(is_complete(psbt))
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

/// What the wallet knows of a PSBT, and the scripts whose keys may sign.
fn known(context: &Context<'_>, psbt: &Psbt) -> Result<(Known, Vec<ScriptBuf>), PsbtError> {
    let curve = Secp256k1::verification_only();
    let of_input = |(input, known): (&TxIn, &Input)| match known.spent(input.previous_output) {
        Some(spent) => {
            let script = &spent.script_pubkey;
            std::iter::once(script.clone()).chain(scripts_of_keys(known, script, &curve)).collect()
        }
        None => Vec::new(),
    };
    let inputs: Vec<Vec<ScriptBuf>> = psbt.each_input().map(of_input).collect();
    let outputs: Vec<&ScriptBuf> = psbt.tx.output.iter().map(|output| &output.script_pubkey).collect();
    let scripts: BTreeSet<ScriptBuf> = inputs.iter().flatten().chain(outputs.iter().copied()).cloned().collect();
    let scripts: Vec<ScriptBuf> = scripts.into_iter().collect();
    let infos = context.host.wallet.scripts(context.scope, scripts.clone())?;
    let found = scripts.into_iter().zip(infos).filter_map(|(script, info)| Some((script, info?)));
    let found: BTreeMap<ScriptBuf, ScriptInfo> = found.collect();
    let knowledge = |scripts: &mut dyn Iterator<Item = &ScriptBuf>| {
        let mut known = Knowledge { signers: Some(HashSet::new()), ..Knowledge::default() };
        scripts.filter_map(|script| found.get_key_value(script)).for_each(|(script, info)| known.add(script, info));
        known
    };
    // With imported keys and scripts, the wallet knows of each input what it knows of all.
    let known = if found.values().any(is_imported) {
        Known::All(Box::new(Knowledge { signers: None, ..knowledge(&mut found.keys()) }))
    } else {
        Known::Each {
            inputs: inputs.iter().map(|scripts| knowledge(&mut scripts.iter())).collect(),
            outputs: outputs.into_iter().map(|script| knowledge(&mut std::iter::once(script))).collect(),
        }
    };
    Ok((known, found.into_keys().collect()))
}

/// Whether a wallet knows a script by itself, not by a descriptor. Of one that is only in its address book it knows nothing.
fn is_imported(info: &ScriptInfo) -> bool {
    let SolvingData { scripts, public_keys, .. } = &info.solving;
    let is_known = info.ownership != Ownership::None || !scripts.is_empty() || !public_keys.is_empty();
    info.parents.is_empty() && is_known
}

/// The scripts by which a wallet may know the keys that an input names, and the one that a taproot output pays to: its own, not that
/// of the input.
fn scripts_of_keys<'a>(
    input: &'a Input,
    spent: &'a Script,
    curve: &'a Secp256k1<VerifyOnly>,
) -> impl Iterator<Item = ScriptBuf> + 'a {
    let ecdsa = input.origins.keys().filter_map(|key| PublicKey::from_slice(key).ok());
    let output_key = spent.as_bytes().get(2..).filter(|_| spent.is_p2tr());
    let named = input.tap_origins.keys().map(|key| &key[..]).chain(output_key);
    let x_only = named.filter_map(|key| UntweakedPublicKey::from_slice(key).ok());
    let both = x_only.flat_map(|key| [Parity::Even, Parity::Odd].map(|parity| PublicKey::new(key.public_key(parity))));
    ecdsa.chain(both).flat_map(|key| {
        let program = key.wpubkey_hash().ok().map(|hash| ScriptBuf::new_p2wpkh(&hash));
        let nested = program.as_ref().map(|program| ScriptBuf::new_p2sh(&program.script_hash()));
        let taproot = key.compressed.then(|| ScriptBuf::new_p2tr(curve, key.inner.x_only_public_key().0, None));
        let plain = [ScriptBuf::new_p2pk(&key), ScriptBuf::new_p2pkh(&key.pubkey_hash())];
        plain.into_iter().chain(program).chain(nested).chain(taproot)
    })
}
