//! `finalizepsbt` and `analyzepsbt`.

use std::collections::HashMap;

use bitcoin::hashes::hash160;
use bitcoin::{OutPoint, SignedAmount, TxOut};
use outrigger_kit::psbt::Psbt;
use outrigger_kit::without_nulls;
use outrigger_sdk::params::encode_hex;
use outrigger_sdk::script::parse::is_unspendable;
use outrigger_sdk::script::{Flags, WITNESS_SCALE_FACTOR, transaction_sigop_cost};
use outrigger_sdk::sign::PartialTransaction;
use outrigger_sdk::standard::transaction_to_bytes;
use outrigger_sdk::{Call, RpcError, amount, methods};
use serde_json::{Value, json};

use crate::decode::total;
use crate::sign::{self, InputState, SighashSource, extract, finalize, is_complete, partial};
use crate::{PsbtPlugin, read_psbt};

/// The weight of one unit of signature operation cost: bitcoind's default `bytespersigop`.
const BYTES_PER_SIGOP: u64 = 20;

/// The role that acts next (BIP 174). The variants are in the order in which the roles act.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    Updater,
    Signer,
    Finalizer,
    Extractor,
}

impl Role {
    fn of(state: &InputState, has_utxo: bool) -> Self {
        let findings = &state.findings;
        let lacks_scripts = findings.missing_redeem_script.is_some() || findings.missing_witness_script.is_some();
        match state {
            _ if !has_utxo => Self::Updater,
            InputState { verified: true, .. } => Self::Extractor,
            InputState { complete: true, .. } => Self::Finalizer,
            _ if !findings.missing_public_keys.is_empty() || lacks_scripts => Self::Updater,
            _ if state.missing_signatures.is_empty() => Self::Updater,
            _ => Self::Signer,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Updater => "updater",
            Self::Signer => "signer",
            Self::Finalizer => "finalizer",
            Self::Extractor => "extractor",
        }
    }
}

#[methods(category = "Rawtransactions", needs_tip = false)]
impl PsbtPlugin {
    /// Finalises all inputs with complete signatures.
    ///
    /// * `psbt` - The PSBT in base64.
    /// * `extract` - Whether to return a complete transaction instead of the PSBT.
    ///
    /// # Result
    /// {"psbt": "str", "hex": "hex", "complete": true|false}    (json object) The result has hex for an extracted
    /// transaction, and psbt otherwise.
    #[method]
    fn finalizepsbt(call: &Call<'_>, psbt: &str, #[arg(default = true)] extract: bool) -> Result<Value, RpcError> {
        let mut psbt = read_psbt(call, psbt)?;
        finalize(call, &mut psbt, SighashSource::Fields)?;
        let complete = is_complete(&psbt);
        if complete && extract {
            Ok(json!({"hex": encode_hex(&transaction_to_bytes(&sign::extract(&psbt))), "complete": true}))
        } else {
            Ok(json!({"psbt": psbt.to_base64(), "complete": complete}))
        }
    }

    /// Lists the missing data of a PSBT, the next role, and the fee of the transaction.
    ///
    /// * `psbt` - The PSBT in base64.
    ///
    /// # Result
    /// {"inputs": [{"has_utxo": true|false, "is_final": true|false, "next": "str", "missing": {...}}, ...],
    /// "estimated_vsize": n, "estimated_feerate": n, "fee": n, "next": "str", "error": "str"}    (json object)
    #[method]
    fn analyzepsbt(call: &Call<'_>, psbt: &str) -> Result<Value, RpcError> {
        let mut psbt = read_psbt(call, psbt)?;
        if psbt.lock_time().is_none() {
            return Ok(json!({"next": "creator", "error": "PSBT cannot be made into a valid transaction"}));
        }
        let spent = psbt.spent();
        let outputs = total(psbt.tx.output.iter().map(|output| output.value));
        let invalid = |reason: String| Ok(json!({"next": "creator", "error": format!("PSBT is not valid. {reason}")}));
        let mut paid = Vec::new();
        for (index, output) in spent.iter().enumerate() {
            let Some(TxOut { value, script_pubkey }) = output else { continue };
            paid.push(*value);
            if total(paid.iter().copied()).is_none() {
                return invalid(format!("Input {index} has invalid value"));
            }
            if is_unspendable(script_pubkey.as_bytes()) {
                return invalid(format!("Input {index} spends unspendable output"));
            }
        }
        let knows_all = paid.len() == spent.len();
        if knows_all && outputs.is_none() {
            return invalid("Output amount invalid".into());
        }
        let states = finalize(call, &mut psbt, SighashSource::Argument(None))?;
        let roles = states.iter().zip(&spent).map(|(state, spent)| Role::of(state, spent.is_some()));
        let roles: Vec<Role> = roles.collect();
        let inputs = states.iter().zip(&roles).zip(&spent);
        let inputs: Vec<Value> =
            inputs.map(|((state, role), spent)| input_json(state, *role, spent.is_some())).collect();
        let (mut fee, mut size) = (None, None);
        if let (true, Some(paid), Some(received)) = (knows_all, total(paid.into_iter()), outputs) {
            fee = Some(paid - received);
            size = estimated_size(call, &psbt, &spent, &states)?;
        }
        let feerate = |(fee, size): (i64, u64)| {
            let (scaled, size) = (fee.saturating_mul(1000), i64::try_from(size).unwrap_or(i64::MAX));
            let rounds_down = call.rules.rounds_feerates_down;
            let feerate = if rounds_down { scaled.checked_div_euclid(size) } else { scaled.checked_div(size) };
            feerate.unwrap_or_default()
        };
        let money = |satoshi: i64| amount::to_json(SignedAmount::from_sat(satoshi));
        Ok(without_nulls(json!({
            "inputs": Some(inputs).filter(|inputs| !inputs.is_empty()),
            "estimated_vsize": size,
            "estimated_feerate": fee.zip(size).map(feerate).map(money),
            "fee": fee.map(money),
            "next": roles.into_iter().min().unwrap_or(Role::Extractor).name(),
        })))
    }
}

fn input_json(state: &InputState, role: Role, has_utxo: bool) -> Value {
    let findings = &state.findings;
    let hashes = |hashes: &[hash160::Hash]| -> Option<Vec<String>> {
        (!hashes.is_empty()).then(|| hashes.iter().map(|hash| encode_hex(hash.as_ref())).collect())
    };
    let missing = without_nulls(json!({
        "pubkeys": hashes(&findings.missing_public_keys),
        "redeemscript": findings.missing_redeem_script.map(|hash| encode_hex(&hash)),
        "witnessscript": findings.missing_witness_script.map(|hash| encode_hex(&hash)),
        "signatures": hashes(&state.missing_signatures),
    }));
    without_nulls(json!({
        "has_utxo": has_utxo,
        "is_final": has_utxo && state.verified,
        "next": role.name(),
        "missing": Some(missing).filter(|missing| !state.complete && *missing != json!({})),
    }))
}

/// The virtual size of the signed transaction; `None` if it cannot be estimated.
fn estimated_size(
    call: &Call<'_>,
    psbt: &Psbt,
    spent: &[Option<TxOut>],
    states: &[InputState],
) -> Result<Option<u64>, RpcError> {
    let mut psbt = psbt.clone();
    let mut open = Vec::new();
    for (index, ((input, spent), state)) in psbt.inputs.iter().zip(spent).zip(states).enumerate() {
        let Some(spent) = spent else { return Ok(None) };
        let distrusts = call.rules.estimate_distrusts_taproot && spent.script_pubkey.is_p2tr();
        if state.complete && distrusts && input.non_witness_utxo.is_none() {
            return Ok(None);
        }
        if !state.complete {
            if input.is_final() || state.disagrees {
                return Ok(None);
            }
            open.push(partial(index, input, &spent.script_pubkey, None));
        }
    }
    let unsigned = PartialTransaction { tx: &psbt.tx, spent, wanted: &|| call.is_wanted() };
    for outcome in unsigned.estimate(open)? {
        let Some(input) = psbt.inputs.get_mut(outcome.index) else { return Ok(None) };
        match outcome.complete {
            Some((script_sig, witness)) if outcome.met.witness || input.non_witness_utxo.is_some() => {
                (input.final_script_sig, input.final_witness) = (script_sig, witness);
            }
            _ => return Ok(None),
        }
    }
    let transaction = extract(&psbt);
    let inputs = transaction.input.iter().map(|input| input.previous_output);
    let outputs: HashMap<OutPoint, &TxOut> = inputs.zip(spent.iter().flatten()).collect();
    let sigops = transaction_sigop_cost(&transaction, |outpoint| outputs.get(outpoint).copied(), Flags::STANDARD);
    let Some(sigops) = sigops else { return Ok(None) };
    // rust-bitcoin also counts the segwit marker of a transaction without inputs. bitcoind does not.
    let has_witness = transaction.input.iter().any(|input| !input.witness.is_empty());
    let size = if has_witness { transaction.total_size() } else { transaction.base_size() };
    let weight = (transaction.base_size() * 3 + size) as u64;
    Ok(Some(weight.max(sigops.saturating_mul(BYTES_PER_SIGOP)).div_ceil(WITNESS_SCALE_FACTOR)))
}
