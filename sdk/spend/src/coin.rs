//! A coin with its fees, the unit of coin selection.

use bitcoin::{Amount, OutPoint, Script, SignedAmount, TxOut, Weight};
use outrigger_service::wallet::SolvingData;
use outrigger_standard::{ScriptKind, classify};
use outrigger_values::FeeRate;
use outrigger_values::amount::Saturating;

use crate::known::redeem_script;
use crate::weight::InputSize;

/// The type of an output. Selection mixes types only if it must; between equal selections, their order decides.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum OutputKind {
    /// P2PKH, and P2SH without a witness program.
    Legacy,
    /// P2SH with a witness program.
    P2shSegwit,
    /// P2WPKH and P2WSH.
    Bech32,
    /// P2TR.
    Bech32m,
    /// Any other.
    Unknown,
}

impl OutputKind {
    /// The type of an output script. `solving` holds the redeem script, if known.
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

/// The fee for a size in virtual bytes.
pub fn fee(feerate: FeeRate, virtual_size: u64) -> SignedAmount {
    signed(feerate.fee(virtual_size))
}

/// A signed amount, capped at 21 million BTC.
pub fn signed(amount: Amount) -> SignedAmount {
    SignedAmount::from_sat(amount.min(Amount::MAX_MONEY).to_sat().cast_signed())
}

/// The saturating sum.
pub fn sum(amounts: impl Iterator<Item = SignedAmount>) -> SignedAmount {
    amounts.fold(SignedAmount::ZERO, SignedAmount::saturating_add)
}

/// An unsigned amount; zero if the amount is negative.
pub fn unsigned(amount: SignedAmount) -> Amount {
    amount.to_unsigned().unwrap_or(Amount::ZERO)
}

/// A coin that coin selection may choose.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Coin {
    /// The outpoint.
    pub outpoint: OutPoint,
    /// The coin as an output.
    pub output: TxOut,
    /// The output type.
    pub kind: OutputKind,
    /// The size of the input that spends it.
    pub size: InputSize,
    /// The number of confirmations. Also 0 for preset inputs, whose depth is not looked up.
    pub depth: u32,
    /// Whether the wallet funded the coin's transaction.
    pub from_us: bool,
    /// The number of its unconfirmed ancestors, its own transaction included.
    pub ancestors: u64,
    /// The greatest number of descendants of any of these ancestors, itself included.
    pub descendants: u64,
    /// The fee for raising its unconfirmed ancestors to the feerate.
    pub bump_fee: SignedAmount,
    /// The fee for its input at the payment's feerate.
    pub input_fee: SignedAmount,
    /// The fee for its input at the long-term feerate.
    pub long_term_fee: SignedAmount,
}

impl Coin {
    /// An unconfirmed coin that others paid. Its fees are zero until [`Self::set_feerates`].
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

    /// Computes the fees of its input at the payment's and the long-term feerate.
    pub fn set_feerates(&mut self, feerate: FeeRate, long_term: FeeRate) {
        self.input_fee = fee(feerate, self.virtual_size());
        self.long_term_fee = fee(long_term, self.virtual_size());
    }

    /// The size of its input in a segwit transaction, in whole virtual bytes.
    pub fn virtual_size(&self) -> u64 {
        self.size.weight(true).to_vbytes_ceil()
    }

    /// The weight that selection counts: whole virtual bytes times four.
    pub fn selection_weight(&self) -> i64 {
        (self.virtual_size() * Weight::WITNESS_SCALE_FACTOR).cast_signed()
    }

    /// The value, signed.
    pub fn value(&self) -> SignedAmount {
        signed(self.output.value)
    }

    /// The fee for spending the coin, bump fee included.
    pub fn fee(&self) -> SignedAmount {
        self.input_fee.saturating_add(self.bump_fee)
    }

    /// The value less [`Self::fee`].
    pub fn effective_value(&self) -> SignedAmount {
        self.value().saturating_sub(self.fee())
    }
}
