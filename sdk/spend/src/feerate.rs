//! The feerate of a payment: what its sender says, the settings, the node's estimate, and the least that is relayed.

use outrigger_service::{ErrorKind, Result};
use outrigger_standard::policy::DUST_FEERATE;
use outrigger_values::FeeRate;

use crate::Services;
use crate::SpendSettings;
use crate::control::CoinControl;
use crate::error::SpendError;
use crate::fee_choice::FeeChoice;

/// The greatest confirmation target, in blocks.
pub const MAX_TARGET: u32 = 1008;

/// A feerate, and why it is that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReasonedFeeRate {
    /// It.
    pub feerate: FeeRate,
    /// bitcoind's name of the reason.
    pub reason: &'static str,
}

/// The feerate to pay (`GetMinimumFeeRate` of Bitcoin Core, and the checks that follow it). Of `control` it reads the fee, and
/// whether the payment can be replaced.
///
/// # Errors
/// Where an exact feerate is below the least one, and where there is neither a feerate nor an estimate nor a fallback.
pub fn feerate(
    services: Services<'_>,
    settings: &SpendSettings,
    control: &CoinControl,
) -> std::result::Result<ReasonedFeeRate, SpendError> {
    const SET: &str = "PayTxFee set";
    let choice = control.fee;
    if let FeeChoice::Exact { feerate, below_minimum: true } = choice {
        return Ok(ReasonedFeeRate { feerate, reason: SET });
    }
    let mempool = services.host.mempool.info(services.scope)?;
    let minimum = mempool.relay_feerate.max(settings.min_feerate);
    let found = match (choice, settings.pay_feerate) {
        (FeeChoice::Exact { feerate, .. }, _) if feerate < minimum => {
            return Err(SpendError::FeerateTooLow { feerate, minimum });
        }
        (FeeChoice::Exact { feerate, .. }, _) | (FeeChoice::Within { target: None, .. }, Some(feerate)) => {
            ReasonedFeeRate { feerate, reason: SET }
        }
        (FeeChoice::Within { target, mode }, _) => {
            let conservative = mode.is_conservative(control.replaceable.unwrap_or(settings.replaceable));
            let found = match estimate(services, target.unwrap_or(settings.target), conservative)? {
                Some(feerate) => ReasonedFeeRate { feerate, reason: "Target 85% Threshold" },
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
///
/// # Errors
/// As of [`outrigger_service::Mempool::fee_estimate`].
pub fn discard_feerate(services: Services<'_>, settings: &SpendSettings) -> Result<FeeRate> {
    let estimate = match estimate(services, MAX_TARGET, false) {
        // One that is too high to be used is above the setting, too.
        Err(error) if error.kind == ErrorKind::Refused => None,
        estimate => estimate?,
    };
    let feerate = estimate.map_or(settings.discard_feerate, |feerate| feerate.min(settings.discard_feerate));
    Ok(feerate.max(DUST_FEERATE))
}

/// The node's estimate, if it makes one.
fn estimate(services: Services<'_>, target: u32, conservative: bool) -> Result<Option<FeeRate>> {
    match services.host.mempool.fee_estimate(services.scope, target, conservative) {
        Err(error) if error.kind == ErrorKind::Unsupported => Ok(None),
        estimate => Ok(estimate?.feerate),
    }
}
