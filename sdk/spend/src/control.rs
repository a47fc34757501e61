//! The sender's options for a payment, besides its recipients (`CCoinControl` of Bitcoin Core).

use std::collections::{HashMap, HashSet};

use bitcoin::absolute::LockTime;
use bitcoin::transaction::Version;
use bitcoin::{Amount, OutPoint, ScriptBuf, Sequence, Transaction, TxOut, Weight, Witness};
use outrigger_service::wallet::{AddressType, SolvingData};

use crate::fee_choice::FeeChoice;

/// A recipient of a payment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recipient {
    /// The script that is paid.
    pub script: ScriptBuf,
    /// The amount, before a share of the fee is subtracted.
    pub amount: Amount,
    /// Whether the recipient pays a share of the fee.
    pub subtract_fee: bool,
}

/// The sender's choice of a change address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ChangeChoice {
    /// A new address of the wallet, of this type or of the type that suits the recipients.
    Fresh(Option<AddressType>),
    /// This script.
    To(ScriptBuf),
}

impl Default for ChangeChoice {
    fn default() -> Self {
        Self::Fresh(None)
    }
}

/// An input that the sender selected.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PresetInput {
    /// The coin that it spends.
    pub outpoint: OutPoint,
    /// The sequence; `None`: the wallet chooses.
    pub sequence: Option<Sequence>,
    /// The scriptSig, which is kept.
    pub script_sig: ScriptBuf,
    /// The witness, which is kept.
    pub witness: Witness,
    /// The weight of the signed input; `None`: estimated from solving data.
    pub weight: Option<Weight>,
    /// Whether only `input_weights` names the input. It must spend an output of a wallet transaction; until release 29 any owner's.
    pub by_weight: bool,
}

impl PresetInput {
    /// The inputs of a transaction. If several spend the same coin, the last counts.
    pub fn of(transaction: &Transaction) -> Vec<Self> {
        let mut inputs: Vec<Self> = Vec::with_capacity(transaction.input.len());
        let mut known: HashMap<OutPoint, usize> = HashMap::new();
        for input in &transaction.input {
            let preset = Self {
                outpoint: input.previous_output,
                sequence: Some(input.sequence),
                script_sig: input.script_sig.clone(),
                witness: input.witness.clone(),
                weight: None,
                by_weight: false,
            };
            let place = *known.entry(preset.outpoint).or_insert(inputs.len());
            match inputs.get_mut(place) {
                Some(known) => *known = preset,
                None => inputs.push(preset),
            }
        }
        inputs
    }
}

impl Recipient {
    /// The outputs as recipients. The recipients at the positions `payers` pay the fee.
    pub fn of(outputs: &[TxOut], payers: &HashSet<usize>) -> Vec<Self> {
        let recipient = |(position, output): (usize, &TxOut)| Self {
            script: output.script_pubkey.clone(),
            amount: output.value,
            subtract_fee: payers.contains(&position),
        };
        outputs.iter().enumerate().map(recipient).collect()
    }
}

/// The options of a payment. The default is a payment without options.
#[derive(Clone, Debug)]
pub struct CoinControl {
    /// The change address.
    pub change: ChangeChoice,
    /// The position of change among the outputs; `None`: random.
    pub change_position: Option<usize>,
    /// The preset inputs, which come first, in this order.
    pub inputs: Vec<PresetInput>,
    /// Whether the wallet may add coins to the preset inputs.
    pub add_inputs: bool,
    /// Whether it may add unsafe coins: unconfirmed ones that others paid, and replacements.
    pub include_unsafe: bool,
    /// Whether it may add watch-only coins.
    pub include_watching: bool,
    /// Whether it may add only coins that the wallet's keys can sign for.
    pub signable_only: bool,
    /// Whether it leaves out coins of scripts that the wallet has spent from (wallet flag avoid_reuse).
    pub avoid_reuse: bool,
    /// Whether it spends the coins of a script together.
    pub avoid_partial_spends: bool,
    /// The least number of confirmations of added coins.
    pub min_depth: u32,
    /// The greatest number of confirmations of added coins.
    pub max_depth: u32,
    /// The choice of the feerate.
    pub fee: FeeChoice,
    /// Whether the transaction signals replaceability (BIP 125); `None`: the wallet's setting.
    pub replaceable: Option<bool>,
    /// Solving data for inputs that are not the wallet's.
    pub solving: SolvingData,
    /// The greatest weight of the transaction, in weight units; `None`: the standardness limit.
    pub max_tx_weight: Option<i64>,
    /// The locktime; `None`: chosen against fee sniping, or 0 if a preset input has a sequence.
    pub lock_time: Option<LockTime>,
    /// The transaction version.
    pub version: Version,
}

impl Default for CoinControl {
    fn default() -> Self {
        Self {
            change: ChangeChoice::default(),
            change_position: None,
            inputs: Vec::new(),
            add_inputs: true,
            include_unsafe: false,
            include_watching: false,
            signable_only: false,
            avoid_reuse: false,
            avoid_partial_spends: false,
            min_depth: 0,
            max_depth: MAX_DEPTH,
            fee: FeeChoice::default(),
            replaceable: None,
            solving: SolvingData::default(),
            max_tx_weight: None,
            lock_time: None,
            version: Version::TWO,
        }
    }
}

/// The default of [`CoinControl::max_depth`], in blocks (`DEFAULT_MAX_DEPTH`).
pub const MAX_DEPTH: u32 = 9_999_999;
