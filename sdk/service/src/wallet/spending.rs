//! The settings of payments, with Bitcoin Core's defaults.

use bitcoin::Amount;
use outrigger_values::FeeRate;

use super::AddressType;
use crate::wire::wire_struct;

wire_struct! {
    /// The settings for payments of a wallet. Each names its option of bitcoind.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct SpendSettings {
        /// The feerate of payments that name none while there is no estimate; none: such payments are refused (`-fallbackfee`).
        pub fallback_feerate: Option<FeeRate>,
        /// The least feerate (`-mintxfee`).
        pub min_feerate: FeeRate,
        /// The feerate at which change must be worth spending (`-discardfee`).
        pub discard_feerate: FeeRate,
        /// The feerate up to which it is better to spend more coins than needed (`-consolidatefeerate`).
        pub consolidate_feerate: FeeRate,
        /// The feerate of payments that name neither feerate nor target (settxfee).
        pub pay_feerate: Option<FeeRate>,
        /// The greatest fee of a transaction (`-maxtxfee`).
        pub max_fee: Amount,
        /// The most by which spending the coins of a script together may raise the fee; none: never tried (`-maxapsfee`).
        pub max_grouping_fee: Option<Amount>,
        /// The confirmation target of payments that name none, in blocks (`-txconfirmtarget`).
        pub target: u32,
        /// Whether payments are replaceable by default (`-walletrbf`).
        pub replaceable: bool,
        /// Whether change is spent before it is confirmed (`-spendzeroconfchange`).
        pub spend_unconfirmed_change: bool,
        /// Whether the coins of a script are spent together (`-avoidpartialspends`).
        pub avoid_partial_spends: bool,
        /// Whether to refuse payments that make longer chains than the mempool accepts (`-walletrejectlongchains`).
        pub reject_long_chains: bool,
        /// The default address type (`-addresstype`).
        pub address_type: AddressType,
        /// The type of change; none: one that suits the recipients (`-changetype`).
        pub change_type: Option<AddressType>,
        /// Whether bumpfee also replaces transactions that do not signal it (BIP 125). The node's release decides this; there is no
        /// option.
        pub replaces_any: bool,
    }
}

impl Default for SpendSettings {
    fn default() -> Self {
        Self {
            fallback_feerate: None,
            min_feerate: FeeRate::from_sat_per_kvb(1_000),
            discard_feerate: FeeRate::from_sat_per_kvb(10_000),
            consolidate_feerate: FeeRate::from_sat_per_kvb(10_000),
            pay_feerate: None,
            max_fee: Amount::from_sat(10_000_000),
            max_grouping_fee: Some(Amount::ZERO),
            target: 6,
            replaceable: true,
            spend_unconfirmed_change: true,
            avoid_partial_spends: false,
            reject_long_chains: true,
            address_type: AddressType::Bech32,
            change_type: None,
            replaces_any: false,
        }
    }
}
