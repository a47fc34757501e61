//! The coins that a transaction may spend: the wallet's spendable coins and the sender's preset inputs.

use std::collections::{BTreeSet, HashMap, HashSet};

use bitcoin::{OutPoint, ScriptBuf, SignedAmount, TxOut, Txid, Weight, consensus};
use outrigger_service::wallet::{Ownership, ScriptInfo, SolvingData, WalletCoin, WalletInfo};
use outrigger_service::wire::Blob;
use outrigger_service::{Result, ServiceError};
use outrigger_values::FeeRate;
use outrigger_values::amount::Saturating;

use crate::Services;
use crate::bump::{BumpFees, Unconfirmed};
use crate::coin::{Coin, OutputKind, signed};
use crate::coins;
use crate::control::{CoinControl, PresetInput};
use crate::error::{SpendError, short};
use crate::truc;
use crate::weight::{InputSize, Signatures, input_size, is_witness, keys_for};

const UNKNOWN_INPUT: SpendError = SpendError::rule("Unable to find UTXO for external input");
const ENORMOUS_CLUSTER: SpendError = SpendError::rule(
    "Failed to calculate bump fees, because unconfirmed UTXOs depend on enormous cluster of unconfirmed transactions.",
);

#[derive(Debug)]
pub struct Available {
    /// The preset inputs' coins in the sender's order, then the wallet's.
    pub coins: Vec<Coin>,
    /// The sizes of the preset inputs, whose keys may be another party's.
    pub preset_sizes: Vec<InputSize>,
    /// The wallet's solving data for its coins' scripts.
    pub scripts: HashMap<ScriptBuf, ScriptInfo>,
    /// The total value of coins left out because the wallet does not know how to spend them.
    pub unsolvable: SignedAmount,
    /// The mempool transactions in the clusters of unconfirmed coins.
    pub unconfirmed: Unconfirmed,
    /// The mempool transactions that spend the preset inputs' coins; the payment replaces them.
    replaced: Vec<Txid>,
    signatures: Signatures,
}

impl Available {
    /// Reads the coins. Fails for a preset input that is unknown, unsolvable or not allowed for this version (BIP 431).
    pub fn read(
        services: Services<'_>,
        wallet: &WalletInfo,
        control: &CoinControl,
    ) -> std::result::Result<Self, SpendError> {
        let mut found = Self {
            coins: Vec::new(),
            preset_sizes: Vec::new(),
            scripts: HashMap::new(),
            unsolvable: SignedAmount::ZERO,
            unconfirmed: Unconfirmed::default(),
            replaced: Vec::new(),
            signatures: Signatures::of(wallet),
        };
        let outpoints: Vec<OutPoint> = control.inputs.iter().map(|input| input.outpoint).collect();
        if !outpoints.is_empty() {
            found.read_preset(services, control, &outpoints)?;
            let spenders = services.host.mempool.spenders(services.scope, outpoints.clone())?;
            found.replaced = spenders.into_iter().flatten().collect();
        }
        if control.add_inputs {
            found.read_wallet(services, wallet, control, &outpoints)?;
        }
        let unconfirmed = found.coins.iter().filter(|coin| coin.depth == 0).map(|coin| coin.outpoint.txid);
        found.unconfirmed = Unconfirmed::connected(services, unconfirmed.collect::<HashSet<_>>())?;
        for coin in found.coins.iter_mut().filter(|coin| coin.depth == 0) {
            (coin.ancestors, coin.descendants) = found.unconfirmed.ancestry(coin.outpoint.txid);
        }
        truc::keep_allowed(services, control.version, found.preset_sizes.len(), &mut found.coins)?;
        Ok(found)
    }

    /// Computes each coin's fees at these feerates. Fails if the cluster of unconfirmed transactions is too large.
    pub fn set_feerates(&mut self, feerate: FeeRate, long_term: FeeRate) -> std::result::Result<BumpFees, SpendError> {
        let replaced = self.replaced.iter().copied();
        let bump_fees = self.unconfirmed.bump_fees(feerate, replaced).ok_or(ENORMOUS_CLUSTER)?;
        for coin in &mut self.coins {
            coin.set_feerates(feerate, long_term);
            coin.bump_fee = if coin.depth == 0 { bump_fees.of(coin.outpoint.txid) } else { SignedAmount::ZERO };
        }
        Ok(bump_fees)
    }

    /// Reads the preset inputs: from the wallet, else from the UTXO set or the mempool.
    fn read_preset(
        &mut self,
        services: Services<'_>,
        control: &CoinControl,
        outpoints: &[OutPoint],
    ) -> std::result::Result<(), SpendError> {
        let known = known_outputs(services, outpoints)?;
        let owned = |outpoint: &OutPoint| known_output(&known, outpoint).filter(|known| known.1).map(|known| &known.0);
        let others: Vec<OutPoint> = outpoints.iter().filter(|outpoint| owned(outpoint).is_none()).copied().collect();
        let external = other_outputs(services, &others)?;
        let scripts = outpoints.iter().filter_map(owned).map(|output| output.script_pubkey.clone()).collect();
        self.scripts.extend(coins::scripts_known(services, scripts)?);
        for input in &control.inputs {
            let own_only = services.rules.presets_own_only;
            let (output, is_ours) = match known_output(&known, &input.outpoint) {
                Some((output, is_ours)) if *is_ours || input.by_weight && !own_only => (output, *is_ours),
                _ if input.by_weight => {
                    let is_invalid = !own_only && known.contains_key(&input.outpoint.txid);
                    let problem = if is_invalid { "Invalid" } else { "Not found" };
                    let outpoint = short(&input.outpoint);
                    return Err(SpendError::Rule(format!("{problem} pre-selected input {outpoint}").into()));
                }
                _ => (external.get(&input.outpoint).ok_or(UNKNOWN_INPUT)?, false),
            };
            let info = self.scripts.get(&output.script_pubkey);
            let solving = joined(info.map(|info| &info.solving), &control.solving);
            let size = |signatures| preset_size(input, output, &solving, signatures);
            let unsolvable = || SpendError::UnsolvableInput(input.outpoint);
            let selected = size(self.signatures).ok_or_else(unsolvable)?;
            let signatures = if is_ours { self.signatures } else { Signatures::AnyR };
            self.preset_sizes.push(size(signatures).ok_or_else(unsolvable)?);
            let kind = OutputKind::of(&output.script_pubkey, &solving);
            self.coins.push(Coin::new(input.outpoint, output.clone(), kind, selected));
        }
        Ok(())
    }

    /// Reads the wallet's coins that the coin control and the relay rules allow.
    fn read_wallet(
        &mut self,
        services: Services<'_>,
        wallet: &WalletInfo,
        control: &CoinControl,
        preset: &[OutPoint],
    ) -> Result<()> {
        let preset: HashSet<&OutPoint> = preset.iter().collect();
        let signatures = self.signatures;
        let locked = coins::locked(services)?;
        let may_be_spent = |coin: &WalletCoin| {
            let depth = coins::depth(coin, &wallet.synced);
            let is_mine = match coin.ownership {
                Ownership::Spendable => true,
                Ownership::WatchOnly => control.include_watching,
                Ownership::None => false,
            };
            is_mine
                && coins::is_present(coin)
                && !coins::is_immature(coin, &wallet.synced)
                && (coin.trusted || control.include_unsafe)
                && (control.min_depth..=control.max_depth).contains(&depth)
                && !preset.contains(&coin.outpoint)
                && !locked.contains(&coin.outpoint)
        };
        let mut candidates = coins::all(services)?;
        candidates.retain(may_be_spent);
        if control.avoid_reuse && wallet.avoid_reuse {
            let spent_from = coins::spent_from(services, &candidates)?;
            candidates.retain(|coin| !spent_from.contains(&coin.script));
        }
        if !control.include_unsafe {
            let replacements = coins::replacements(services, &candidates)?;
            candidates.retain(|coin| !replacements.contains(&coin.outpoint.txid));
        }
        let known_by_form = all_known_by_form(services, control.signable_only)?;
        // The wallet derives solving data, which is slow for many scripts. [`Self::drop_unsignable`] later checks whether
        // the wallet's keys can sign, for the chosen coins only.
        let by_form = |coin: &WalletCoin| {
            let size = InputSize::by_form(&coin.script, signatures);
            size.filter(|_| known_by_form && coin.ownership == Ownership::Spendable)
        };
        let scripts = coins::scripts_of(services, candidates.iter().filter(|coin| by_form(coin).is_none()))?;
        let signable = if control.signable_only { Some(signable_keys(services, &scripts)?) } else { None };
        let sized: HashMap<&ScriptBuf, (OutputKind, InputSize)> = scripts
            .iter()
            .filter_map(|(script, info)| {
                let size = signed_size(script, info, signatures, signable.as_ref())?;
                Some((script, (OutputKind::of(script, &info.solving), size)))
            })
            .collect();
        let nothing = SolvingData::default();
        for coin in candidates {
            let known = by_form(&coin).map(|size| (OutputKind::of(&coin.script, &nothing), size));
            let Some((kind, size)) = known.or_else(|| sized.get(&coin.script).copied()) else {
                self.unsolvable = self.unsolvable.saturating_add(signed(coin.value));
                continue;
            };
            let depth = coins::depth(&coin, &wallet.synced);
            let output = TxOut { value: coin.value, script_pubkey: coin.script };
            let from_us = coin.from_us;
            self.coins.push(Coin { depth, from_us, ..Coin::new(coin.outpoint, output, kind, size) });
        }
        self.scripts.extend(scripts);
        Ok(())
    }

    /// The size of the input that spends a coin.
    pub fn size(&self, position: usize) -> Option<InputSize> {
        let preset = self.preset_sizes.get(position).copied();
        preset.or_else(|| self.coins.get(position).map(|coin| coin.size))
    }

    /// Drops each chosen coin that a mempool transaction unknown to the wallet spends. Preset inputs stay. Only the
    /// chosen coins are looked up. Returns whether it dropped any.
    pub fn drop_spent(&mut self, services: Services<'_>, chosen: &[usize]) -> Result<bool> {
        let preset = self.preset_sizes.len();
        let chosen = chosen.iter().filter(|position| **position >= preset);
        let outpoints: Vec<OutPoint> =
            chosen.filter_map(|position| self.coins.get(*position)).map(|coin| coin.outpoint).collect();
        if outpoints.is_empty() {
            return Ok(false);
        }
        let spenders = services.host.mempool.spenders(services.scope, outpoints.clone())?;
        let spent = outpoints.into_iter().zip(spenders).filter_map(|(outpoint, spender)| spender.map(|_| outpoint));
        let spent: HashSet<OutPoint> = spent.collect();
        self.coins.retain(|coin| !spent.contains(&coin.outpoint));
        Ok(!spent.is_empty())
    }

    /// Drops unconfirmed coins that a version 3 payment of this weight may not spend. Returns whether it dropped any.
    pub fn keep_light(&mut self, chosen: &[usize], weight: Weight) -> bool {
        truc::keep_light(self.preset_sizes.len(), &mut self.coins, chosen, weight)
    }

    /// Drops the coins that the wallet's keys cannot sign for. Preset inputs stay. Checks the chosen coins first, and the
    /// others only if it drops a chosen one. Returns whether it dropped any.
    pub fn drop_unsignable(&mut self, services: Services<'_>, chosen: &[usize]) -> Result<bool> {
        let preset = self.preset_sizes.len();
        let chosen = chosen.iter().filter(|position| **position >= preset);
        let chosen = chosen.filter_map(|position| self.coins.get(*position)).map(|coin| &coin.output.script_pubkey);
        let mut unsignable = self.learn_scripts(services, chosen.cloned().collect())?;
        if unsignable.is_empty() {
            return Ok(false);
        }
        let others = self.coins.iter().skip(preset).map(|coin| coin.output.script_pubkey.clone()).collect();
        unsignable.extend(self.learn_scripts(services, others)?);
        truc::retain_after(preset, &mut self.coins, |coin| !unsignable.contains(&coin.output.script_pubkey));
        Ok(true)
    }

    /// Adds the wallet's solving data of new scripts. Returns those scripts that its keys cannot sign for.
    fn learn_scripts(&mut self, services: Services<'_>, scripts: HashSet<ScriptBuf>) -> Result<HashSet<ScriptBuf>> {
        let new: Vec<ScriptBuf> = scripts.into_iter().filter(|script| !self.scripts.contains_key(script)).collect();
        let known = coins::scripts_known(services, new.clone())?;
        let keys = signable_keys(services, &known)?;
        let signs = |script: &ScriptBuf| {
            known.get(script).is_some_and(|info| signed_size(script, info, self.signatures, Some(&keys)).is_some())
        };
        let unsignable = new.into_iter().filter(|script| !signs(script)).collect();
        self.scripts.extend(known);
        Ok(unsignable)
    }
}

/// The public keys of these scripts whose private keys the signer has.
fn signable_keys(services: Services<'_>, scripts: &HashMap<ScriptBuf, ScriptInfo>) -> Result<HashSet<Vec<u8>>> {
    let keys: HashSet<Vec<u8>> = scripts.iter().flat_map(|(script, info)| keys_for(script, &info.solving)).collect();
    if keys.is_empty() {
        return Ok(keys);
    }
    let candidates: Vec<Blob> = keys.iter().cloned().map(Blob).collect();
    let available = services.host.signer.available(services.scope, scripts.keys().cloned().collect(), candidates)?;
    Ok(keys.into_iter().zip(available).filter(|(_, available)| *available).map(|(key, _)| key).collect())
}

/// The size of the input that spends a script; `None` if the `signable` keys, all by default, do not suffice.
fn signed_size(
    script: &ScriptBuf,
    info: &ScriptInfo,
    signatures: Signatures,
    signable: Option<&HashSet<Vec<u8>>>,
) -> Option<InputSize> {
    match signable {
        None => input_size(script, &info.solving, signatures, None),
        Some(keys) => input_size(script, &info.solving, signatures, Some(&|key| keys.contains(key))),
    }
}

/// Whether the form of each P2WPKH and P2TR script of the wallet determines how it is spent. It does not for `addr()` and
/// `raw()` descriptors, nor, if the signer matters, for taproot descriptors with a script tree.
fn all_known_by_form(services: Services<'_>, signer_matters: bool) -> Result<bool> {
    let descriptors = services.host.wallet.descriptors(services.scope)?;
    let is_open = |text: &str| {
        let has_tree = || text.starts_with("tr(") && text.contains(',');
        text.starts_with("addr(") || text.starts_with("raw(") || (signer_matters && has_tree())
    };
    Ok(!descriptors.iter().any(|descriptor| is_open(descriptor.text.expose())))
}

/// The size of a preset input: by its declared weight, else by the solving data.
fn preset_size(
    input: &PresetInput,
    output: &TxOut,
    solving: &SolvingData,
    signatures: Signatures,
) -> Option<InputSize> {
    match input.weight {
        Some(weight) => Some(InputSize::of_weight(weight, is_witness(&output.script_pubkey, solving))),
        None => input_size(&output.script_pubkey, solving, signatures, None),
    }
}

fn joined(wallet: Option<&SolvingData>, sender: &SolvingData) -> SolvingData {
    let Some(wallet) = wallet else { return sender.clone() };
    SolvingData {
        scripts: wallet.scripts.iter().chain(&sender.scripts).cloned().collect(),
        public_keys: wallet.public_keys.iter().chain(&sender.public_keys).cloned().collect(),
        taproot: wallet.taproot.clone().or_else(|| sender.taproot.clone()),
    }
}

/// The outputs at these outpoints that belong to the wallet.
pub fn owned_outputs(services: Services<'_>, outpoints: &[OutPoint]) -> Result<HashMap<OutPoint, TxOut>> {
    let known = known_outputs(services, outpoints)?;
    let owned = |outpoint: &OutPoint| {
        let (output, is_ours) = known_output(&known, outpoint)?;
        is_ours.then(|| (*outpoint, output.clone()))
    };
    Ok(outpoints.iter().filter_map(owned).collect())
}

/// The outputs of transactions, and whether each belongs to the wallet.
type KnownOutputs = HashMap<Txid, Vec<(TxOut, bool)>>;

fn known_output<'a>(known: &'a KnownOutputs, outpoint: &OutPoint) -> Option<&'a (TxOut, bool)> {
    known.get(&outpoint.txid)?.get(usize::try_from(outpoint.vout).unwrap_or(usize::MAX))
}

/// All outputs of the wallet transactions in these outpoints.
fn known_outputs(services: Services<'_>, outpoints: &[OutPoint]) -> Result<KnownOutputs> {
    let txids: BTreeSet<Txid> = outpoints.iter().map(|outpoint| outpoint.txid).collect();
    let batch = services.host.wallet.transactions(services.scope, txids.into_iter().collect())?;
    let mut known = HashMap::new();
    for row in batch.view().map_err(ServiceError::from)?.rows.iter() {
        let (transaction, _) = row.open()?;
        let mut outputs = Vec::new();
        for output in transaction.outputs.iter() {
            let is_ours = output.ownership != Ownership::None;
            outputs.push((TxOut { value: output.value, script_pubkey: output.script.into() }, is_ours));
        }
        known.insert(transaction.txid, outputs);
    }
    Ok(known)
}

/// The outputs at these outpoints, from the UTXO set or from mempool transactions. Unknown outputs are left out.
pub fn other_outputs(services: Services<'_>, outpoints: &[OutPoint]) -> Result<HashMap<OutPoint, TxOut>> {
    if outpoints.is_empty() {
        return Ok(HashMap::new());
    }
    let coins = services.host.chain.coins(services.scope, outpoints.to_vec())?;
    let pairs = outpoints.iter().zip(coins);
    let mut found: HashMap<OutPoint, TxOut> =
        pairs.filter_map(|(outpoint, coin)| Some((*outpoint, coin?.output))).collect();
    let missing: Vec<OutPoint> = outpoints.iter().filter(|outpoint| !found.contains_key(*outpoint)).copied().collect();
    let txids: Vec<Txid> = missing.iter().map(|outpoint| outpoint.txid).collect();
    let transactions = services.host.mempool.transactions(services.scope, txids)?;
    for (outpoint, transaction) in missing.into_iter().zip(transactions) {
        let transaction = transaction.and_then(|raw| consensus::deserialize::<bitcoin::Transaction>(&raw).ok());
        let output = transaction.and_then(|transaction| {
            transaction.output.into_iter().nth(usize::try_from(outpoint.vout).unwrap_or(usize::MAX))
        });
        found.extend(output.map(|output| (outpoint, output)));
    }
    Ok(found)
}
