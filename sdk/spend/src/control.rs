//! What a sender may say of a transaction to fund, beside its recipients (`CCoinControl` of Bitcoin Core).

use std::collections::{HashMap, HashSet};

use bitcoin::absolute::LockTime;
use bitcoin::transaction::Version;
use bitcoin::{Amount, OutPoint, ScriptBuf, Sequence, Transaction, TxOut, Weight, Witness};
use outrigger_service::wallet::{AddressType, SolvingData};

use crate::fee_choice::FeeChoice;

/// Who is paid, and how much.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recipient {
    /// Its script.
    pub script: ScriptBuf,
    /// Its amount.
    pub amount: Amount,
    /// Whether a share of the fee is subtracted from the amount.
    pub subtract_fee: bool,
}

/// Where change goes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ChangeChoice {
    /// To a fresh address of the wallet, of this type or of one that suits the recipients.
    Fresh(Option<AddressType>),
    /// To this script.
    To(ScriptBuf),
}

impl Default for ChangeChoice {
    fn default() -> Self {
        Self::Fresh(None)
    }
}

/// An input that the transaction has in any case.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PresetInput {
    /// What it spends.
    pub outpoint: OutPoint,
    /// Its sequence.
    pub sequence: Option<Sequence>,
    /// Its scriptSig, which is kept.
    pub script_sig: ScriptBuf,
    /// Its witness, which is kept.
    pub witness: Witness,
    /// Its weight once it is signed; none: as far as is known how it is signed.
    pub weight: Option<Weight>,
    /// Whether only its weight names it: it is looked for in the wallet's transactions alone, among all of their outputs.
    pub by_weight: bool,
}

impl PresetInput {
    /// The inputs of a transaction. Of several that spend the same, the last one counts.
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
    /// Those of outputs, of which the ones at these positions pay the fee.
    pub fn of(outputs: &[TxOut], payers: &HashSet<usize>) -> Vec<Self> {
        let recipient = |(position, output): (usize, &TxOut)| Self {
            script: output.script_pubkey.clone(),
            amount: output.value,
            subtract_fee: payers.contains(&position),
        };
        outputs.iter().enumerate().map(recipient).collect()
    }
}

/// The options of a transaction to fund. The default is that of payments which say nothing.
#[derive(Clone, Debug)]
pub struct CoinControl {
    /// Where change goes.
    pub change: ChangeChoice,
    /// The change's position among the outputs; none: a random one.
    pub change_position: Option<usize>,
    /// The inputs that it has in any case, in this order before all others.
    pub inputs: Vec<PresetInput>,
    /// Whether coins are added to these.
    pub add_inputs: bool,
    /// Whether unconfirmed coins that others paid may be added.
    pub include_unsafe: bool,
    /// Whether coins may be added that are only watched.
    pub include_watching: bool,
    /// Whether only coins are added that the wallet's keys can sign for.
    pub signable_only: bool,
    /// Whether coins of scripts that the wallet has spent from are left alone.
    pub avoid_reuse: bool,
    /// Whether the coins of a script are spent together.
    pub avoid_partial_spends: bool,
    /// The least depth of coins that are added, in blocks.
    pub min_depth: u32,
    /// The greatest depth of coins that are added, in blocks.
    pub max_depth: u32,
    /// The feerate.
    pub fee: FeeChoice,
    /// Whether the transaction signals that it can be replaced; none: what the settings say.
    pub replaceable: Option<bool>,
    /// Keys and scripts of inputs that are not the wallet's.
    pub solving: SolvingData,
    /// The greatest weight of the transaction, in weight units; none: the greatest that is relayed.
    pub max_tx_weight: Option<i64>,
    /// The lock time; none: one against fee sniping.
    pub lock_time: Option<LockTime>,
    /// The transaction's version.
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

/// The greatest depth of coins that are added where none is given, in blocks (`DEFAULT_MAX_DEPTH`).
pub const MAX_DEPTH: u32 = 9_999_999;
