//! `createpsbt`, `converttopsbt`, `combinepsbt` and `joinpsbts`: PSBTs from transactions and from other PSBTs.

use std::collections::BTreeSet;

use bitcoin::absolute::LockTime;
use bitcoin::secp256k1::rand::seq::SliceRandom;
use bitcoin::secp256k1::rand::thread_rng;
use bitcoin::transaction::Version;
use bitcoin::{ScriptBuf, Transaction, TxIn, TxOut, Witness};
use outrigger_sdk::psbt::{Input, Output, Psbt};
use outrigger_sdk::standard::decode::{Form, transaction_of_form};
use outrigger_sdk::standard::{transaction_from_hex, transaction_from_params};
use outrigger_sdk::{RpcError, params, typed};
use serde_json::{Value, json};

use crate::{Context, psbt_version, read_psbt, undecodable};

pub fn create_psbt(context: &Context<'_>) -> Result<Value, RpcError> {
    let transaction = transaction_from_params(&context.params, context.network()?)?;
    let version = psbt_version::<u32>(context, context.params.given(5))?;
    Ok(json!(Psbt::of_version(transaction, version).to_base64()))
}

pub fn convert_to_psbt(context: &Context<'_>) -> Result<Value, RpcError> {
    let text = typed::text(context.params.get(0))?;
    let may_be_signed = context.params.flag_or(1, false)?;
    let transaction = match context.params.given(2).map(params::flag).transpose()? {
        None => transaction_from_hex(text),
        Some(true) => transaction_of_form(text, Form::Extended),
        Some(false) => transaction_of_form(text, Form::Legacy),
    };
    let mut transaction = transaction.ok_or_else(|| undecodable("TX decode failed"))?;
    for input in &mut transaction.input {
        let is_signed = !input.script_sig.is_empty() || !input.witness.is_empty();
        if is_signed && !may_be_signed {
            return Err(undecodable("Inputs must not have scriptSigs and scriptWitnesses"));
        }
        (input.script_sig, input.witness) = (ScriptBuf::new(), Witness::new());
    }
    let version = psbt_version::<u32>(context, context.params.given(3))?;
    Ok(json!(Psbt::of_version(transaction, version).to_base64()))
}

pub fn combine_psbt(context: &Context<'_>) -> Result<Value, RpcError> {
    let psbts = typed::array(context.params.get(0))?.iter().map(|value| read_psbt(context, value));
    let psbts = psbts.collect::<Result<Vec<_>, _>>()?;
    let mut psbts = psbts.into_iter();
    let empty = || RpcError::invalid_parameter("Parameter 'txs' cannot be empty");
    let mut combined = psbts.next().ok_or_else(empty)?;
    if !psbts.all(|psbt| combined.combine(&psbt, &context.rules)) {
        return Err(RpcError::invalid_parameter("PSBTs not compatible (different transactions)"));
    }
    Ok(json!(combined.to_base64()))
}

pub fn join_psbts(context: &Context<'_>) -> Result<Value, RpcError> {
    let values = typed::array(context.params.get(0))?;
    if values.len() < 2 {
        return Err(RpcError::invalid_parameter("At least two PSBTs are required to join PSBTs."));
    }
    let read = |value| {
        let psbt = read_psbt(context, value)?;
        match psbt.v2 {
            Some(_) => Err(RpcError::invalid_parameter("joinpsbts only operates on version 0 PSBTs")),
            None => Ok(psbt),
        }
    };
    let psbts = values.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    // bitcoind compares the versions as unsigned numbers.
    let version = psbts.iter().map(|psbt| psbt.tx.version.0.cast_unsigned()).fold(1, u32::max);
    let lock_time = psbts.iter().map(|psbt| psbt.tx.lock_time.to_consensus_u32()).min().unwrap_or_default();
    let mut joined = Psbt::new(Transaction {
        version: Version(version.cast_signed()),
        lock_time: LockTime::from_consensus(lock_time),
        input: Vec::new(),
        output: Vec::new(),
    });
    let mut inputs: Vec<(TxIn, Input)> = Vec::new();
    let mut outputs: Vec<(TxOut, Output)> = Vec::new();
    let mut spent = BTreeSet::new();
    for psbt in psbts {
        joined.take_unknown(&psbt);
        for (input, mut known) in psbt.tx.input.into_iter().zip(psbt.inputs) {
            if !spent.insert((input.previous_output, input.sequence)) {
                let message = format!("Input {} exists in multiple PSBTs", input.previous_output);
                return Err(RpcError::invalid_parameter(message));
            }
            // The signatures do not cover the joined transaction.
            known.partial_sigs.clear();
            (known.final_script_sig, known.final_witness) = (ScriptBuf::new(), Witness::new());
            inputs.push((input, known));
        }
        outputs.extend(psbt.tx.output.into_iter().zip(psbt.outputs));
    }
    // A random order hides the original PSBTs.
    inputs.shuffle(&mut thread_rng());
    outputs.shuffle(&mut thread_rng());
    (joined.tx.input, joined.inputs) = inputs.into_iter().unzip();
    (joined.tx.output, joined.outputs) = outputs.into_iter().unzip();
    Ok(json!(joined.to_base64()))
}
