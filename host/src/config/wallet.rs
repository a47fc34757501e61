//! The settings of wallets. Payment settings have the names, units and defaults of bitcoin.conf.

use bitcoin::Amount;
use outrigger_service::wallet::{AddressType, SpendSettings};
use outrigger_values::FeeRate;
use outrigger_values::amount::{parse_fixed_point, to_text};
use outrigger_wallet_engine::PolicyRule;
use serde::de::Error;
use serde::{Deserialize, Deserializer};

/// The decimals of an amount in BTC.
const DECIMALS: u32 = 8;
/// The feerate from which a setting causes a warning: 0.01 BTC/kvB (`HIGH_TX_FEE_PER_KB` of Bitcoin Core).
const HIGH_FEERATE: FeeRate = FeeRate::from_sat_per_kvb(1_000_000);
/// The highest fee without a warning (`HIGH_MAX_TX_FEE`).
const HIGH_MAX_FEE: Amount = Amount::ONE_BTC;
/// The highest `maxapsfee` without a warning (`HIGH_APS_FEE`).
const HIGH_GROUPING_FEE: Amount = Amount::from_sat(10_000);

/// The highest allowed feerate of a setting: 0.1 BTC/kvB, above which `sendrawtransaction` refuses a transaction
/// (`DEFAULT_MAX_RAW_TX_FEE_RATE`). A higher value is probably in the wrong unit.
const MAX_FEERATE: FeeRate = FeeRate::from_sat_per_kvb(10_000_000);
/// The highest allowed `maxtxfee` and `maxapsfee`: ten times [`HIGH_MAX_FEE`].
const MAX_FEE: Amount = Amount::from_sat(1_000_000_000);

#[derive(Clone, Default, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WalletConfig {
    /// The number of addresses derived beyond the last used one.
    pub keypool: u32,
    /// The number of disconnected blocks from which the log and metrics report a reorganisation; 0: never.
    pub reorganisation_notice: u32,
    #[serde(deserialize_with = "address_type")]
    pub addresstype: AddressType,
    /// The address type of change; by default, the wallet chooses it to match the recipients.
    #[serde(deserialize_with = "some_address_type")]
    pub changetype: Option<AddressType>,
    /// The feerate of payments if the node has no estimate; 0: the wallet refuses such payments.
    #[serde(deserialize_with = "feerate")]
    pub fallbackfee: FeeRate,
    #[serde(deserialize_with = "feerate")]
    pub mintxfee: FeeRate,
    /// The wallet makes no change output that would cost more to spend at this feerate than it is worth.
    #[serde(deserialize_with = "feerate")]
    pub discardfee: FeeRate,
    /// Up to this feerate, payments spend more coins than necessary, to consolidate them.
    #[serde(deserialize_with = "feerate")]
    pub consolidatefeerate: FeeRate,
    #[serde(deserialize_with = "amount")]
    pub maxtxfee: Amount,
    /// The extra fee that a payment may cost to spend all coins of an address together; `None`: not tried.
    #[serde(deserialize_with = "some_amount")]
    pub maxapsfee: Option<Amount>,
    /// The confirmation target of a payment, in blocks.
    pub txconfirmtarget: u32,
    pub walletrbf: bool,
    pub spendzeroconfchange: bool,
    /// Whether the coins of an address are always spent together.
    pub avoidpartialspends: bool,
    /// Whether the wallet refuses payments whose chain of unconfirmed ancestors is too long for the mempool.
    pub walletrejectlongchains: bool,
    /// Whether transactions of wallets are submitted to the node.
    pub walletbroadcast: bool,
    /// The plugin that signs for wallets created with an external signer (`-signer`).
    pub signer: Option<String>,
    /// The policy plugins that approve or refuse wallets' signatures, payments and exports.
    pub policies: Vec<PolicyRule>,
}

impl WalletConfig {
    pub fn spending(&self) -> SpendSettings {
        SpendSettings {
            fallback_feerate: Some(self.fallbackfee).filter(|feerate| *feerate > FeeRate::ZERO),
            min_feerate: self.mintxfee,
            discard_feerate: self.discardfee,
            consolidate_feerate: self.consolidatefeerate,
            pay_feerate: None,
            max_fee: self.maxtxfee,
            max_grouping_fee: self.maxapsfee,
            target: self.txconfirmtarget,
            replaceable: self.walletrbf,
            spend_unconfirmed_change: self.spendzeroconfchange,
            avoid_partial_spends: self.avoidpartialspends,
            reject_long_chains: self.walletrejectlongchains,
            address_type: self.addresstype,
            change_type: self.changetype,
            // Set later, from the node's version.
            replaces_any: false,
        }
    }

    /// Warnings about unusually high settings, in bitcoind's words.
    pub fn warnings(&self) -> Vec<String> {
        let feerates = [
            (self.fallbackfee, "fallbackfee", "the fee you may pay when fee estimates are not available"),
            (self.mintxfee, "mintxfee", "the minimum fee you pay on every transaction"),
            (self.discardfee, "discardfee", "the fee you may discard if change is smaller than dust at this level"),
        ];
        let feerates = feerates.map(|(feerate, name, what)| (feerate > HIGH_FEERATE, name, what));
        let aps = self.maxapsfee.is_some_and(|fee| fee > HIGH_GROUPING_FEE);
        let others = [
            (self.maxtxfee > HIGH_MAX_FEE, "maxtxfee", "the fee you may pay on a single transaction"),
            (aps, "maxapsfee", "the most you pay in addition to avoid spending a part of an address's coins"),
        ];
        let high = feerates.into_iter().chain(others).filter(|(is_high, ..)| *is_high);
        high.map(|(_, name, what)| format!("wallet.{name} is set very high; this is {what}")).collect()
    }

    /// The key of a setting that is too high, probably because it is in the wrong unit, and the error text.
    pub fn unit_fault(&self) -> Option<(&'static str, String)> {
        let feerates = [
            ("wallet.fallbackfee", self.fallbackfee),
            ("wallet.mintxfee", self.mintxfee),
            ("wallet.discardfee", self.discardfee),
            ("wallet.consolidatefeerate", self.consolidatefeerate),
        ];
        let fees = [("wallet.maxtxfee", self.maxtxfee), ("wallet.maxapsfee", self.maxapsfee.unwrap_or(Amount::ZERO))];
        let feerate = feerates.into_iter().find(|(_, feerate)| *feerate > MAX_FEERATE);
        let feerate = feerate.map(|(key, feerate)| {
            let (own, most) = (to_text(feerate.fee(1000)), to_text(MAX_FEERATE.fee(1000)));
            let virtual_byte = feerate.to_sat_per_kvb() / 1000;
            let reason = format!(
                "unreasonably high: {own} BTC per 1000 virtual bytes is {virtual_byte} satoshi per virtual byte; the unit is BTC per 1000 \
                 virtual bytes, and at most {most} is allowed (1 satoshi per virtual byte is 0.00001)"
            );
            (key, reason)
        });
        let fee = fees.into_iter().find(|(_, fee)| *fee > MAX_FEE).map(|(key, fee)| {
            let (own, most) = (to_text(fee), to_text(MAX_FEE));
            (
                key,
                format!(
                    "unreasonably high: {own} BTC for one transaction; the unit is BTC, and at most {most} is allowed"
                ),
            )
        });
        feerate.or(fee)
    }

    /// The error text if `maxtxfee` is below the minimum relay fee of 1000 virtual bytes.
    pub fn max_fee_fault(&self, relayed: FeeRate) -> Option<String> {
        let least = relayed.fee(1000);
        let reason =
            || format!("must be at least the minimum relay fee of {} BTC, or transactions get stuck", to_text(least));
        (self.maxtxfee < least).then(reason)
    }
}

/// Parses an amount in BTC as in bitcoin.conf: text, or a number, which is read in its shortest decimal form. May be negative.
fn satoshi<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    let text = match toml::Value::deserialize(deserializer)? {
        toml::Value::Float(number) => number.to_string(),
        toml::Value::Integer(number) => number.to_string(),
        toml::Value::String(text) => text,
        _ => String::new(),
    };
    let satoshi =
        parse_fixed_point(&text, DECIMALS).filter(|satoshi| *satoshi <= Amount::MAX_MONEY.to_sat().cast_signed());
    satoshi.ok_or_else(|| Error::custom("must be an amount in BTC with at most eight decimals, such as 0.0001"))
}

fn amount<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Amount, D::Error> {
    let satoshi = u64::try_from(satoshi(deserializer)?).map_err(|_| Error::custom("must not be below 0"))?;
    Ok(Amount::from_sat(satoshi))
}

/// Parses an amount in BTC; negative means `None`.
fn some_amount<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Amount>, D::Error> {
    Ok(u64::try_from(satoshi(deserializer)?).ok().map(Amount::from_sat))
}

/// Parses a feerate in BTC per 1000 virtual bytes.
fn feerate<'de, D: Deserializer<'de>>(deserializer: D) -> Result<FeeRate, D::Error> {
    Ok(FeeRate::from_sat_per_kvb(amount(deserializer)?.to_sat()))
}

fn address_type<'de, D: Deserializer<'de>>(deserializer: D) -> Result<AddressType, D::Error> {
    let name = String::deserialize(deserializer)?;
    let unknown = || {
        let known = AddressType::NAMED.map(|(name, _)| name).join(", ");
        Error::custom(format!("Unknown address type '{name}'; there are {known}"))
    };
    AddressType::named(&name).ok_or_else(unknown)
}

fn some_address_type<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<AddressType>, D::Error> {
    address_type(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use super::super::LoadedConfig;
    use super::*;

    fn read(line: &str) -> Result<WalletConfig, String> {
        toml::from_str(line).map_err(|error| error.message().to_owned())
    }

    #[test]
    fn amounts_are_what_bitcoin_conf_would_have() {
        let sat = |line: &str| read(line).unwrap().fallbackfee.to_sat_per_kvb();
        for (line, expected) in [
            ("fallbackfee = 0.00001", 1_000),
            ("fallbackfee = 0.00000001", 1),
            ("fallbackfee = 1e-5", 1_000),
            ("fallbackfee = 0.1", 10_000_000),
            ("fallbackfee = 1", 100_000_000),
            ("fallbackfee = \"0.00020000\"", 20_000),
        ] {
            assert_eq!(sat(line), expected, "{line}");
        }
        let amount = "must be an amount in BTC with at most eight decimals, such as 0.0001";
        for line in ["maxtxfee = true", "maxtxfee = \"x\"", "maxtxfee = 0.000000001", "maxtxfee = 21000001"] {
            assert_eq!(read(line).unwrap_err(), amount, "{line}");
        }
        assert_eq!(read("mintxfee = -1").unwrap_err(), "must not be below 0");
        assert_eq!(read("maxapsfee = -1").unwrap().maxapsfee, None);
        assert_eq!(read("maxapsfee = 0.00001").unwrap().maxapsfee, Some(Amount::from_sat(1_000)));
    }

    #[test]
    fn address_types_have_bitcoinds_names() {
        assert_eq!(read("changetype = \"bech32m\"").unwrap().changetype, Some(AddressType::Bech32m));
        let message = "Unknown address type 'taproot'; there are legacy, p2sh-segwit, bech32, bech32m";
        assert_eq!(read("addresstype = \"taproot\"").unwrap_err(), message);
    }

    #[test]
    fn defaults_are_those_of_payments_and_nothing_of_them_is_high() {
        let config = LoadedConfig::read_or(None, "", &[]).map_err(|error| error.to_string()).unwrap().config.wallet;
        assert_eq!(config.spending(), SpendSettings::default());
        assert_eq!((config.warnings(), config.max_fee_fault(FeeRate::from_sat_per_kvb(1_000))), (Vec::new(), None));
    }

    #[test]
    fn high_fees_are_told_and_a_greatest_one_below_what_is_relayed_is_refused() {
        let high = "fallbackfee = 0.02\nmintxfee = 0.02\ndiscardfee = 0.02\nmaxtxfee = 1.1\nmaxapsfee = 0.001";
        assert_eq!(read(high).unwrap().warnings().len(), 5);
        assert_eq!(read(high).unwrap().unit_fault(), None);
        let (key, reason) = read("maxtxfee = 10000").unwrap().unit_fault().unwrap();
        assert_eq!(key, "wallet.maxtxfee");
        assert!(reason.ends_with("the unit is BTC, and at most 10.00000000 is allowed"), "{reason}");
        let fault = read("maxtxfee = 0.00000999").unwrap().max_fee_fault(FeeRate::from_sat_per_kvb(1_000));
        let message = "must be at least the minimum relay fee of 0.00001000 BTC, or transactions get stuck";
        assert_eq!(fault.as_deref(), Some(message));
    }
}
