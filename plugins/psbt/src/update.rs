//! `utxoupdatepsbt` and `descriptorprocesspsbt`: a PSBT with the data of descriptors, of the chain and of the mempool.

use std::collections::{BTreeSet, HashMap};

use bitcoin::hashes::{Hash, hash160};
use bitcoin::{Script, Txid};
use outrigger_kit::descriptor::{Checksum, Descriptor, limits, without_private_keys};
use outrigger_kit::psbt::{Input, PreviousTransaction, Psbt};
use outrigger_kit::{descriptor_syntax, scan_object, without_nulls};
use outrigger_sdk::params::encode_hex;
use outrigger_sdk::service::ErrorKind;
use outrigger_sdk::sign::{LocalKeys, Sighash, SignError, SolvingSet, WifKey};
use outrigger_sdk::standard::{ScriptKind, classify, transaction_from_bytes, transaction_to_bytes};
use outrigger_sdk::wire::Blob;
use outrigger_sdk::{Call, RpcError, methods};
use serde_json::{Value, json};

use crate::provider::{Providers, SigningProvider};
use crate::sign::{
    SighashSource, SignOptions, Signing, extract, is_complete, remove_unnecessary_transactions, sign_inputs,
    update_outputs,
};
use crate::{PsbtPlugin, check_lock_time, read_psbt};

/// The last index of a ranged descriptor without `range`.
const DEFAULT_LAST_INDEX: u32 = 1000;
/// The maximum number of keys to expand from the descriptors of a call.
const MAX_EXPANDED_KEYS: usize = 2 * limits::MAX_UNFOLDED_KEYS * (DEFAULT_LAST_INDEX as usize);

/// The solving data and the private keys of descriptors.
#[derive(Default)]
struct DescriptorData {
    provider: SigningProvider,
    keys: LocalKeys,
    /// The number of expanded keys.
    expanded: usize,
}

impl DescriptorData {
    /// Expands the descriptors of an argument, with their private keys if `private`.
    fn read(call: &Call<'_>, descriptors: &[Value], private: bool) -> Result<Self, RpcError> {
        let mut data = Self::default();
        descriptors.iter().try_for_each(|value| data.add(call, value, private))?;
        Ok(data)
    }

    fn add(&mut self, call: &Call<'_>, value: &Value, private: bool) -> Result<(), RpcError> {
        let (text, range) = scan_object(value)?;
        let syntax = descriptor_syntax(&call.rules);
        let descriptors = Descriptor::parse_as(text, call.network()?, Checksum::Optional, syntax);
        for descriptor in descriptors.map_err(|error| RpcError::not_found(error.to_string()))? {
            let (first, last) = if descriptor.is_ranged() { range.unwrap_or((0, DEFAULT_LAST_INDEX)) } else { (0, 0) };
            let indexes = usize::try_from(last - first).unwrap_or(usize::MAX).saturating_add(1);
            self.expanded = self.expanded.saturating_add(descriptor.key_count().saturating_mul(indexes));
            if self.expanded > MAX_EXPANDED_KEYS {
                return Err(RpcError::invalid_parameter("Range is too large"));
            }
            let branches = private.then(|| descriptor.private_branches());
            for index in first..=last {
                if !call.is_wanted() {
                    return Err(SignError::Unwanted.into());
                }
                // The text may contain private keys, which no error may show.
                let underivable = |_| {
                    let text = without_private_keys(text);
                    RpcError::not_found(format!("Cannot derive script without private keys: '{text}'"))
                };
                for script in descriptor.expand(index).map_err(underivable)?.scripts {
                    self.provider.solving.add(&script.script_pubkey, script.solving);
                    for origin in &script.origins {
                        self.provider.origins.add(origin);
                        if call.rules.descriptor_key_hashes {
                            self.provider.solving.add_public_key(&origin.public_key);
                        }
                    }
                }
                for (public_key, mut secret) in branches.iter().flat_map(|branches| branches.private_keys(index)) {
                    self.keys.add(WifKey::from_secret(&secret, public_key));
                    secret.non_secure_erase();
                }
            }
        }
        Ok(())
    }
}

#[methods(category = "Rawtransactions")]
impl PsbtPlugin {
    /// Adds data about the spent outputs from descriptors, the chain and the mempool.
    ///
    /// * `psbt` - The PSBT in base64.
    /// * `descriptors` (default: none) - Output descriptors: texts, or objects with desc and range. A range is an end
    ///   or [begin,end]; the default is 1000.
    ///
    /// # Result
    /// "str"    (string) The PSBT in base64.
    ///
    /// # Example
    /// "cHNidP8B..." '["wpkh(...)"]'
    #[method]
    fn utxoupdatepsbt(call: &Call<'_>, psbt: &str, descriptors: Option<&[Value]>) -> Result<String, RpcError> {
        let data = DescriptorData::read(call, descriptors.unwrap_or_default(), false)?;
        let mut psbt = read_psbt(call, psbt)?;
        let options = SignOptions { sighash: None, bip32_derivs: true, finalize: false };
        process(call, &mut psbt, data, options)?;
        Ok(psbt.to_base64())
    }

    /// Adds data about the spent outputs from descriptors, the chain and the mempool, and signs with the private keys
    /// of the descriptors.
    ///
    /// * `psbt` - The PSBT in base64.
    /// * `descriptors` - Output descriptors: texts, or objects with desc and range. A range is an end or [begin,end];
    ///   the default is 1000.
    /// * `sighashtype` (default: DEFAULT for taproot inputs, ALL for others) - The hash type of signatures: DEFAULT,
    ///   ALL, NONE, SINGLE, ALL|ANYONECANPAY, NONE|ANYONECANPAY or SINGLE|ANYONECANPAY.
    /// * `bip32derivs` - Whether to add the origins of public keys, as far as they are known.
    /// * `finalize` - Whether to finalise complete inputs.
    ///
    /// # Result
    /// {"psbt": "str", "complete": true|false, "hex": "hex"}    (json object) hex is the transaction if it is
    /// complete.
    ///
    /// # Example
    /// "cHNidP8B..." '["wpkh(...)"]'
    #[method(private_keys)]
    fn descriptorprocesspsbt(
        call: &Call<'_>,
        psbt: &str,
        descriptors: &[Value],
        sighashtype: Option<&str>,
        #[arg(default = true)] bip32derivs: bool,
        #[arg(default = true)] finalize: bool,
    ) -> Result<Value, RpcError> {
        let data = DescriptorData::read(call, descriptors, true)?;
        let sighash = sighashtype.map(Sighash::from_name).transpose()?;
        let options = SignOptions { sighash, bip32_derivs: bip32derivs, finalize };
        let mut psbt = read_psbt(call, psbt)?;
        process(call, &mut psbt, data, options)?;
        Ok(processed(&psbt))
    }
}

/// The result of `walletprocesspsbt` and `descriptorprocesspsbt`.
pub fn processed(psbt: &Psbt) -> Value {
    let complete = is_complete(psbt);
    let hex = complete.then(|| encode_hex(&transaction_to_bytes(&extract(psbt))));
    without_nulls(json!({"psbt": psbt.to_base64(), "complete": complete, "hex": hex}))
}

fn process(call: &Call<'_>, psbt: &mut Psbt, data: DescriptorData, options: SignOptions) -> Result<(), RpcError> {
    check_lock_time(psbt)?;
    add_spent(call, psbt, &data.provider.solving)?;
    let providers = Providers::Shared(Box::new(data.provider));
    let sighashes = Some(SighashSource::Argument(options.sighash));
    let signing = Signing { call, providers: &providers, keys: &data.keys, options, sighashes };
    sign_inputs(psbt, &signing, false)?;
    update_outputs(psbt, &signing);
    // Below release 30, bitcoind ignores the requested sighash type here.
    remove_unnecessary_transactions(psbt, None, &call.rules);
    Ok(())
}

/// Adds their previous transactions to the inputs that lack one. `find` gives transactions by their ids, in that order.
pub fn add_previous(
    psbt: &mut Psbt,
    lacks: impl Fn(&Input) -> bool,
    find: impl FnOnce(&[Txid]) -> Result<Vec<Option<Blob>>, RpcError>,
) -> Result<(), RpcError> {
    let spends = psbt.each_input().filter(|(_, fields)| lacks(fields)).map(|(input, _)| input.previous_output.txid);
    let txids: Vec<Txid> = spends.collect::<BTreeSet<_>>().into_iter().collect();
    let decode =
        |(txid, raw): (&Txid, Option<Blob>)| Some((*txid, PreviousTransaction::new(transaction_from_bytes(&raw?)?)));
    let found: HashMap<_, _> = txids.iter().zip(find(&txids)?).filter_map(decode).collect();
    for (input, fields) in psbt.tx.input.iter().zip(&mut psbt.inputs).filter(|(_, fields)| lacks(fields)) {
        let outpoint = input.previous_output;
        let transaction = found.get(&outpoint.txid);
        fields.non_witness_utxo =
            transaction.filter(|transaction| transaction.output.len() as u64 > u64::from(outpoint.vout)).cloned();
    }
    Ok(())
}

/// Transactions from the mempool, or from the chain if the node has an index.
fn transactions(call: &Call<'_>, txids: &[Txid]) -> Result<Vec<Option<Blob>>, RpcError> {
    let mut found: Vec<Option<Blob>> = match call.host.mempool.transactions(call.scope, txids.to_vec()) {
        Err(error) if error.kind == ErrorKind::NotGranted => vec![None; txids.len()],
        answer => answer?,
    };
    for (txid, raw) in txids.iter().zip(&mut found).filter(|(_, raw)| raw.is_none()) {
        match call.host.chain.transaction(call.scope, *txid) {
            Err(error) if error.kind == ErrorKind::Unsupported => break,
            answer => *raw = answer?.map(|transaction| transaction.raw),
        }
    }
    Ok(found)
}

/// Adds the previous transactions from the mempool or the chain. If a transaction is missing there, adds its unspent output if it
/// is a segwit output.
fn add_spent(call: &Call<'_>, psbt: &mut Psbt, solving: &SolvingSet) -> Result<(), RpcError> {
    let lacks = |fields: &Input| fields.non_witness_utxo.is_none();
    add_previous(psbt, lacks, |txids| transactions(call, txids))?;
    let missing = psbt.each_input().enumerate().filter(|(_, (_, fields))| lacks(fields));
    let missing: Vec<_> = missing.map(|(index, (input, _))| (index, input.previous_output)).collect();
    let outpoints = missing.iter().map(|(_, outpoint)| *outpoint).collect();
    for ((index, _), coin) in missing.iter().zip(call.host.chain.coins(call.scope, outpoints)?) {
        if let (Some(input), Some(coin)) = (psbt.inputs.get_mut(*index), coin)
            && is_segwit(&coin.output.script_pubkey, solving)
        {
            input.witness_utxo = Some(coin.output);
        }
    }
    Ok(())
}

/// Whether a witness spends the output. False for P2SH with an unknown redeem script.
fn is_segwit(script: &Script, solving: &SolvingSet) -> bool {
    match classify(script) {
        ScriptKind::ScriptHash { hash } => {
            solving.script(hash160::Hash::from_byte_array(*hash)).is_some_and(Script::is_witness_program)
        }
        _ => script.is_witness_program(),
    }
}
