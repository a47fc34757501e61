//! The feerate of a payment: the sender's choice, the settings, the node's estimate and the minimum relay feerate.

use outrigger_service::{ErrorKind, Result};
use outrigger_standard::policy::DUST_FEERATE;
use outrigger_values::FeeRate;

use crate::Services;
use crate::SpendSettings;
use crate::control::CoinControl;
use crate::error::SpendError;
use crate::fee_choice::FeeChoice;

/// The greatest confirmation target, in blocks: the horizon of Bitcoin Core's fee estimator.
pub const MAX_TARGET: u32 = 1008;

/// A feerate and where it comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReasonedFeeRate {
    /// The feerate.
    pub feerate: FeeRate,
    /// Its source, as Bitcoin Core names it (`fee_reason`).
    pub reason: &'static str,
}

/// The feerate to pay (`GetMinimumFeeRate` of Bitcoin Core, and the checks after it). It reads only `fee` and
/// `replaceable` of `control`. Fails for an exact feerate below the minimum, and without estimate and fallback feerate.
pub fn feerate(
    services: Services<'_>,
    settings: &SpendSettings,
    control: &CoinControl,
) -> std::result::Result<ReasonedFeeRate, SpendError> {
    let (set, estimated) = match services.rules.wallet_fee_reasons {
        true => ("User Specified Fee", "Fee Rate Estimator"),
        false => ("PayTxFee set", "Target 85% Threshold"),
    };
    let choice = control.fee;
    if let FeeChoice::Exact { feerate, below_minimum: true } = choice {
        return Ok(ReasonedFeeRate { feerate, reason: set });
    }
    let mempool = services.host.mempool.info(services.scope)?;
    let minimum = mempool.relay_feerate.max(settings.min_feerate);
    let found = match (choice, settings.pay_feerate) {
        (FeeChoice::Exact { feerate, .. }, _) if feerate < minimum => {
            let rates = [feerate, minimum, settings.min_feerate, mempool.relay_feerate];
            let [given, least, wallet, relay] = rates.map(FeeRate::to_sat_per_vb_text);
            let mut text = format!("Fee rate ({given}) is lower than the minimum fee rate setting ({least})");
            if services.rules.names_minimum_settings {
                text += &format!(".\nConsider modifying -mintxfee ({wallet}) or -minrelaytxfee ({relay}).");
            }
            return Err(SpendError::FeerateTooLow(text));
        }
        (FeeChoice::Exact { feerate, .. }, _) | (FeeChoice::Within { target: None, .. }, Some(feerate)) => {
            ReasonedFeeRate { feerate, reason: set }
        }
        (FeeChoice::Within { target, mode }, _) => {
            let conservative = mode.is_conservative(control.replaceable.unwrap_or(settings.replaceable));
            let found = match estimate(services, target.unwrap_or(settings.target), conservative)? {
                Some(feerate) => ReasonedFeeRate { feerate, reason: estimated },
                None => {
                    let feerate = settings.fallback_feerate.ok_or(SpendError::NoFeerate)?;
                    ReasonedFeeRate { feerate, reason: "Fallback fee" }
                }
            };
            match mempool.min_feerate {
                least if found.feerate < least && least > mempool.relay_feerate => {
                    ReasonedFeeRate { feerate: least, reason: "Mempool Min Fee" }
                }
                _ => found,
            }
        }
    };
    Ok(if found.feerate < minimum {
        ReasonedFeeRate { feerate: minimum, reason: "Minimum Required Fee" }
    } else {
        found
    })
}

/// The feerate at which change must be worth spending (`GetDiscardRate` of Bitcoin Core).
pub fn discard_feerate(services: Services<'_>, settings: &SpendSettings) -> Result<FeeRate> {
    let estimate = match estimate(services, MAX_TARGET, false) {
        // The service refuses an estimate that is too high. It would exceed the setting, too.
        Err(error) if error.kind == ErrorKind::Refused => None,
        estimate => estimate?,
    };
    let feerate = estimate.map_or(settings.discard_feerate, |feerate| feerate.min(settings.discard_feerate));
    Ok(feerate.max(DUST_FEERATE))
}

/// The node's estimate; `None` if it has none.
fn estimate(services: Services<'_>, target: u32, conservative: bool) -> Result<Option<FeeRate>> {
    match services.host.mempool.fee_estimate(services.scope, target, conservative) {
        Err(error) if error.kind == ErrorKind::Unsupported => Ok(None),
        estimate => Ok(estimate?.feerate),
    }
}
