//! Targets and difficulty in bitcoind's format, and networks by bitcoind's chain names.

use std::str::FromStr;

use bitcoin::{CompactTarget, Network, Target};
use serde_json::{Number, Value};

/// The significant digits of floating-point numbers in results, as in UniValue.
const DIGITS: usize = 16;

/// An unknown chain name. There is no default network, since addresses differ between networks.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("The chain '{0}' is not known")]
pub struct UnknownChain(pub String);

/// The network of a chain name (`main`, `test`, `testnet4`, `signet`, `regtest`). Fails for any other name.
pub fn network(name: &str) -> Result<Network, UnknownChain> {
    Network::from_core_arg(name).map_err(|_| UnknownChain(name.to_owned()))
}

/// The target of compact `bits` as 64 hex digits.
pub fn target_hex(bits: CompactTarget) -> String {
    format!("{:x}", Target::from_compact(bits))
}

/// The difficulty of compact `bits` relative to `0x1d00ffff` (bitcoind's `GetDifficulty`).
pub fn difficulty(bits: CompactTarget) -> f64 {
    let bits = bits.to_consensus();
    let exponent = i32::try_from(bits >> 24).unwrap_or_default();
    f64::from(0xffff) / f64::from(bits & 0x00ff_ffff) * 256_f64.powi(29 - exponent)
}

/// A floating-point number as UniValue prints it (`%.16g`); null if not finite.
pub fn float(value: f64) -> Value {
    let scientific = format!("{value:.*e}", DIGITS - 1);
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return Value::Null };
    let Ok(exponent) = exponent.parse::<i32>() else { return Value::Null };
    let trim = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    let text = match usize::try_from(DIGITS as i32 - 1 - exponent) {
        Ok(decimals) if exponent >= -4 => trim(&format!("{value:.decimals$}")),
        _ => format!("{}e{}{:02}", trim(mantissa), if exponent < 0 { '-' } else { '+' }, exponent.abs()),
    };
    Number::from_str(&text).map_or(Value::Null, Value::Number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn difficulty_has_at_most_sixteen_significant_digits() {
        for (bits, shown) in [
            (0x207f_ffff, "4.656542373906925e-10"),
            (0x1d00_ffff, "1"),
            (0x1b04_04cb, "16307.42093852398"),
            (0x1703_8d29, "79256106892662.97"),
        ] {
            assert_eq!(float(difficulty(CompactTarget::from_consensus(bits))).to_string(), shown, "{bits:x}");
        }
        assert_eq!(float(12.0).to_string(), "12");
        assert_eq!(float(0.0).to_string(), "0");
        assert_eq!(float(1e20).to_string(), "1e+20");
        assert_eq!(float(0.000_125).to_string(), "0.000125");
        assert_eq!(float(f64::INFINITY), Value::Null);
    }

    #[test]
    fn targets_have_64_digits() {
        let hex = target_hex(CompactTarget::from_consensus(0x207f_ffff));
        assert_eq!(hex, format!("7fffff{}", "0".repeat(58)));
    }

    #[test]
    fn network_of_an_unknown_chain_is_an_error() {
        assert_eq!(network("main"), Ok(Network::Bitcoin));
        assert_eq!(network("regtest"), Ok(Network::Regtest));
        for name in ["", "Regtest", "liquidv1"] {
            assert_eq!(network(name), Err(UnknownChain(name.to_owned())));
        }
    }
}
