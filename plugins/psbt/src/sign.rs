//! Updating, signing and finalising the inputs of a PSBT, as bitcoind's `SignPSBTInput` does.

use std::collections::{BTreeMap, BTreeSet};

use bitcoin::hashes::{Hash, hash160};
use bitcoin::key::UntweakedPublicKey;
use bitcoin::secp256k1::constants::SCHNORR_SIGNATURE_SIZE;
use bitcoin::secp256k1::{Secp256k1, VerifyOnly};
use bitcoin::taproot::{
    LeafVersion, TAPROOT_CONTROL_BASE_SIZE, TAPROOT_CONTROL_NODE_SIZE, TAPROOT_LEAF_MASK, TaprootBuilder,
};
use bitcoin::{Script, ScriptBuf, Transaction, TxOut, Witness};
use outrigger_kit::parallel;
use outrigger_kit::psbt::{ControlBlock, Input, Origin, Output, Psbt, TaprootOrigin};
use outrigger_sdk::script::{Flags, SIGHASH_ANYONECANPAY, TransactionChecker, TxContext, verify_script};
use outrigger_sdk::service::wallet::{SolvingData, TapLeaf, TaprootData};
use outrigger_sdk::sign::{
    AskedKey, HashKind, KeySource, LocalKeys, PartialInput, PartialOutcome, PartialSignatures, PartialTransaction,
    Sighash, SolverFindings, SolvingSet, inspect_scripts,
};
use outrigger_sdk::standard::release::Rules;
use outrigger_sdk::wire::Blob;
use outrigger_sdk::{Call, RpcError};

use crate::provider::{Origins, Providers, SigningProvider};

/// The minimum number of inputs for another thread. The verification of an input takes about 50 us.
const INPUTS_PER_BATCH: usize = 8;
/// The hash functions of the preimages, in the order of [`outrigger_kit::psbt::PREIMAGES`].
const KINDS: [HashKind; 4] = [HashKind::Ripemd160, HashKind::Sha256, HashKind::Hash160, HashKind::Hash256];

/// The options of `walletprocesspsbt`.
#[derive(Clone, Copy)]
pub struct SignOptions {
    /// The sighash type for signatures; `None` means the default of each input.
    pub sighash: Option<Sighash>,
    /// Whether to add the origins of public keys.
    pub bip32_derivs: bool,
    /// Whether to finalise complete inputs.
    pub finalize: bool,
}

/// The source of an input's sighash type.
#[derive(Clone, Copy)]
pub enum SighashSource {
    /// From an argument; `None` means the default of each input.
    Argument(Option<Sighash>),
    /// From the field of the input, else the default.
    Fields,
}

pub struct Signing<'a> {
    pub call: &'a Call<'a>,
    pub providers: &'a Providers,
    pub keys: &'a dyn KeySource,
    pub options: SignOptions,
    /// The source of the sighash type that signatures must have. `None` accepts any type, as some releases always do.
    pub sighashes: Option<SighashSource>,
}

/// The state of an input after signing.
#[derive(Default)]
pub struct InputState {
    pub complete: bool,
    /// Whether the input was final and valid before signing.
    pub verified: bool,
    /// Whether the sighash types of the field and the signatures disagree.
    pub disagrees: bool,
    pub findings: SolverFindings,
    /// The HASH160 of each key whose signature is missing.
    pub missing_signatures: Vec<hash160::Hash>,
}

/// For each input, whether its final scriptSig and witness spend the output.
fn verified(psbt: &Psbt, spent: &[Option<TxOut>]) -> Vec<bool> {
    let context = TxContext::new(&psbt.tx, spent);
    let verify = |(index, input): (usize, &Input)| {
        let Some(Some(spent)) = spent.get(index) else { return false };
        let mut checker = TransactionChecker::new(&context, index);
        let (script_sig, witness) = (&input.final_script_sig, &input.final_witness);
        verify_script(script_sig, &spent.script_pubkey, witness, Flags::STANDARD, &mut checker).is_ok()
    };
    parallel::map(psbt.inputs.iter().enumerate().collect(), INPUTS_PER_BATCH, verify)
}

/// Whether all inputs are valid by the rules of standard transactions. An input without its previous output is invalid.
pub fn is_complete(psbt: &Psbt) -> bool {
    psbt.lock_time().is_some() && verified(psbt, &psbt.spent()).into_iter().all(|verified| verified)
}

pub fn sighash_mismatch() -> RpcError {
    RpcError::undecodable("Specified sighash value does not match value stored in PSBT")
}

/// Compares the sighash type of `source` with the input's field and signatures, and returns whether they agree. If so, stores a type
/// other than the default in the field.
fn agree_on_sighash(input: &mut Input, spent: &Script, source: SighashSource) -> bool {
    let default = if spent.is_p2tr() { Sighash::DEFAULT } else { Sighash::ALL }.to_i32();
    let sighash = match source {
        SighashSource::Argument(asked) => asked.map_or(default, Sighash::to_i32),
        SighashSource::Fields => input.sighash_type.unwrap_or(default),
    };
    let bare = sighash == Sighash::DEFAULT.to_i32();
    let ends_with_it = |signature: &[u8]| signature.last().is_some_and(|byte| i32::from(*byte) == sighash);
    let schnorr = |signature: &Vec<u8>| match signature.len() {
        // The default hash type has no byte.
        SCHNORR_SIGNATURE_SIZE => bare,
        _ => !bare && ends_with_it(signature),
    };
    let agrees = input.sighash_type.is_none_or(|stored| stored == sighash)
        && (input.tap_key_sig.is_empty() || schnorr(&input.tap_key_sig))
        && input.tap_script_sigs.values().all(schnorr)
        && (bare || input.partial_sigs.values().all(|(_, signature)| ends_with_it(signature)));
    if agrees && !bare && sighash != default {
        input.sighash_type = Some(sighash);
    }
    agrees
}

/// Signs the inputs that are not final, and finalises them if the options say so. With `accept_final`, every final input with its
/// previous transaction counts as complete, and an input whose sighash types disagree is skipped instead of failing the call.
pub fn sign_inputs(psbt: &mut Psbt, signing: &Signing<'_>, accept_final: bool) -> Result<Vec<InputState>, RpcError> {
    let sighashes = signing.sighashes.filter(|_| signing.call.rules.psbt_sighashes);
    let spent = psbt.spent();
    let verified = verified(psbt, &spent);
    let initial = |verified| InputState { complete: verified, verified, ..InputState::default() };
    let mut states: Vec<InputState> = verified.into_iter().map(initial).collect();
    let mut open = Vec::new();
    for ((index, state), (input, spent)) in states.iter_mut().enumerate().zip(psbt.inputs.iter_mut().zip(&spent)) {
        let Some(spent) = spent.as_ref().filter(|_| !state.verified) else { continue };
        if let Some(source) = sighashes.filter(|_| accept_final || !input.is_final())
            && !agree_on_sighash(input, &spent.script_pubkey, source)
        {
            if accept_final {
                state.disagrees = true;
                continue;
            }
            return Err(sighash_mismatch());
        }
        if !input.is_final() {
            open.push(partial(index, input, &spent.script_pubkey, signing.providers.input(index)));
        } else if accept_final && input.non_witness_utxo.is_some() {
            // As in bitcoind, the invalid final fields stay. The ECDSA signatures, origins and scripts are removed.
            make_final(input, ScriptBuf::new(), Witness::new());
            state.complete = true;
        }
    }
    let unsigned = PartialTransaction { tx: &psbt.tx, spent: &spent, wanted: &|| signing.call.is_wanted() };
    for outcome in unsigned.sign(open, signing.keys, signing.options.sighash.unwrap_or(Sighash::DEFAULT))? {
        let index = outcome.index;
        if let (Some(state), Some(input), Some(Some(spent))) =
            (states.get_mut(index), psbt.inputs.get_mut(index), spent.get(index))
        {
            // A legacy signature does not cover the amount, so a `witness_utxo` alone is not enough for it.
            if input.non_witness_utxo.is_some() || outcome.met.witness {
                *state = store(input, outcome, spent, signing);
            }
        }
    }
    Ok(states)
}

/// An input with its own data and the data of its provider, for the solver.
pub fn partial<'p>(
    index: usize,
    input: &Input,
    script_pubkey: &Script,
    provider: Option<&'p SigningProvider>,
) -> PartialInput<'p> {
    let mut own = SolvingSet::default();
    add_scripts(&mut own, &input.redeem_script, &input.witness_script);
    input.origins.keys().for_each(|key| own.add_public_key(key));
    input.tap_origins.keys().for_each(|key| own.add_public_key(key));
    for (kind, preimages) in KINDS.into_iter().zip(&input.preimages) {
        preimages.iter().for_each(|(hash, preimage)| own.add_preimage(kind, hash.clone(), preimage.clone()));
    }
    let leaf = |((script, version), control_blocks): (&(Vec<u8>, u8), &BTreeSet<ControlBlock>)| {
        let control_block = control_blocks.first()?.0.clone();
        // The leaf version of the field must match the control block's.
        let is_same = control_block.first()? & TAPROOT_LEAF_MASK == *version;
        is_same.then(|| TapLeaf { script: ScriptBuf::from_bytes(script.clone()), control_block: Blob(control_block) })
    };
    let taproot = TaprootData {
        internal_key: input.tap_internal_key.unwrap_or_default(),
        merkle_root: input.tap_merkle_root,
        leaves: input.tap_scripts.iter().filter_map(leaf).collect(),
    };
    own.add(script_pubkey, SolvingData { taproot: Some(taproot), ..SolvingData::default() });
    let signatures = PartialSignatures {
        ecdsa: input.partial_sigs.clone(),
        key_path: input.tap_key_sig.clone(),
        leaves: input.tap_script_sigs.clone(),
    };
    let signers = provider.and_then(|provider| provider.signers.as_ref());
    PartialInput { index, own, known: provider.map(|provider| &provider.solving), signers, signatures }
}

fn add_scripts(own: &mut SolvingSet, redeem_script: &ScriptBuf, witness_script: &ScriptBuf) {
    let scripts = [redeem_script, witness_script].into_iter().filter(|script| !script.is_empty());
    scripts.for_each(|script| own.add_script(script.clone()));
}

fn make_final(input: &mut Input, script_sig: ScriptBuf, witness: Witness) {
    input.partial_sigs.clear();
    input.origins.clear();
    (input.redeem_script, input.witness_script) = Default::default();
    if !script_sig.is_empty() {
        input.final_script_sig = script_sig;
    }
    if !witness.is_empty() {
        input.final_witness = witness;
    }
}

fn store(input: &mut Input, outcome: PartialOutcome, spent: &TxOut, signing: &Signing<'_>) -> InputState {
    let PartialOutcome { index, signatures, complete, met: findings, asked, missing_signatures } = outcome;
    let state = InputState { complete: complete.is_some(), findings, missing_signatures, ..InputState::default() };
    let findings = &state.findings;
    match complete.filter(|_| signing.options.finalize) {
        Some((script_sig, witness)) => make_final(input, script_sig, witness),
        None => {
            input.partial_sigs = signatures.ecdsa;
            input.tap_key_sig = signatures.key_path;
            input.tap_script_sigs = signatures.leaves;
            fill(&mut input.redeem_script, findings.redeem_script.as_ref());
            fill(&mut input.witness_script, findings.witness_script.as_ref());
            if let Some(taproot) = &findings.taproot {
                input.tap_internal_key = Some(taproot.internal_key).filter(|key| *key != [0; 32]);
                input.tap_merkle_root = taproot.merkle_root;
                let mut scripts = BTreeMap::<_, BTreeSet<_>>::new();
                for leaf in &taproot.leaves {
                    let version = leaf.control_block.first().map_or(0, |byte| byte & TAPROOT_LEAF_MASK);
                    let blocks = scripts.entry((leaf.script.to_bytes(), version)).or_default();
                    blocks.insert(ControlBlock(leaf.control_block.to_vec()));
                }
                for (leaf, blocks) in scripts {
                    input.tap_scripts.entry(leaf).or_insert(blocks);
                }
            }
            if let Some(provider) = signing.providers.input(index).filter(|_| signing.options.bip32_derivs) {
                add_origins(&asked, &provider.origins, &mut input.origins, &mut input.tap_origins);
                let (key, rules) = (input.tap_internal_key, &signing.call.rules);
                add_key_path_origins(spent, key, rules, &provider.origins, &mut input.tap_origins);
            }
        }
    }
    if findings.witness {
        input.witness_utxo = Some(spent.clone());
    }
    state
}

fn fill(into: &mut ScriptBuf, from: Option<&ScriptBuf>) {
    if let (true, Some(from)) = (into.is_empty(), from) {
        into.clone_from(from);
    }
}

/// Adds the origins of the keys that the solver asked for. Existing origins stay.
fn add_origins(
    asked: &[AskedKey],
    known: &Origins,
    origins: &mut BTreeMap<Vec<u8>, Origin>,
    tap_origins: &mut BTreeMap<[u8; 32], TaprootOrigin>,
) {
    let mut new = BTreeMap::<[u8; 32], TaprootOrigin>::new();
    for asked in asked {
        match asked {
            AskedKey::Ecdsa(key) => {
                if let Some(origin) = known.of(key) {
                    origins.entry(key.clone()).or_insert_with(|| origin.clone());
                }
            }
            AskedKey::Taproot(key, leaf) => {
                if let Some(origin) = known.of_x_only(key) {
                    new.entry(*key).or_insert_with(|| (BTreeSet::new(), origin.clone())).0.extend(*leaf);
                }
            }
        }
    }
    for (key, origin) in new {
        tap_origins.entry(key).or_insert(origin);
    }
}

/// Adds the origins of an output's internal key, and since release 31 of a taproot output key. Existing origins stay. bitcoind
/// looks the keys up even for inputs with a signature.
fn add_key_path_origins(
    output: &TxOut,
    internal_key: Option<[u8; 32]>,
    rules: &Rules,
    known: &Origins,
    tap_origins: &mut BTreeMap<[u8; 32], TaprootOrigin>,
) {
    let is_taproot = rules.output_key_origins && output.script_pubkey.is_p2tr();
    let output_key = output.script_pubkey.as_bytes().get(2..).filter(|_| is_taproot);
    for key in internal_key.into_iter().chain(output_key.and_then(|key| key.try_into().ok())) {
        if let Some(origin) = known.of_x_only(&key) {
            tap_origins.entry(key).or_insert_with(|| (BTreeSet::new(), origin.clone()));
        }
    }
}

/// Adds scripts and origins to the outputs, so that a signing device recognises its own outputs.
pub fn update_outputs(psbt: &mut Psbt, signing: &Signing<'_>) {
    let providers = signing.providers;
    let curve = Secp256k1::verification_only();
    let scripts = psbt.tx.output.iter().zip(&psbt.outputs).enumerate();
    let scripts = scripts.map(|(index, (output, fields))| {
        let mut own = SolvingSet::default();
        add_scripts(&mut own, &fields.redeem_script, &fields.witness_script);
        fields.origins.keys().for_each(|key| own.add_public_key(key));
        fields.tap_origins.keys().for_each(|key| own.add_public_key(key));
        let taproot = own_tree(fields, &curve);
        own.add(&output.script_pubkey, SolvingData { taproot, ..SolvingData::default() });
        (output.script_pubkey.as_script(), own, providers.output(index).map(|provider| &provider.solving))
    });
    let outcomes = inspect_scripts(&psbt.tx, scripts);
    let outputs = psbt.tx.output.iter().zip(&mut psbt.outputs);
    for (index, ((paid, output), PartialOutcome { met, asked, .. })) in outputs.zip(outcomes).enumerate() {
        fill(&mut output.redeem_script, met.redeem_script.as_ref());
        fill(&mut output.witness_script, met.witness_script.as_ref());
        if let Some(taproot) = met.taproot {
            output.tap_internal_key = Some(taproot.internal_key);
        }
        let Some(provider) = providers.output(index) else { continue };
        if let Some(taproot) = provider.solving.taproot_of(&paid.script_pubkey) {
            update_tree(output, taproot);
        }
        if signing.options.bip32_derivs {
            add_origins(&asked, &provider.origins, &mut output.origins, &mut output.tap_origins);
            let (key, rules) = (output.tap_internal_key, &signing.call.rules);
            add_key_path_origins(paid, key, rules, &provider.origins, &mut output.tap_origins);
        }
    }
}

/// The script tree in the fields of an output. `None` without a tree, or if rust-bitcoin does not know the version of a leaf.
fn own_tree(output: &Output, curve: &Secp256k1<VerifyOnly>) -> Option<TaprootData> {
    let internal_key = output.tap_internal_key.filter(|_| !output.tap_tree.is_empty())?;
    let leaves = output.tap_tree.iter().map(|(depth, version, script)| {
        Some((*depth, ScriptBuf::from_bytes(script.clone()), LeafVersion::from_consensus(*version).ok()?))
    });
    let leaves = leaves.collect::<Option<Vec<_>>>()?;
    let tree = leaves.iter().try_fold(TaprootBuilder::new(), |tree, (depth, script, version)| {
        tree.add_leaf_with_ver(*depth, script.clone(), *version).ok()
    })?;
    let tree = tree.finalize(curve, UntweakedPublicKey::from_slice(&internal_key).ok()?).ok()?;
    let leaf = |(_, script, version)| {
        let leaf = (script, version);
        let control_block = Blob(tree.control_block(&leaf)?.serialize());
        Some(TapLeaf { script: leaf.0, control_block })
    };
    let merkle_root = tree.merkle_root().map(|root| root.to_byte_array());
    Some(TaprootData { internal_key, merkle_root, leaves: leaves.into_iter().filter_map(leaf).collect() })
}

fn update_tree(output: &mut Output, taproot: &TaprootData) {
    if !taproot.leaves.is_empty() {
        let leaf = |leaf: &TapLeaf| {
            let depth = leaf.control_block.len().saturating_sub(TAPROOT_CONTROL_BASE_SIZE) / TAPROOT_CONTROL_NODE_SIZE;
            let version = leaf.control_block.first().map_or(0, |byte| byte & TAPROOT_LEAF_MASK);
            (u8::try_from(depth).unwrap_or(u8::MAX), version, leaf.script.to_bytes())
        };
        // bitcoind puts the later branch of a tree before the earlier one.
        output.tap_tree = taproot.leaves.iter().rev().map(leaf).collect();
    }
}

/// Drops the previous transactions if all inputs are taproot or later, because their signatures cover all amounts. Keeps them for
/// ANYONECANPAY, which does not: since release 30 according to the inputs' fields, before it according to the argument.
pub fn remove_unnecessary_transactions(psbt: &mut Psbt, sighash: Option<Sighash>, rules: &Rules) {
    let is_taproot = |input: &Input| {
        let script = input.witness_utxo.as_ref().map(|output| &output.script_pubkey);
        script.and_then(|script| script.witness_version()).is_some_and(|version| version.to_num() > 0)
    };
    let stored =
        |input: &Input| input.sighash_type.is_some_and(|stored| stored.cast_unsigned() & SIGHASH_ANYONECANPAY != 0);
    let leaves_others = if rules.psbt_sighashes {
        psbt.inputs.iter().any(stored)
    } else {
        sighash.is_some_and(Sighash::is_anyone_can_pay)
    };
    if !leaves_others && psbt.inputs.iter().all(is_taproot) {
        psbt.inputs.iter_mut().for_each(|input| input.non_witness_utxo = None);
    }
}

/// Finalises the complete inputs. Returns no states if no locktime satisfies all inputs.
pub fn finalize(call: &Call<'_>, psbt: &mut Psbt, source: SighashSource) -> Result<Vec<InputState>, RpcError> {
    if psbt.lock_time().is_none() {
        return Ok(Vec::new());
    }
    let (providers, keys) = (Providers::Shared(Box::default()), LocalKeys::default());
    let options = SignOptions { sighash: None, bip32_derivs: false, finalize: true };
    let signing = Signing { call, providers: &providers, keys: &keys, options, sighashes: Some(source) };
    sign_inputs(psbt, &signing, true)
}

/// The transaction with the final scriptSigs and witnesses.
pub fn extract(psbt: &Psbt) -> Transaction {
    let mut transaction = psbt.tx.clone();
    for (input, known) in transaction.input.iter_mut().zip(&psbt.inputs) {
        input.script_sig.clone_from(&known.final_script_sig);
        input.witness.clone_from(&known.final_witness);
    }
    transaction
}
