//! A coin as coin selection sees it.

use bitcoin::{Amount, OutPoint, Script, SignedAmount, TxOut, Weight};
use outrigger_service::wallet::SolvingData;
use outrigger_standard::{ScriptKind, classify};
use outrigger_values::FeeRate;
use outrigger_values::amount::Saturating;

use crate::known::redeem_script;
use crate::weight::InputSize;

/// The types of outputs that are not mixed without need, in the order in which equally good choices are preferred.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum OutputKind {
    /// P2PKH, and P2SH without a witness.
    Legacy,
    /// A witness program in P2SH.
    P2shSegwit,
    /// P2WPKH and P2WSH.
    Bech32,
    /// P2TR.
    Bech32m,
    /// Any other.
    Unknown,
}

impl OutputKind {
    /// That of a script, with what is known of the scripts behind it.
    pub fn of(script: &Script, solving: &SolvingData) -> Self {
        let behind = |hash| redeem_script(hash, solving).map(|redeem| classify(redeem));
        match classify(script) {
            ScriptKind::Taproot { .. } => Self::Bech32m,
            ScriptKind::WitnessV0KeyHash { .. } | ScriptKind::WitnessV0ScriptHash { .. } => Self::Bech32,
            ScriptKind::PubKeyHash { .. } => Self::Legacy,
            ScriptKind::ScriptHash { hash } => match behind(hash) {
                Some(ScriptKind::WitnessV0KeyHash { .. } | ScriptKind::WitnessV0ScriptHash { .. }) => Self::P2shSegwit,
                None | Some(ScriptKind::PubKeyHash { .. } | ScriptKind::ScriptHash { .. }) => Self::Legacy,
                Some(_) => Self::Unknown,
            },
            _ => Self::Unknown,
        }
    }
}

/// The fee for so many virtual bytes.
pub fn fee(feerate: FeeRate, virtual_size: u64) -> SignedAmount {
    signed(feerate.fee(virtual_size))
}

/// An amount with a sign, all money at most.
pub fn signed(amount: Amount) -> SignedAmount {
    SignedAmount::from_sat(amount.min(Amount::MAX_MONEY).to_sat().cast_signed())
}

/// The sum of amounts, at most what the type holds.
pub fn sum(amounts: impl Iterator<Item = SignedAmount>) -> SignedAmount {
    amounts.fold(SignedAmount::ZERO, SignedAmount::saturating_add)
}

/// An amount without a sign, zero for one below zero.
pub fn unsigned(amount: SignedAmount) -> Amount {
    amount.to_unsigned().unwrap_or(Amount::ZERO)
}

/// A coin that may be spent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Coin {
    /// Its outpoint.
    pub outpoint: OutPoint,
    /// It.
    pub output: TxOut,
    /// Its type.
    pub kind: OutputKind,
    /// The size of the input that spends it.
    pub size: InputSize,
    /// The number of blocks that confirm it.
    pub depth: u32,
    /// Whether the wallet spent something of its own in its transaction.
    pub from_us: bool,
    /// The unconfirmed transactions that it builds on, its own included.
    pub ancestors: u64,
    /// The most unconfirmed transactions that build on one of these, it included.
    pub descendants: u64,
    /// What raising its unconfirmed ancestors to the feerate costs.
    pub bump_fee: SignedAmount,
    /// The fee for its input.
    pub input_fee: SignedAmount,
    /// The fee for its input at the long-term feerate.
    pub long_term_fee: SignedAmount,
}

impl Coin {
    /// A confirmed coin that others paid.
    pub fn new(outpoint: OutPoint, output: TxOut, kind: OutputKind, size: InputSize) -> Self {
        Self {
            outpoint,
            output,
            kind,
            size,
            depth: 0,
            from_us: false,
            ancestors: 0,
            descendants: 0,
            bump_fee: SignedAmount::ZERO,
            input_fee: SignedAmount::ZERO,
            long_term_fee: SignedAmount::ZERO,
        }
    }

    /// Reckons the fees for its input.
    pub fn set_feerates(&mut self, feerate: FeeRate, long_term: FeeRate) {
        self.input_fee = fee(feerate, self.virtual_size());
        self.long_term_fee = fee(long_term, self.virtual_size());
    }

    /// The size of its input in a transaction with witnesses, in whole virtual bytes.
    pub fn virtual_size(&self) -> u64 {
        self.size.weight(true).to_vbytes_ceil()
    }

    /// The weight that it is selected by: that of whole virtual bytes.
    pub fn selection_weight(&self) -> i64 {
        (self.virtual_size() * Weight::WITNESS_SCALE_FACTOR).cast_signed()
    }

    /// Its value, with a sign.
    pub fn value(&self) -> SignedAmount {
        signed(self.output.value)
    }

    /// The fee for spending it, its ancestors paid for.
    pub fn fee(&self) -> SignedAmount {
        self.input_fee.saturating_add(self.bump_fee)
    }

    /// Its value less the fee for spending it.
    pub fn effective_value(&self) -> SignedAmount {
        self.value().saturating_sub(self.fee())
    }
}
