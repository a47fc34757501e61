//! `createpsbt`, `converttopsbt`, `combinepsbt` and `joinpsbts`: PSBTs from transactions and from other PSBTs.

use std::collections::BTreeSet;

use bitcoin::absolute::LockTime;
use bitcoin::secp256k1::rand::seq::SliceRandom;
use bitcoin::secp256k1::rand::thread_rng;
use bitcoin::transaction::Version;
use bitcoin::{ScriptBuf, Transaction, TxIn, TxOut, Witness};
use outrigger_kit::psbt::{Input, Output, Psbt};
use outrigger_sdk::params::decode_hex;
use outrigger_sdk::standard::decode::transaction_as;
use outrigger_sdk::standard::transaction_from_params;
use outrigger_sdk::{Call, RpcError, methods, typed};
use serde_json::Value;

use crate::{PsbtPlugin, read_psbt};

#[methods(category = "Rawtransactions", needs_tip = false)]
impl PsbtPlugin {
    /// Makes a PSBT of inputs and outputs. The call looks up, stores and sends nothing.
    ///
    /// * `inputs` - The inputs: objects with txid, vout and optionally sequence.
    /// * `outputs` - The outputs: an object, or an array of objects with one key each. A key is an address with an
    ///   amount in BTC, or "data" with hexadecimal for an OP_RETURN output.
    /// * `locktime` (default: 0) - The locktime. A locktime other than 0 also sets the sequences so that it applies.
    /// * `replaceable` (default: true) - Whether the transaction signals replaceability (BIP 125).
    /// * `version` (default: 2) - The version of the transaction, from 1 to 3. Bitcoin Core has this argument since
    ///   release 30.
    /// * `psbt_version` (default: 2) - The version of the PSBT, 2 (BIP 370) or 0. Bitcoin Core has this argument
    ///   since release 32; before, PSBTs are of version 0.
    ///
    /// # Result
    /// "str"    (string) The PSBT in base64.
    #[method(inline)]
    fn createpsbt(
        call: &Call<'_>,
        #[arg(kind = "array")] inputs: &Value,
        #[arg(kind = "outputs")] outputs: &Value,
        #[arg(kind = "numeric")] locktime: Option<&Value>,
        replaceable: Option<bool>,
        #[arg(kind = "numeric")] version: Option<&Value>,
        #[arg(kind = "numeric")] psbt_version: Option<&Value>,
    ) -> Result<String, RpcError> {
        let network = call.network()?;
        let transaction = transaction_from_params(Some(inputs), outputs, locktime, replaceable, version, network)?;
        let version_two = crate::is_version_two::<u32>(call, psbt_version)?;
        Ok(Psbt::of_version(transaction, version_two).to_base64())
    }

    /// Makes a PSBT of an unsigned transaction. For new transactions use createpsbt and walletcreatefundedpsbt.
    ///
    /// * `hexstring` - The transaction.
    /// * `permitsigdata` - Whether to drop scriptSigs and witnesses. Otherwise the call refuses a
    ///   transaction that has any.
    /// * `iswitness` (default: depends on which form makes sense) - Whether the serialisation has the witness form
    ///   (true) or the legacy form (false).
    /// * `psbt_version` (default: 2) - The version of the PSBT, 2 (BIP 370) or 0. Bitcoin Core has this argument
    ///   since release 32; before, PSBTs are of version 0.
    ///
    /// # Result
    /// "str"    (string) The PSBT in base64.
    #[method]
    fn converttopsbt(
        call: &Call<'_>,
        #[arg(kind = "hex")] hexstring: &str,
        #[arg(default = false)] permitsigdata: bool,
        iswitness: Option<bool>,
        #[arg(kind = "numeric")] psbt_version: Option<&Value>,
    ) -> Result<String, RpcError> {
        let transaction = decode_hex(hexstring).and_then(|bytes| transaction_as(&bytes, iswitness));
        let mut transaction = transaction.ok_or_else(|| RpcError::undecodable("TX decode failed"))?;
        for input in &mut transaction.input {
            let is_signed = !input.script_sig.is_empty() || !input.witness.is_empty();
            if is_signed && !permitsigdata {
                return Err(RpcError::undecodable("Inputs must not have scriptSigs and scriptWitnesses"));
            }
            (input.script_sig, input.witness) = (ScriptBuf::new(), Witness::new());
        }
        let version_two = crate::is_version_two::<u32>(call, psbt_version)?;
        Ok(Psbt::of_version(transaction, version_two).to_base64())
    }

    /// Combines several PSBTs of the same transaction. If values differ, the first PSBT with the value has priority.
    ///
    /// * `txs` - The PSBTs in base64.
    ///
    /// # Result
    /// "str"    (string) The combined PSBT in base64.
    ///
    /// # Example
    /// '["cHNidP8B...", "cHNidP8B..."]'
    #[method]
    fn combinepsbt(call: &Call<'_>, txs: &[Value]) -> Result<String, RpcError> {
        let psbts = txs.iter().map(|value| read_psbt(call, typed::text(value)?));
        let mut psbts = psbts.collect::<Result<Vec<_>, _>>()?.into_iter();
        let empty = || RpcError::invalid_parameter("Parameter 'txs' cannot be empty");
        let mut combined = psbts.next().ok_or_else(empty)?;
        if !psbts.all(|psbt| combined.combine(&psbt, &call.rules)) {
            return Err(RpcError::invalid_parameter("PSBTs not compatible (different transactions)"));
        }
        Ok(combined.to_base64())
    }

    /// Joins PSBTs of different transactions into one PSBT with all inputs and outputs, in random order. No two PSBTs
    /// may have the same input. The call drops signatures.
    ///
    /// * `txs` - The PSBTs in base64.
    ///
    /// # Result
    /// "str"    (string) The joined PSBT in base64.
    ///
    /// # Example
    /// '["cHNidP8B...", "cHNidP8B..."]'
    #[method]
    fn joinpsbts(call: &Call<'_>, txs: &[Value]) -> Result<String, RpcError> {
        if txs.len() < 2 {
            return Err(RpcError::invalid_parameter("At least two PSBTs are required to join PSBTs."));
        }
        let read = |value| {
            let psbt = read_psbt(call, typed::text(value)?)?;
            match psbt.v2 {
                Some(_) => Err(RpcError::invalid_parameter("joinpsbts only operates on version 0 PSBTs")),
                None => Ok(psbt),
            }
        };
        let psbts = txs.iter().map(read).collect::<Result<Vec<_>, _>>()?;
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
        Ok(joined.to_base64())
    }
}
