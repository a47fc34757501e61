//! `utxoupdatepsbt` and `descriptorprocesspsbt`: what descriptors, the chain and the mempool tell of a PSBT.

use std::collections::HashMap;

use bitcoin::hashes::{Hash, hash160};
use bitcoin::{Script, Txid};
use outrigger_sdk::descriptor::{Checksum, Descriptor, limits, without_private_keys};
use outrigger_sdk::params::{self, encode_hex};
use outrigger_sdk::service::ErrorKind;
use outrigger_sdk::sign::{LocalKeys, Sighash, SignError, SolvingSet, WifKey};
use outrigger_sdk::standard::{ScriptKind, classify, transaction_from_bytes, transaction_to_bytes};
use outrigger_sdk::typed;
use serde_json::{Map, Value, json};

use crate::error::PsbtError;
use crate::known::{Knowledge, Known};
use crate::sign::{Signing, extract, is_complete, remove_unnecessary_transactions, sign_inputs, update_outputs};
use crate::{Context, Outcome, psbt_argument};
use outrigger_sdk::psbt::{PreviousTransaction, Psbt};

/// The last index that is looked at of a descriptor with a range, where none is given.
const DEFAULT_LAST_INDEX: u32 = 1000;
/// The most keys that the descriptors of a call may expand to.
const MAX_EXPANDED_KEYS: usize = 2 * limits::MAX_UNFOLDED_KEYS * (DEFAULT_LAST_INDEX as usize);

/// What descriptors tell.
#[derive(Default)]
struct Told {
    known: Knowledge,
    keys: LocalKeys,
    /// The keys that were expanded so far.
    expanded: usize,
}

impl Told {
    /// What the descriptors of an argument tell, with their private keys where `private`.
    fn read(context: &Context<'_>, descriptors: &[Value], private: bool) -> Result<Self, PsbtError> {
        let mut told = Self::default();
        descriptors.iter().try_for_each(|value| told.add(context, value, private))?;
        Ok(told)
    }

    fn add(&mut self, context: &Context<'_>, value: &Value, private: bool) -> Result<(), PsbtError> {
        let (text, range) = match value {
            Value::String(text) => (text.as_str(), None),
            Value::Object(object) => {
                let text = object.get("desc").filter(|text| !text.is_null()).ok_or(PsbtError::NoDescriptor)?;
                let range = object.get("range").filter(|range| !range.is_null());
                (typed::text(text)?, range.map(params::descriptor_range).transpose()?)
            }
            _ => return Err(PsbtError::ScanObject),
        };
        let network = context.network()?;
        let descriptors = Descriptor::parse(text, network, Checksum::Optional);
        for descriptor in descriptors.map_err(|error| PsbtError::Descriptor(error.to_string()))? {
            let (first, last) = if descriptor.is_ranged() { range.unwrap_or((0, DEFAULT_LAST_INDEX)) } else { (0, 0) };
            let indexes = usize::try_from(last - first).unwrap_or(usize::MAX).saturating_add(1);
            self.expanded = self.expanded.saturating_add(descriptor.key_count().saturating_mul(indexes));
            if self.expanded > MAX_EXPANDED_KEYS {
                return Err(PsbtError::TooManyKeys);
            }
            let branches = private.then(|| descriptor.private_branches());
            for index in first..=last {
                if !(context.plugin.wanted)() {
                    return Err(SignError::Unwanted.into());
                }
                // The text may hold private keys, which no error shows.
                let underivable = |_| PsbtError::Underivable(without_private_keys(text));
                for script in descriptor.expand(index).map_err(underivable)?.scripts {
                    self.known.solving.add(&script.script_pubkey, script.solving);
                    script.origins.iter().for_each(|origin| self.known.origins.add(origin));
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

pub fn utxo_update_psbt(context: &Context<'_>) -> Outcome {
    let descriptors = context.params.given(1).map_or(Ok(&[][..]), typed::array)?;
    let told = Told::read(context, descriptors, false)?;
    let mut psbt = psbt_argument(&context.params)?;
    let how = Processing { tells_origins: true, sighash: Sighash::ALL, finalize: false };
    process(context, &mut psbt, told, how)?;
    Ok(json!(psbt.to_base64()))
}

pub fn descriptor_process_psbt(context: &Context<'_>) -> Outcome {
    let told = Told::read(context, typed::array(context.params.get(1))?, true)?;
    let sighash = sighash(context.params.given(2))?;
    let tells_origins = context.params.flag_or(3, true)?;
    let finalize = context.params.flag_or(4, true)?;
    let mut psbt = psbt_argument(&context.params)?;
    process(context, &mut psbt, told, Processing { tells_origins, sighash, finalize })?;
    let complete = is_complete(&psbt);
    processed(psbt, complete)
}

/// What signing a PSBT is answered with.
pub fn processed(psbt: Psbt, complete: bool) -> Outcome {
    let mut object = Map::new();
    object.insert("psbt".into(), json!(psbt.to_base64()));
    object.insert("complete".into(), json!(complete));
    if complete {
        // All inputs are final.
        object.insert("hex".into(), json!(encode_hex(&transaction_to_bytes(&extract(&psbt)))));
    }
    Ok(Value::Object(object))
}

/// The hash type of an argument.
pub fn sighash(value: Option<&Value>) -> Result<Sighash, PsbtError> {
    value.map_or(Ok(Sighash::DEFAULT), |name| Ok(Sighash::from_name(typed::text(name)?)?))
}

/// How descriptors are applied.
#[derive(Clone, Copy)]
struct Processing {
    tells_origins: bool,
    sighash: Sighash,
    finalize: bool,
}

fn process(context: &Context<'_>, psbt: &mut Psbt, told: Told, how: Processing) -> Result<(), PsbtError> {
    let Processing { tells_origins, sighash, finalize } = how;
    add_spent(context, psbt, &told.known.solving)?;
    let (known, keys, wanted) = (Known::All(Box::new(told.known)), &told.keys, context.plugin.wanted);
    sign_inputs(psbt, &Signing { known: &known, tells_origins, keys, sighash, finalize, wanted }, false)?;
    update_outputs(psbt, &known, tells_origins);
    // bitcoind decides here as for signatures that cover all.
    remove_unnecessary_transactions(psbt, Sighash::ALL);
    Ok(())
}

/// Adds the transactions that the inputs spend, as far as the node has them, and of others the unspent outputs that are spent
/// by witnesses.
fn add_spent(context: &Context<'_>, psbt: &mut Psbt, known: &SolvingSet) -> Result<(), PsbtError> {
    let lacks = psbt.each_input().filter(|(_, known)| known.non_witness_utxo.is_none());
    let mut txids: Vec<Txid> = lacks.map(|(input, _)| input.previous_output.txid).collect();
    txids.sort_unstable();
    txids.dedup();
    let mut found: HashMap<Txid, PreviousTransaction> = HashMap::new();
    let in_mempool = match context.host.mempool.transactions(context.scope, txids.clone()) {
        Err(error) if error.kind == ErrorKind::NotGranted => Vec::new(),
        answer => answer?,
    };
    let mut has_index = true;
    for (place, txid) in txids.iter().enumerate() {
        let raw = match in_mempool.get(place) {
            Some(Some(transaction)) => Some(transaction.raw.clone()),
            _ if has_index => match context.host.chain.transaction(context.scope, *txid) {
                Err(error) if error.kind == ErrorKind::Unsupported => {
                    has_index = false;
                    None
                }
                answer => answer?.map(|transaction| transaction.raw),
            },
            _ => None,
        };
        if let Some(transaction) = raw.and_then(|raw| transaction_from_bytes(&raw)) {
            found.insert(*txid, PreviousTransaction::new(transaction));
        }
    }
    let mut lacking = Vec::new();
    for (index, (input, known)) in psbt.tx.input.iter().zip(&mut psbt.inputs).enumerate() {
        if known.non_witness_utxo.is_some() {
            continue;
        }
        let outpoint = input.previous_output;
        let transaction = found.get(&outpoint.txid);
        match transaction.filter(|transaction| transaction.output.len() as u64 > u64::from(outpoint.vout)) {
            Some(transaction) => known.non_witness_utxo = Some(transaction.clone()),
            None => lacking.push((index, outpoint)),
        }
    }
    let outpoints = lacking.iter().map(|(_, outpoint)| *outpoint).collect();
    for ((index, _), coin) in lacking.iter().zip(context.host.chain.coins(context.scope, outpoints)?) {
        if let (Some(input), Some(coin)) = (psbt.inputs.get_mut(*index), coin)
            && is_segwit(&coin.output.script_pubkey, known)
        {
            input.witness_utxo = Some(coin.output);
        }
    }
    Ok(())
}

/// Whether an output is spent by a witness, as far as is known.
fn is_segwit(script: &Script, known: &SolvingSet) -> bool {
    let redeems =
        |hash: &[u8; 20]| known.script(hash160::Hash::from_byte_array(*hash)).is_some_and(Script::is_witness_program);
    match classify(script) {
        ScriptKind::ScriptHash { hash } => redeems(hash),
        _ => script.is_witness_program(),
    }
}
